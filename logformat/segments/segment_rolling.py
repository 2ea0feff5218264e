"""When a segment rolls (docs/format.md, 9; Kafka's `LogSegment.shouldRoll`).

The rule: a segment rolls before an append if any of these holds:

    size    segment and append together are larger than segment.bytes
    time    the segment is not empty, and the append's largest timestamp is more than segment.ms
            above that of the segment's first append; if that has none, the clock counts
    index   the offset index is full, or the time index is, except for the entry of the roll
    offset  the append's last offset does not fit into 4 bytes relative to the base offset

The new base offset is the first offset of the append, or the log end if that is larger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from klog.logformat.array_types import Longs
from klog.logformat.batches.record_batch import NO_TIMESTAMP
from klog.logformat.indexes.abstract_index import (
    MAX_RELATIVE_OFFSET,
    SEGMENT_INDEX_BYTES,
    max_entries,
)
from klog.logformat.indexes.index_building import INDEX_INTERVAL_BYTES, UNKNOWN_OFFSET, Appends
from klog.logformat.indexes.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.indexes.time_index import ENTRY as TIME_ENTRY


@dataclass(frozen=True, slots=True)
class RollLimits:
    """When a segment rolls: Kafka's topic configs and their defaults.

    Attributes:
        segment_bytes: `segment.bytes`.
        segment_ms: What `max_segment_ms` returns.
        segment_index_bytes: `segment.index.bytes`.
        index_interval_bytes: `index.interval.bytes`.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_index_bytes: int = SEGMENT_INDEX_BYTES
    index_interval_bytes: int = INDEX_INTERVAL_BYTES


@dataclass(slots=True)
class OpenSegment:
    """The state of an active segment that decides when it rolls.

    Attributes:
        base_offset: Its base offset.
        end_offset: Exclusive end of its appends.
        created_ms: When it was created.
        size_bytes: The size of its log.
        first_timestamp_ms: The largest timestamp of the first append. Without one, -1, and
            `created_ms` counts.
        unindexed_bytes: As in `OpenIndexes`.
        offset_entries: How many entries the offset index has.
        time_entries: How many entries the time index has.
        largest_timestamp_ms: Of all appends.
        indexed_timestamp_ms: Of the last time index entry.
    """

    base_offset: int
    end_offset: int
    created_ms: int = 0
    size_bytes: int = 0
    first_timestamp_ms: int = NO_TIMESTAMP
    unindexed_bytes: int = 0
    offset_entries: int = 0
    time_entries: int = 0
    largest_timestamp_ms: int = NO_TIMESTAMP
    indexed_timestamp_ms: int = NO_TIMESTAMP

    def should_roll(
        self, size_bytes: int, last_offset: int, timestamp_ms: int, limits: RollLimits, now_ms: int
    ) -> bool:
        """Return whether the segment rolls before an append.

        Args:
            size_bytes: The size of the append in bytes.
            last_offset: The last offset of the append, inclusive.
            timestamp_ms: The largest timestamp of the append in ms, -1 without one.
            limits: When segments of the topic roll.
            now_ms: The time of the append, in ms since the epoch.
        """
        if self.size_bytes + size_bytes > limits.segment_bytes:
            return True
        if self.size_bytes and self.time_waited_ms(timestamp_ms, now_ms) > limits.segment_ms:
            return True
        return (
            self.offset_entries >= limits.segment_index_bytes // OFFSET_ENTRY.itemsize
            or self.time_entries >= limits.segment_index_bytes // TIME_ENTRY.itemsize - 1
            or not 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET
        )

    def time_waited_ms(self, timestamp_ms: int, now_ms: int) -> int:
        """Return how long the segment has been open, by timestamps if its first append has one.

        Args:
            timestamp_ms: The next append's largest.
            now_ms: The time of the append, in ms since the epoch.
        """
        if self.first_timestamp_ms >= 0:
            return timestamp_ms - self.first_timestamp_ms
        return now_ms - self.created_ms

    def append(
        self, size_bytes: int, last_offset: int, timestamp_ms: int, limits: RollLimits
    ) -> None:
        """Count an append.

        Args:
            size_bytes: The size of the append in bytes.
            last_offset: The last offset of the append, inclusive.
            timestamp_ms: The largest timestamp of the append in ms, -1 without one.
            limits: When segments of the topic roll.
        """
        if not self.size_bytes:
            self.first_timestamp_ms = timestamp_ms
        if timestamp_ms > self.largest_timestamp_ms:
            self.largest_timestamp_ms = timestamp_ms
        if self.unindexed_bytes > limits.index_interval_bytes:
            self.offset_entries += 1
            if self.largest_timestamp_ms > self.indexed_timestamp_ms:
                self.time_entries += 1
                self.indexed_timestamp_ms = self.largest_timestamp_ms
            self.unindexed_bytes = 0
        self.unindexed_bytes += size_bytes
        self.size_bytes += size_bytes
        self.end_offset = last_offset + 1


