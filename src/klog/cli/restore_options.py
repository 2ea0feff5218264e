"""The options of `klog restore`."""

from __future__ import annotations

import argparse
from typing import Any

from klog.jobs.shared.argument_values import whole_number
from klog.jobs.shared.common_options import Run

_HELP = """\
The live records become those of the version; `klog history` lists the versions. Log ends stay, so
no offset is ever given to another record: the offsets from the end at that version to the end of
today become a hole, which readers pass over. Partition counts, configs and the last batches of
named writers stay too. To undo a restore, restore the version before its commit.

It is refused if the topic was created again since, or if vacuum has deleted a file of the version.
A stream that has read what is taken back fails, unless failOnDataLoss is false. docs/restore.md
says more."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `restore` to a command line."""
    parser = verbs.add_parser(
        "restore", parents=[common], help="set a topic back to an earlier version", epilog=_HELP
    )
    parser.set_defaults(load=_load, parser=parser)
    parser.add_argument("-t", "--topic", required=True, metavar="T", help="the topic's full name")
    parser.add_argument(
        "--version",
        required=True,
        type=whole_number("a version,"),
        metavar="V",
        help="the version to restore",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only show what would change; write nothing"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def _load() -> Run:
    from klog.cli.restore import restore

    return restore
