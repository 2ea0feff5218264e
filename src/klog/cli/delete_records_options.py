"""The options of `klog delete-records`, those of kafka-delete-records."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from klog.jobs.shared.argument_values import PARTITION, whole_number
from klog.jobs.shared.common_options import Run
from klog.tools.kafka_options import ADMIN_OPTIONS, add_client_options

_HELP = """\
The offset becomes the log start: readers no longer get the records before it, even if it is in the
middle of a batch. `klog vacuum` later deletes the segments that end before the offset.

Give one partition with --topic, --partition and --offset, or several in a file, as for
kafka-delete-records:

  {"partitions": [{"topic": "orders", "partition": 0, "offset": 1000}], "version": 1}"""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `delete-records` to a command line."""
    parser = verbs.add_parser(
        "delete-records",
        parents=[common],
        help="delete the records before an offset",
        epilog=_HELP,
    )
    parser.set_defaults(load=_load, parser=parser)
    add_client_options(parser, ADMIN_OPTIONS)
    parser.add_argument(
        "--offset-json-file",
        type=Path,
        metavar="F",
        help="a JSON file with partitions and offsets; see below",
    )
    parser.add_argument(
        "-t",
        "--topic",
        metavar="T",
        help="the full name of the topic; needs --partition and --offset",
    )
    parser.add_argument(
        "--partition", type=PARTITION, metavar="N", help="the number of the partition"
    )
    parser.add_argument(
        "--offset",
        type=whole_number("an offset", -1),
        metavar="O",
        help="the first offset to keep; -1 for the log end",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only show the new log start offsets; write nothing"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _load() -> Run:
    from klog.cli.delete_records import delete

    return delete
