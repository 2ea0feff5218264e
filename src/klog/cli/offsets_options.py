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
  latest, -1           the log end (the default); the high watermark while a broker runs
  earliest, -2         the log start; earliest-local, -4 is the same
  max-timestamp, -3    the first record with the largest timestamp
  latest-tiered, -5    no offset: nothing is tiered
  a time               the first record at or after it: ms since 1970, now-10m, or
                       2026-11-01T00:00:00Z

A partition without such a record has no line; with --json its offset is null."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `offsets` to a command line."""
    parser = verbs.add_parser(
        "offsets", parents=[common], help="an offset of each partition, also at a time",
        epilog=_HELP,
    )  # fmt: skip
    parser.set_defaults(load=_load, parser=parser)
    add_selection_options(parser)
    parser.add_argument(
        "--time", default="latest", metavar="WHEN", help="see below; default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="one JSON array")
    add_client_options(parser, [*ADMIN_OPTIONS, "--broker-list"])


def _load() -> Run:
    from klog.cli.offsets import offsets

    return offsets
