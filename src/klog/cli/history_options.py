"""The options of `klog history`."""

from __future__ import annotations

import argparse
from typing import Any

from klog.jobs.shared.argument_values import whole_number
from klog.jobs.shared.common_options import Run

_HELP = """\
Prints one line per commit, newest first. A line has those of these fields that apply:
  Version, Time, Operation   the number, the time and the kind of the commit
  TopicId, PartitionCount    the id of a new topic; the new number of partitions
  Configs                    the changed configs; `unset` means reset to the default
  Added, Removed             segments that were added or removed, with their records and bytes
  Partitions                 the partitions whose segments changed
  Offsets                    the first and the last offset of the records that were appended, by
                             partition
  Holes                      offsets that have no records any more, because of a restore or a
                             repair
  LogStart                   new log start offsets, by partition
  LogEnd                     log end offsets of partitions whose segments end before them
  CleanedTo                  the offsets up to which partitions are compacted
  VacuumVersion              a write that began before it can no longer commit
  Restored                   the version that a restore set the topic back to
  Writer, Batch              the transactional id and the number of its batch
  By                         the klog version, the user and the machine

`klog vacuum` later deletes the files of removed segments."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `history` to a command line."""
    parser = verbs.add_parser(
        "history",
        parents=[common],
        help="list the commits of a topic: who changed it, when and how",
        epilog=_HELP,
    )
    parser.set_defaults(load=_load, parser=parser)
    parser.add_argument(
        "-t",
        "--topic",
        required=True,
        metavar="T",
        help="the full name of the topic, which may be deleted",
    )
    parser.add_argument(
        "--limit",
        type=whole_number("a number of commits", 1),
        metavar="N",
        help="print only the newest N commits",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def _load() -> Run:
    from klog.cli.history import history

    return history