@dataclass(frozen=True, slots=True)
class RollPlan:
    """Segments in order.

    Attributes:
        starts: Segment i gets appends `starts[i]` to before `starts[i + 1]`. The first segment is
            the one that was open, and may get no append.
        base_offsets: Of the segments.
        active: The last segment, after the appends.
    """

    starts: Longs
    base_offsets: Longs
    active: OpenSegment


def plan_rolls(
    appends: Appends,
    segment: OpenSegment,
    limits: RollLimits,
    clock_ms: Longs | None = None,
) -> RollPlan:
    """Return which segments the next appends go to.

    Args:
        appends: The next appends of the log.
        segment: The active segment; it is not changed.
        limits: When segments of the topic roll.
        clock_ms: The clock at each append; None stands for the time at which `segment` was created.

    Raises:
        ValueError: For an append that is larger than `segment.bytes`, whose offsets do not rise, or
            whose offsets do not fit into one segment; and for a `segment.index.bytes` below one
            time entry.
    """
    _check(appends, segment, limits)
    active = replace(segment)
    starts, base_offsets = [0], [segment.base_offset]
    clock = [segment.created_ms] * len(appends) if clock_ms is None else clock_ms.tolist()
    rows = zip(
        appends.size_bytes.tolist(),
        appends.last_offsets.tolist(),
        appends.max_timestamps.tolist(),
        clock,
        strict=True,
    )
    for number, (size_bytes, last_offset, timestamp_ms, now_ms) in enumerate(rows):
        if active.should_roll(size_bytes, last_offset, timestamp_ms, limits, now_ms):
            base_offset = max(_first_offset(appends, number), active.end_offset)
            if last_offset - base_offset > MAX_RELATIVE_OFFSET:
                raise ValueError(
                    f"append of offsets {base_offset} to {last_offset} fits no segment; split it"
                )
            # An empty segment that is rolled to its own base offset is re-created.
            if active.size_bytes or base_offset > active.base_offset:
                starts.append(number)
                base_offsets.append(base_offset)
            active = OpenSegment(base_offset, base_offset, now_ms)
        active.append(size_bytes, last_offset, timestamp_ms, limits)
    return RollPlan(np.array(starts, np.int64), np.array(base_offsets, np.int64), active)


def max_segment_ms(
    segment_ms: int, max_compaction_lag_ms: int, *, compacts: bool, jitter_ms: int = 0
) -> int:
    """Return how long a segment may stay open; Kafka's `LogConfig.maxSegmentMs`.

    Args:
        segment_ms: `segment.ms`.
        max_compaction_lag_ms: `max.compaction.lag.ms`, which bounds a compacted topic's segments.
        compacts: Whether `cleanup.policy` has compact.
        jitter_ms: Below min(`segment.jitter.ms`, `segment.ms`).
    """
    if compacts and max_compaction_lag_ms > 0:
        segment_ms = min(segment_ms, max_compaction_lag_ms)
    return segment_ms - jitter_ms


def _check(appends: Appends, segment: OpenSegment, limits: RollLimits) -> None:
    """Refuse appends that no broker accepts."""
    large = np.flatnonzero(appends.size_bytes > limits.segment_bytes)
    if len(large):
        raise ValueError(
            f"append of {appends.size_bytes[large[0]]} bytes is larger than segment.bytes "
            f"{limits.segment_bytes}"
        )
    previous_offsets = np.append(segment.end_offset - 1, appends.last_offsets)[:-1]
    if (appends.last_offsets <= previous_offsets).any() or (appends.size_bytes <= 0).any():
        raise ValueError("appends must have bytes, and last offsets that rise")
    max_entries(limits.segment_index_bytes, TIME_ENTRY.itemsize)


def _first_offset(appends: Appends, number: int) -> int:
    """Return the first offset of an append, the smallest possible one if it is unknown."""
    first_offset = int(appends.first_offsets[number])
    if first_offset != UNKNOWN_OFFSET:
        return first_offset
    return int(appends.last_offsets[number]) - MAX_RELATIVE_OFFSET
