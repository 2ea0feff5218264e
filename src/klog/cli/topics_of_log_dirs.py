"""The topics of a broker's log directories, for `klog topics`.

A partition whose log cannot be read is shown with its error.
"""

from __future__ import annotations

import argparse
from typing import Any

from klog.cli.topic_descriptions import Facts, Shown, is_chosen, refuse_no_match, row_of_list
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.snapshot import PartitionSnapshot, Snapshot
from klog.errors import KlogError
from klog.logformat.topic_partition import TopicPartition
from klog.tools.root_arguments import directories


def list_topics(args: argparse.Namespace) -> tuple[list[dict[str, Any]], int]:
    """Return the selected topics, and exit code 0."""
    snapshot = RawRoot(directories(args.root)).snapshot()
    chosen = _chosen(args, snapshot)
    ids = snapshot.topic_ids(chosen) if args.json else {}
    rows = [
        row_of_list(topic, ids.get(topic), [name.partition for name in names])
        for topic, names in chosen.items()
    ]
    return rows, 0


def describe_topics(args: argparse.Namespace) -> dict[str, Shown]:
    """Describe the selected topics. Raises `OptionError` if `--topic` matches nothing."""
    root = RawRoot(directories(args.root))
    snapshot = root.snapshot()
    chosen = _chosen(args, snapshot)
    if not chosen:
        refuse_no_match(args, sorted(snapshot.topics))
    ids = snapshot.topic_ids(chosen)
    return {
        topic: Shown(ids.get(topic), _partitions(root, names)) for topic, names in chosen.items()
    }


def _chosen(args: argparse.Namespace, snapshot: Snapshot) -> dict[str, list[TopicPartition]]:
    """Return the partitions of the selected topics, by topic."""
    return {
        topic: [TopicPartition(topic, number) for number in numbers]
        for topic, numbers in snapshot.topics.items()
        if is_chosen(args, topic)
    }


def _partitions(root: RawRoot, names: list[TopicPartition]) -> list[Facts]:
    """Describe partitions together, or one by one if one of them cannot be read."""
    try:
        return retry_stale_listing(
            lambda: [_facts(log) for log in root.snapshot().open(names).values()]
        )
    except KlogError as exc:
        if len(names) == 1:
            return [{"partition": names[0].partition, "error": str(exc)}]
        return [facts for name in names for facts in _partitions(root, [name])]


def _facts(log: PartitionSnapshot) -> Facts:
    return {
        "partition": log.name.partition,
        "logStartOffset": log.log_start,
        "logEndOffset": log.log_end,
        "lastStableOffset": log.last_stable_offset(),
        "segments": log.segment_count,
        "bytes": log.size_bytes,
    }
