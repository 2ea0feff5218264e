"""What a commit did, for people and for SQL: totals in place of lists of segments.

The rule: `klog history --json` and the table function `klog_history` show these fields, under these
names. A field that a commit says nothing about is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klog.connector.commit_log.commit import Actions, Amount, Commit, Hole
from klog.connector.commit_log.segment_path import parse_segment_path


def commit_fields(commit: Commit) -> dict[str, Any]:
    """Return the fields of a commit by name.

    Args:
        commit: The commit.
    """
    actions, writer = commit.actions, commit.actions.writer_transaction
    creation = actions.created_topic
    return {
        "version": commit.version,
        "timestampMs": commit.timestamp_ms,
        "operation": commit.operation,
        "engine": commit.engine,
        "writeId": commit.write_id,
        "topicId": creation.topic_id if creation else None,
        "partitionCount": creation.partitions if creation else actions.partitions,
        "configs": dict(set_configs(actions)) or None,
        "added": added_amount(actions),
        "removed": removed_amount(actions),
        "partitions": changed_partitions(actions) or None,
        "logStart": _sorted(moved_log_start(actions)),
        "logEnd": _sorted(actions.explicit_log_end),
        "cleanedTo": _sorted(actions.cleaned_to),
        "horizon": actions.vacuum_version,
        "restoredVersion": restored_version(actions),
        "transactionalId": writer.name if writer else None,
        "batchId": writer.batch_id if writer else None,
        "queryId": writer.query_id if writer else None,
        "runId": writer.run_id if writer else None,
        "offsets": {
            partition: {"first": first, "last": last}
            for partition, (first, last) in appended_offsets(actions).items()
        }
        or None,
        "holes": [
            {"partition": hole.partition, "first": hole.base_offset, "last": hole.next_offset - 1}
            for hole in new_holes(actions)
        ]
        or None,
    }


def set_configs(actions: Actions) -> Mapping[str, str | None]:
    """Return the configs that a commit set or unset, or brought back with the topic.

    Args:
        actions: The actions of the commit.
    """
    return actions.config if actions.undelete is None else dict(actions.undelete.config)


def restored_version(actions: Actions) -> int | None:
    """Return the version that a commit restored; None if it did not.

    Args:
        actions: The actions of the commit.
    """
    change = actions.restore or actions.undelete
    return None if change is None else change.version


def added_amount(actions: Actions) -> dict[str, int] | None:
    """Return the segments, records and bytes that a commit added; None without any.

    Args:
        actions: The actions of the commit.
    """
    if not actions.add:
        return None
    records = sum(entry["record_count"] for entry in actions.add)
    size_bytes = sum(entry["size_bytes"] for entry in actions.add)
    return _amount(len(actions.add), Amount(records, size_bytes))


def removed_amount(actions: Actions) -> dict[str, int] | None:
    """Return the segments, records and bytes that a commit removed; None without any.

    Args:
        actions: The actions of the commit. That of a deleted topic does not list its segments.
    """
    if not (actions.remove or actions.removed):
        return None
    return _amount(len(actions.remove) or None, actions.removed)


def appended_offsets(actions: Actions) -> dict[int, tuple[int, int]]:
    """Return the first and the last offset that a commit appended, by partition.

    Args:
        actions: The actions of the commit. One that rewrites segments, or makes removed ones live
            again, appends nothing.
    """
    offsets: dict[int, tuple[int, int]] = {}
    for entry in () if actions.adds_removed_segments else actions.add:
        if entry["origin"] in ("append", "adopt"):
            partition, first, end = entry["partition"], entry["base_offset"], entry["next_offset"]
            before = offsets.get(partition, (first, end))
            offsets[partition] = (min(first, before[0]), max(end, before[1]))
    return {partition: (first, end - 1) for partition, (first, end) in sorted(offsets.items())}


def moved_log_start(actions: Actions) -> Mapping[int, int]:
    """Return the log start offsets that a commit set, by partition; a restore may lower them.

    Args:
        actions: The actions of the commit.
    """
    return actions.log_start if actions.restore is None else actions.restore.log_start


def new_holes(actions: Actions) -> list[Hole]:
    """Return the offsets that a repair gave up, or that a restore took back.

    Args:
        actions: The actions of the commit.
    """
    if actions.restore is None:
        return list(actions.holes)
    return [
        Hole(partition, end, actions.asserted_log_end[partition])
        for partition, end in sorted(actions.restore.log_end.items())
        if partition in actions.asserted_log_end
    ]


def changed_partitions(actions: Actions) -> list[int]:
    """Return the partitions whose segments changed.

    Args:
        actions: The actions of the commit.
    """
    removed = {path.partition for name in actions.remove if (path := parse_segment_path(name))}
    return sorted({entry["partition"] for entry in actions.add} | removed)


def _amount(segments: int | None, amount: Amount | None) -> dict[str, int]:
    result = {} if segments is None else {"segments": segments}
    if amount is not None:
        result |= {"records": amount.records, "bytes": amount.size_bytes}
    return result


def _sorted(offsets: Mapping[int, int]) -> dict[int, int] | None:
    return dict(sorted(offsets.items())) or None
