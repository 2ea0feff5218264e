"""The options of `klog verifiable-consumer`, those of kafka-verifiable-consumer."""

from __future__ import annotations

import argparse
import re
from typing import Any

from klog.jobs.shared.argument_values import whole_number
from klog.jobs.shared.common_options import Run, add_topic_option
from klog.tools.kafka_options import add_client_options

_START = re.compile(r"([0-9]{1,9}):([0-9]{1,19})")
_CLIENT_OPTIONS = (
    "--bootstrap-server", "--broker-list", "--group-id", "--group-protocol",
    "--group-remote-assignor", "--group-instance-id", "--session-timeout", "--assignment-strategy",
)  # fmt: skip
_HELP = """\
Prints one JSON object per line, as kafka-verifiable-consumer does: startup_complete;
records_consumed (count, and for each partition count, minOffset, maxOffset) for each read of the
topic; shutdown_complete. With --verbose, record_data (key, value, topic, partition, offset) for
each record comes before the records_consumed of its read.

There are no consumer groups: klog reads all partitions, and stores no positions."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `verifiable-consumer` to a command line."""
    parser = verbs.add_parser(
        "verifiable-consumer",
        parents=[common],
        help="follow a topic, and print which records klog has read",
        epilog=_HELP,
    )
    parser.set_defaults(load=_load, parser=parser)
    add_topic_option(parser)
    parser.add_argument(
        "--max-messages",
        type=whole_number("a number of records", -1),
        default=-1,
        metavar="N",
        help="how many messages to read; default: -1, no limit",
    )
    parser.add_argument("--verbose", action="store_true", help="print each record")
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--reset-policy",
        choices=("earliest", "latest"),
        default="earliest",
        help="where to start; default: %(default)s",
    )
    start.add_argument(
        "--start",
        type=_start,
        metavar="P:OFFSET,...",
        help="where to start, by partition; all other partitions start at their log start",
    )
    add_client_options(parser, _CLIENT_OPTIONS, flags=["--enable-autocommit"])


def _load() -> Run:
    from klog.tools.verifiable_consumer import verifiable_consumer

    return verifiable_consumer


def _start(text: str) -> dict[int, int]:
    offsets: dict[int, int] = {}
    for item in text.split(","):
        matched = _START.fullmatch(item.strip())
        if matched is None:
            raise argparse.ArgumentTypeError(f"{item!r} is not PARTITION:OFFSET")
        offsets[int(matched[1])] = int(matched[2])
    return offsets
