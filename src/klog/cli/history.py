"""`klog history`: the commits of a topic, newest first.

Prints one line per commit, each field with its label. If older commits have expired, the last line
says so.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, BinaryIO

from klog.connector.commit_log.commit import Actions, Amount, Commit
from klog.connector.commit_log.segment_path import parse_segment_path
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
    actions, creation = commit.actions, commit.actions.create_topic
    writer = actions.writer_transaction
    return {
        "Version": commit.version,
        "Time": time_text(commit.timestamp_ms),
        "Operation": commit.operation,
        "TopicId": creation.topic_id if creation else None,
        "PartitionCount": creation.partitions if creation else actions.partitions,
        "Configs": configs_text(actions.config),
        "Added": _amount_text(len(actions.add), _added(actions)) if actions.add else None,
        "Removed": _removed_text(actions),
        "Partitions": _ranges_text(_partitions(actions)),
        "LogStart": _by_partition(actions.log_start),
        "LogEnd": _by_partition(actions.explicit_log_end),
        "CleanedTo": _by_partition(actions.cleaned_to),
        "Horizon": actions.vacuum_version,
        "Writer": writer.name if writer else None,
        "Batch": writer.batch_id if writer else None,
        "By": commit.engine,
    }


def _object(commit: Commit) -> dict[str, Any]:
    """Return a commit as a JSON object, with totals instead of lists of segments."""
    actions, creation, writer = (
        commit.actions,
        commit.actions.create_topic,
        commit.actions.writer_transaction,
    )
    result: dict[str, Any] = {
        "version": commit.version,
        "timestampMs": commit.timestamp_ms,
        "operation": commit.operation,
        "engine": commit.engine,
        "writeId": commit.write_id,
        "topicId": creation.topic_id if creation else None,
        "partitionCount": creation.partitions if creation else actions.partitions,
        "configs": dict(actions.config) or None,
        "added": _amount(len(actions.add), _added(actions)) if actions.add else None,
        "removed": _amount(len(actions.remove) or None, actions.removed)
        if actions.remove or actions.removed
        else None,
        "partitions": _partitions(actions) or None,
        "logStart": _text_keys(actions.log_start),
        "logEnd": _text_keys(actions.explicit_log_end),
        "cleanedTo": _text_keys(actions.cleaned_to),
        "horizon": actions.vacuum_version,
        "transactionalId": writer.name if writer else None,
        "batchId": writer.batch_id if writer else None,
        "queryId": writer.query_id if writer else None,
        "runId": writer.run_id if writer else None,
    }
    return {name: value for name, value in result.items() if value is not None}


def _added(actions: Actions) -> Amount:
    return Amount(
        sum(entry["record_count"] for entry in actions.add),
        sum(entry["size_bytes"] for entry in actions.add),
    )


def _amount(segments: int | None, amount: Amount | None) -> dict[str, int]:
    result = {} if segments is None else {"segments": segments}
    return (
        result
        if amount is None
        else {**result, "records": amount.records, "bytes": amount.size_bytes}
    )


def _amount_text(segments: int | None, amount: Amount | None) -> str:
    numbers = _amount(segments, amount).items()
    return ", ".join(f"{number:,} {name if number != 1 else name[:-1]}" for name, number in numbers)


def _removed_text(actions: Actions) -> str | None:
    if not (actions.remove or actions.removed):
        return None
    # A deleted topic's commit does not list its segments.
    return _amount_text(len(actions.remove) or None, actions.removed)


def _partitions(actions: Actions) -> list[int]:
    """Return the partitions whose segments changed."""
    removed = Counter(
        path.partition for name in actions.remove if (path := parse_segment_path(name))
    )
    return sorted({entry["partition"] for entry in actions.add} | removed.keys())


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


def _by_partition(offsets: Mapping[int, int]) -> str | None:
    return (
        ",".join(f"{partition}={offset}" for partition, offset in sorted(offsets.items())) or None
    )


def _text_keys(offsets: Mapping[int, int]) -> dict[str, int] | None:
    return {str(partition): offset for partition, offset in sorted(offsets.items())} or None
