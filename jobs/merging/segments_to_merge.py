"""Which segments a merge joins.

The rule: neighbours become one segment if it may hold them (`shared/segment_grouping.py`), within
`segment.ms` and a tenth of `retention.ms`. They are joined until each segment is at least twice as
large as the one after it, or full. So a partition has few segments however often it is written to,
and a byte is copied a bounded number of times. Segments on both sides of `cleaned_to` are not
joined: the dirty ratio counts whole segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.topic_state import TopicState
from klog.jobs.merging.merge_report import MergedPartition
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.segment_grouping import SegmentGroup, SegmentLimits
from klog.logformat.topic_config import TopicConfig

_SIZE_FACTOR = 2
"""A segment is joined with the next one if it is less than so many times as large."""
_RETENTION_DIVISOR = 10
"""A merge delays the expiration of a record by at most `retention.ms` divided by this."""


@dataclass(frozen=True, slots=True)
class PlannedMerge:
    """A partition's segments, and the groups of them that become one segment each."""

    report: MergedPartition
    segments: EntryRows
    groups: Sequence[slice]

    def inputs(self) -> list[EntryRows]:
        """Return the segments of each group."""
        return [self.segments.part(group.start, group.stop) for group in self.groups]


def plan_merges(topic: str, state: TopicState, config: TopicConfig) -> Iterator[PlannedMerge]:
    """Yield for each partition of a topic which segments are joined.

    Args:
        topic: The topic.
        state: Its state.
        config: Its configs.
    """
    segments = state.segments.combine_chunks()
    limits = merge_limits(config)
    for partition in range(state.partitions):
        entries = EntryRows(segment_entries.rows_of_partition(segments, partition))
        groups = groups_to_merge(entries, limits, state.cleaned_to.get(partition, 0))
        inputs = [entries.part(group.start, group.stop) for group in groups]
        report = MergedPartition(
            topic,
            partition,
            len(entries),
            len(entries) - sum(map(len, inputs)) + len(inputs),
            sum(int(rows.numbers("size_bytes").sum()) for rows in inputs),
            sum(int(np.count_nonzero(rows.numbers("offset_shift"))) for rows in inputs),
            "" if groups else "its segments are large enough",
        )
        yield PlannedMerge(report, entries, groups)


def groups_to_merge(
    segments: Iterable[SegmentEntry], limits: SegmentLimits, cleaned_to: int = 0
) -> list[slice]:
    """Return which neighbours become one segment each, by number.

    A segment whose commit shifted its offsets is a group even alone: a merge writes its offsets
    into its batches.

    Args:
        segments: The segments of a partition in order of offset.
        limits: What one segment may hold.
        cleaned_to: The offset up to which the partition was compacted; no group crosses it.
    """
    groups: list[SegmentGroup] = []
    shifted: set[int] = set()
    for number, entry in enumerate(segments):
        if entry["offset_shift"]:
            shifted.add(number)
        groups.append(SegmentGroup.of(number, entry))
        while len(groups) > 1 and _can_join(groups[-2], groups[-1], limits, cleaned_to):
            groups[-2:] = [groups[-2].joined(groups[-1])]
    return [
        slice(group.start, group.stop)
        for group in groups
        if group.stop - group.start > 1 or group.start in shifted
    ]


def merge_limits(config: TopicConfig) -> SegmentLimits:
    """Return what a merged segment may hold, a span of time included.

    Retention deletes whole segments, so a merged one spans at most a tenth of `retention.ms`, and
    like a broker's at most `segment.ms`.

    Args:
        config: The configs of the topic.
    """
    span_ms = config.number("segment.ms")
    retention_ms = config.number("retention.ms")
    if config.has_delete_policy and retention_ms >= 0:
        span_ms = min(span_ms, retention_ms // _RETENTION_DIVISOR)
    return replace(SegmentLimits.of(config), span_ms=span_ms)


def _can_join(
    group: SegmentGroup, after: SegmentGroup, limits: SegmentLimits, cleaned_to: int
) -> bool:
    if group.size_bytes >= _SIZE_FACTOR * after.size_bytes:
        return False
    crosses = group.next_offset <= cleaned_to < after.next_offset
    return not crosses and group.joined(after).fits(limits)
