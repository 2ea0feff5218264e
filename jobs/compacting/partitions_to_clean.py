"""Which partitions of a topic a compaction cleans, and which segments of each.

The rule: a partition is due by its dirty ratio and the lags, as for Kafka's cleaner. All are
planned on one state, and every partition that is not due says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.topic_state import TopicState
from klog.jobs.compacting.compact_report import CompactedPartition
from klog.jobs.compacting.dirty_ratio import CleanableRange, CleaningLimits, cleanable_range
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.waves import waves
from klog.logformat.topic_config import TopicConfig

WAVE_RECORDS = 1 << 31
"""The driver has the marks of so many records at a time, two bits each."""


@dataclass(frozen=True, slots=True)
class PlannedCleaning:
    """A partition, and its segments below and after the end of what may be cleaned.

    `report.left` is empty if the partition is due.
    """

    report: CompactedPartition
    cleanable: CleanableRange
    segments: EntryRows
    later_segments: EntryRows

    @property
    def is_due(self) -> bool:
        """Return whether the compaction cleans the partition."""
        return not self.report.left


def plan_cleanings(
    topic: str, state: TopicState, config: TopicConfig, min_dirty_ratio: float | None, now_ms: int
) -> list[PlannedCleaning]:
    """Return for each partition of a topic what may be cleaned, and whether it is due.

    Args:
        topic: The topic.
        state: Its state.
        config: Its configs.
        min_dirty_ratio: Replaces the topic's `min.cleanable.dirty.ratio` unless None.
        now_ms: The time of the compaction.
    """
    ratio = config.values["min.cleanable.dirty.ratio"]
    assert isinstance(ratio, float)
    limits = CleaningLimits(
        ratio if min_dirty_ratio is None else min_dirty_ratio,
        config.number("min.compaction.lag.ms"),
        config.number("max.compaction.lag.ms"),
    )
    segments = state.segments.combine_chunks()
    return [
        _plan_partition(topic, state, segments, partition, limits, now_ms)
        for partition in range(state.partitions)
    ]


def _plan_partition(
    topic: str,
    state: TopicState,
    segments: pa.Table,
    partition: int,
    limits: CleaningLimits,
    now_ms: int,
) -> PlannedCleaning:
    entries = segment_entries.rows_of_partition(segments, partition)
    start, end = state.log_start[partition], state.log_end[partition]
    cleaned_to = state.cleaned_to.get(partition, 0)
    cleanable = cleanable_range(entries, start, end, cleaned_to, limits, now_ms)
    below = entries.slice(0, cleanable.segment_count)
    report = CompactedPartition(
        topic,
        partition,
        cleanable.dirty_ratio,
        cleanable.first_dirty_offset,
        cleanable.end_offset,
        below.num_rows,
        int(below["record_count"].to_numpy().sum()),
        cleanable.clean_bytes + cleanable.dirty_bytes,
    )
    if not cleanable.dirty_bytes:
        report = replace(report, left="nothing is dirty")
    elif not cleanable.is_due:
        report = replace(report, left="its dirty ratio is not above the minimum")
    later = entries.slice(cleanable.segment_count)
    return PlannedCleaning(report, cleanable, EntryRows(below), EntryRows(later))


def cleaning_waves(
    plans: Iterable[PlannedCleaning], max_records: int = WAVE_RECORDS
) -> Iterator[list[PlannedCleaning]]:
    """Return partitions in waves, whose marks the driver has at a time.

    Args:
        plans: The partitions in order.
        max_records: How many records of due partitions a wave has, unless it is one partition.
    """
    return waves(plans, lambda plan: plan.report.records if plan.is_due else 0, max_records)
