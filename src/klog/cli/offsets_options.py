"""The options of `klog offsets`: those of kafka-get-offsets."""

from __future__ import annotations

import argparse
from typing import Any

from klog.cli.partition_selection import add_selection_options
from klog.jobs.shared.common_options import Run
from klog.tools.kafka_options import ADMIN_OPTIONS, add_client_options

_HELP = """\
Prints topic:partition:offset, one line per partition.

--time: which offset
  latest, -1           the log end (the default); while a broker runs, the high watermark
  earliest, -2         the log start; earliest-local and -4 mean the same
  max-timestamp, -3    the first record with the largest timestamp
  latest-tiered, -5    no offset, because klog has no tiered storage
  a time               the first record at or after it: ms since 1970, now-10m, or
                       2026-11-01T00:00:00Z

For a partition without such a record, klog prints no line; with --json its offset is null."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `offsets` to a command line."""
    parser = verbs.add_parser(
        "offsets", parents=[common],
        help="print an offset of each partition: the first, the last, or that of a time",
        epilog=_HELP,
    )  # fmt: skip
    parser.set_defaults(load=_load, parser=parser)
    add_selection_options(parser)
    parser.add_argument(
        "--time",
        default="latest",
        metavar="WHEN",
        help="which offset; see below; default: %(default)s",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    add_client_options(parser, [*ADMIN_OPTIONS, "--broker-list"])


def _load() -> Run:
    from klog.cli.offsets import offsets

    return offsets
