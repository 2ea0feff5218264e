"""Which segments retention deletes.

The rule is Kafka's (docs/format.md, 21; `UnifiedLog.deleteOldSegments`): whole segments, from the
oldest on, until one does not expire. By time a segment expires if its last record is older than
`retention.ms`; by size if the partition still has `retention.bytes` without it. klog has no active
segment, so all segments of a log may expire.

If no record of a segment has a timestamp (message format v0), a broker goes by the time of its
file. klog copies files from store to store, so there the segment expires with the next one that has
a timestamp.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.topic_state import TopicState
from klog.jobs.retaining.retain_report import RetainedPartition
from klog.logformat.batches.record_batch import NO_TIMESTAMP
from klog.logformat.topic_config import TopicConfig


def plan_retention(
    topic: str, state: TopicState, config: TopicConfig, now_ms: int
) -> Iterator[RetainedPartition]:
    """Yield what each partition loses; a partition that loses nothing is left out.

    Args:
        topic: The topic.
        state: Its state.
        config: Its configs.
        now_ms: The time to compare with, in ms since the epoch.
    """
    segments = state.segments.combine_chunks()
    retention_ms, retention_bytes = (
        config.number("retention.ms"),
        config.number("retention.bytes"),
    )
    for partition in range(state.partitions):
        entries = segment_entries.rows_of_partition(segments, partition)
        count = count_expired(entries, retention_ms, retention_bytes, now_ms)
        if not count:
            continue
        log_start = state.log_end[partition]
        if count < entries.num_rows:
            log_start = entries["base_offset"][count].as_py()
        log_start = max(log_start, state.log_start[partition])
        yield _retained(topic, partition, log_start, entries.slice(0, count))


def count_expired(segments: pa.Table, retention_ms: int, retention_bytes: int, now_ms: int) -> int:
    """Return how many segments of a partition expire, counted from the oldest.

    Args:
        segments: The partition's segments in order of offset, as `segment_entries.SCHEMA`.
        retention_ms: The topic's `retention.ms`; below 0 means no limit.
        retention_bytes: The topic's `retention.bytes`; below 0 means no limit.
        now_ms: The time to compare with.
    """
    sizes = segments["size_bytes"].to_numpy()
    by_size = by_time = 0
    if retention_bytes >= 0:
        remaining_bytes = int(sizes.sum()) - np.cumsum(sizes)
        by_size = int((remaining_bytes >= retention_bytes).sum())
    if retention_ms >= 0:
        latest_ms = segments["max_timestamp_ms"].to_numpy()[by_size:]
        stays = (latest_ms != NO_TIMESTAMP) & (now_ms - latest_ms <= retention_ms)
        by_time = int(np.argmax(stays)) if stays.any() else len(stays)
        while by_time and latest_ms[by_time - 1] == NO_TIMESTAMP:
            by_time -= 1
    return by_size + by_time


def deleted_below(
    topic: str, segments: pa.Table, partition: int, log_start: int
) -> RetainedPartition:
    """Return what a partition loses if its log start rises.

    Args:
        topic: The topic.
        segments: The segments of all partitions.
        partition: The partition.
        log_start: Its new log start.
    """
    entries = segment_entries.rows_of_partition(segments, partition)
    deleted = entries.filter(pc.less_equal(entries["next_offset"], log_start))
    return _retained(topic, partition, log_start, deleted)


def _retained(topic: str, partition: int, log_start: int, deleted: pa.Table) -> RetainedPartition:
    return RetainedPartition(
        topic,
        partition,
        log_start,
        deleted.num_rows,
        int(deleted["record_count"].to_numpy().sum()),
        int(deleted["size_bytes"].to_numpy().sum()),
    )
