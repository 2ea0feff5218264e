"""The options of `klog restore`."""

from __future__ import annotations

import argparse
from typing import Any

from klog.jobs.shared.argument_values import whole_number
from klog.jobs.shared.common_options import Run

_HELP = """\
Afterwards the topic has the records of the version. `klog history` lists the versions. To undo a
restore, restore the version before the restore's own commit.

Log end offsets do not change, so no offset is used for another record. The offsets between the log
end as of the version and the present log end become a hole: they have no records, and readers skip
them. The number of partitions, configs and the last batches of named writers do not change either.

A restore fails if the topic was deleted and created again after the version, or if vacuum has
deleted a file of the version. A stream that has already read records which the restore removes
fails, unless its option failOnDataLoss is false. See docs/restore.md."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `restore` to a command line."""
    parser = verbs.add_parser(
        "restore", parents=[common], help="set a topic back to an earlier version", epilog=_HELP
    )
    parser.set_defaults(load=_load, parser=parser)
    parser.add_argument(
        "-t", "--topic", required=True, metavar="T", help="the full name of the topic"
    )
    parser.add_argument(
        "--version",
        required=True,
        type=whole_number("a version,"),
        metavar="V",
        help="the version to set the topic back to",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only show what would change; write nothing"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _load() -> Run:
    from klog.cli.restore import restore

    return restore
