"""`klog history`: the commits of a topic, newest first.

Prints one line per commit, each field with its label. If older commits have expired, the last line
says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, BinaryIO

from klog.connector.commit_log.commit import Actions, Commit
from klog.connector.commit_log.commit_summary import (
    added_amount,
    appended_offsets,
    changed_partitions,
    commit_fields,
    moved_log_start,
    new_holes,
    removed_amount,
    restored_version,
    set_configs,
)
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.text_output import configs_text, labelled, time_text, write_json, write_lines
from klog.tools.root_arguments import root_with_log


def history(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print commits while it reads them."""
    commits = TopicAdmin(root_with_log(args.root)).history(args.topic)
    version, shown = 0, 0
    for commit in islice(commits, args.limit):
        version, shown = commit.version, shown + 1
        if args.json:
            write_json(out, _object(commit))
        else:
            write_lines(out, [labelled(_fields(commit))])
    if version > 0 and shown != args.limit and not args.json:
        write_lines(
            out, [f"Commits before version {version} have expired: a checkpoint has their state."]
        )
    return 0


def _fields(commit: Commit) -> dict[str, object]:
    actions, creation = commit.actions, commit.actions.created_topic
    writer = actions.writer_transaction
    return {
        "Version": commit.version,
        "Time": time_text(commit.timestamp_ms),
        "Operation": commit.operation,
        "TopicId": creation.topic_id if creation else None,
        "PartitionCount": creation.partitions if creation else actions.partitions,
        "Configs": configs_text(set_configs(actions)),
        "Added": _amount_text(added_amount(actions)),
        "Removed": _amount_text(removed_amount(actions)),
        "Partitions": _ranges_text(changed_partitions(actions)),
        "Offsets": _offsets_text(actions),
        "Holes": _holes_text(actions),
        "LogStart": _by_partition(moved_log_start(actions)),
        "LogEnd": _by_partition(actions.explicit_log_end),
        "CleanedTo": _by_partition(actions.cleaned_to),
        "VacuumVersion": actions.vacuum_version,
        "Restored": restored_version(actions),
        "Writer": writer.name if writer else None,
        "Batch": writer.batch_id if writer else None,
        "By": commit.engine,
    }


def _object(commit: Commit) -> dict[str, Any]:
    """Return a commit as a JSON object, with the fields that apply."""
    return {name: value for name, value in commit_fields(commit).items() if value is not None}


def _amount_text(amount: Mapping[str, int] | None) -> str | None:
    if amount is None:
        return None
    return ", ".join(
        f"{number:,} {name if number != 1 else name[:-1]}" for name, number in amount.items()
    )


def _ranges_text(partitions: Iterable[int]) -> str | None:
    """Return numbers as ranges: 0-3,7."""
    ranges: list[list[int]] = []
    for partition in partitions:
        if ranges and partition == ranges[-1][1] + 1:
            ranges[-1][1] = partition
        else:
            ranges.append([partition, partition])
    texts = (str(low) if low == high else f"{low}-{high}" for low, high in ranges)
    return ",".join(texts) or None


def _offsets_text(actions: Actions) -> str | None:
    offsets = appended_offsets(actions).items()
    return ",".join(f"{partition}={first}..{last}" for partition, (first, last) in offsets) or None


def _holes_text(actions: Actions) -> str | None:
    return (
        ",".join(
            f"{hole.partition}={hole.base_offset}..{hole.next_offset - 1}"
            for hole in new_holes(actions)
        )
        or None
    )


def _by_partition(offsets: Mapping[int, int]) -> str | None:
    return (
        ",".join(f"{partition}={offset}" for partition, offset in sorted(offsets.items())) or None
    )
