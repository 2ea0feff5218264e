"""The options of `klog verifiable-producer`, those of kafka-verifiable-producer."""

from __future__ import annotations

import argparse
import math
from typing import Any

from klog.jobs.shared.argument_values import MAX_INT, whole_number
from klog.jobs.shared.common_options import Run, add_topic_option
from klog.tools.kafka_options import add_client_options

BATCH_MESSAGES = 100
_CLIENT_OPTIONS = ("--bootstrap-server", "--acks")
_HELP = """\
Prints one JSON object per line, as kafka-verifiable-producer does: startup_complete, a
producer_send_success (key, value, topic, partition, offset) or producer_send_error for each record,
shutdown_complete, tool_data.

The numbers continue after the last one that the topic has of the transactional id. So you can start
a killed producer again with the same arguments. --max-messages counts the messages of all its
runs."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `verifiable-producer` to a command line."""
    parser = verbs.add_parser(
        "verifiable-producer",
        parents=[common],
        help="write increasing numbers, and print which ones klog has committed",
        epilog=_HELP,
    )
    parser.set_defaults(load=_load, parser=parser)
    add_topic_option(parser)
    parser.add_argument(
        "--max-messages",
        type=whole_number("a number of records", -1),
        default=-1,
        metavar="N",
        help="how many messages to write; default: -1, no limit",
    )
    parser.add_argument(
        "--throughput",
        type=_throughput,
        default=-1,
        metavar="N",
        help="at most N messages a second, such as 0.5; 0: write one commit, then wait for a "
        "signal; default: -1, no limit",
    )
    parser.add_argument(
        "--value-prefix",
        type=whole_number("a number", -MAX_INT - 1, MAX_INT),
        metavar="P",
        help="write the values P.0, P.1, ... instead of 0, 1, ...",
    )
    parser.add_argument(
        "--repeating-keys",
        type=whole_number("a number", 1, MAX_INT),
        metavar="N",
        help="write the keys 0 to N - 1 in turn",
    )
    parser.add_argument(
        "--message-create-time",
        type=whole_number("a time in milliseconds since 1970", -1),
        default=-1,
        metavar="MS",
        help="the timestamp of the first record in ms since 1970; later records add the time since "
        "the start",
    )
    parser.add_argument(
        "--transactional-id",
        metavar="ID",
        help="the transactional id; default: verifiable-producer, and -P after it for a prefix P",
    )
    parser.add_argument(
        "--batch-messages",
        type=whole_number("a number", 1, MAX_INT),
        metavar="N",
        help="messages in a commit; give the same number in all runs of a producer; default: "
        f"{BATCH_MESSAGES}, or those of a tenth of a second with a --throughput that has fewer",
    )
    add_client_options(parser, _CLIENT_OPTIONS)


def _load() -> Run:
    from klog.tools.verifiable_producer import verifiable_producer

    return verifiable_producer


def _throughput(text: str) -> float:
    """Parse messages a second; an integer stays one, because it is printed unchanged."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of messages a second")
    return number
