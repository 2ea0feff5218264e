"""The options of `klog count`."""

from __future__ import annotations

import argparse
from typing import Any

from klog.cli.partition_selection import add_selection_options
from klog.connector.options.option_defaults import READ_COMMITTED, READ_UNCOMMITTED
from klog.jobs.shared.common_options import Run

_HELP = """\
Prints topic:partition:records, one line per partition: how many records `klog consume` prints.

Commits say it, or the headers of batches: no record is read. Records that a compaction removed do
not count, nor do transaction markers; for read_committed, neither do records of aborted and open
transactions.

--start and --end (not included): earliest, latest, -100 (the last hundred offsets), now-10m, a time
such as 2026-11-01T00:00:00Z, or JSON as in the option startingOffsets, which names each selected
partition"""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `count` to a command line."""
    parser = verbs.add_parser(
        "count", parents=[common], help="how many records each partition has", epilog=_HELP
    )
    parser.set_defaults(load=_load, parser=parser)
    add_selection_options(parser)
    parser.add_argument("--start", default="earliest", metavar="WHERE", help="see below")
    parser.add_argument("--end", default="latest", metavar="WHERE", help="see below")
    parser.add_argument(
        "--isolation-level", choices=(READ_COMMITTED, READ_UNCOMMITTED), default=READ_COMMITTED,
        help="default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON array")


def _load() -> Run:
    from klog.cli.count import count

    return count
