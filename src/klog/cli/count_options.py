"""The options of `klog count`."""

from __future__ import annotations

import argparse
from typing import Any

from klog.cli.partition_selection import add_selection_options
from klog.connector.options.option_defaults import READ_COMMITTED, READ_UNCOMMITTED
from klog.jobs.shared.common_options import Run

_HELP = """\
Prints topic:partition:records, one line per partition. The number is how many records
`klog consume` prints.

The numbers come from commits and from the headers of batches. klog reads records only in a few
cases (docs/reading.md, Counting without reading). Records that a compaction removed and transaction
markers do not count. With read_committed, records of aborted and open transactions do not count
either.

--start, --end (not included): earliest, latest, -100 (the last hundred offsets), now-10m, a time
such as 2026-11-01T00:00:00Z, or JSON as in the option startingOffsets. The JSON must name each
selected partition."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `count` to a command line."""
    parser = verbs.add_parser(
        "count",
        parents=[common],
        help="print the number of records of each partition",
        epilog=_HELP,
    )
    parser.set_defaults(load=_load, parser=parser)
    add_selection_options(parser)
    parser.add_argument(
        "--start",
        default="earliest",
        metavar="WHERE",
        help="where to start; see below; default: %(default)s",
    )
    parser.add_argument(
        "--end",
        default="latest",
        metavar="WHERE",
        help="where to stop; see below; default: %(default)s",
    )
    parser.add_argument(
        "--isolation-level", choices=(READ_COMMITTED, READ_UNCOMMITTED), default=READ_COMMITTED,
        help="which records of transactions to count; default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON array")


def _load() -> Run:
    from klog.cli.count import count

    return count
