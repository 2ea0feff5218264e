"""Where a log rolls to a new segment (docs/format.md, 9; Kafka's `LogSegment.shouldRoll`).

The rule: a segment is rolled before an append if any of these holds:

    size    segment and append together are larger than segment.bytes
    time    the segment is not empty, and the append's largest timestamp is more than segment.ms
            above that of the segment's first append; where that one has none, the clock counts
    index   the offset index is full, or the time index but for the entry of the roll
    span    the append's last offset does not fit into 4 bytes relative to the base offset

The new base offset is the first offset of the append, or the log's end if that is above it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from klog.logformat.batch import NO_TIMESTAMP
from klog.logformat.index import MAX_RELATIVE_OFFSET, SEGMENT_INDEX_BYTES, Longs, capacity
from klog.logformat.indexing import INDEX_INTERVAL_BYTES, UNKNOWN_OFFSET, Appends
from klog.logformat.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.time_index import ENTRY as TIME_ENTRY


@dataclass(frozen=True, slots=True)
class RollLimits:
    """What a segment may grow to; Kafka's topic configs and their defaults.

    `segment_ms` is what `max_segment_ms` leaves of it.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_index_bytes: int = SEGMENT_INDEX_BYTES
    index_interval_bytes: int = INDEX_INTERVAL_BYTES


@dataclass(slots=True)
class OpenSegment:
    """What of an active segment decides whether it rolls; `take` keeps it up to date.

    `first_timestamp_ms` is the largest timestamp of the first append, -1 if it has none; from then
    on `created_ms` counts. Entries of the indexes are only counted; indexing.py says what they are.
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

    def must_roll(
        self, size_bytes: int, last_offset: int, timestamp_ms: int, limits: RollLimits, now_ms: int
    ) -> bool:
        """Tell whether the segment rolls before an append of this size, offset and timestamp."""
        if self.size_bytes + size_bytes > limits.segment_bytes:
            return True
        if self.size_bytes and self.waited_ms(timestamp_ms, now_ms) > limits.segment_ms:
            return True
        return (
            self.offset_entries >= limits.segment_index_bytes // OFFSET_ENTRY.itemsize
            or self.time_entries >= limits.segment_index_bytes // TIME_ENTRY.itemsize - 1
            or not 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET
        )

    def waited_ms(self, timestamp_ms: int, now_ms: int) -> int:
        """Give how long the segment was open for, by the timestamps if its first append has one."""
        if self.first_timestamp_ms >= 0:
            return timestamp_ms - self.first_timestamp_ms
        return now_ms - self.created_ms

    def take(
        self, size_bytes: int, last_offset: int, timestamp_ms: int, limits: RollLimits
    ) -> None:
        """Count an append."""
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
    """Segments in order: segment i gets appends `starts[i]` to before `starts[i + 1]`.

    The first is the one that was open, and may get none. `active` is the last, after the appends.
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
    """Plan which segments the next appends go to. `segment` is the active one; it stays as it is.

    `clock_ms` is the clock at each append; None is the moment at which `segment` was created.
    `ValueError` at an append that is larger than `segment.bytes`, or whose offsets do not rise or
    do not fit into one segment, and for a `segment.index.bytes` without room for a time entry.
    """
    _check(appends, segment, limits)
    active = replace(segment)
    starts, bases = [0], [segment.base_offset]
    clock = [segment.created_ms] * len(appends) if clock_ms is None else clock_ms.tolist()
    rows = zip(
        appends.size_bytes.tolist(),
        appends.last_offsets.tolist(),
        appends.max_timestamps.tolist(),
        clock,
        strict=True,
    )
    for number, (size, last, timestamp, now) in enumerate(rows):
        if active.must_roll(size, last, timestamp, limits, now):
            base = max(_first_offset(appends, number), active.end_offset)
            if last - base > MAX_RELATIVE_OFFSET:
                raise ValueError(f"append of offsets {base} to {last} fits no segment; cut it")
            # An empty segment that is rolled to its own base offset is only made anew.
            if active.size_bytes or base > active.base_offset:
                starts.append(number)
                bases.append(base)
            active = OpenSegment(base, base, now)
        active.take(size, last, timestamp, limits)
    return RollPlan(np.array(starts, np.int64), np.array(bases, np.int64), active)


def max_segment_ms(
    segment_ms: int, max_compaction_lag_ms: int, *, compacts: bool, jitter_ms: int = 0
) -> int:
    """Give how long a segment may span: at most a compacted topic's lag, less its own jitter.

    Kafka's `LogConfig.maxSegmentMs`; the jitter is below min(segment.jitter.ms, segment.ms).
    """
    bounded = compacts and max_compaction_lag_ms > 0
    return (min(segment_ms, max_compaction_lag_ms) if bounded else segment_ms) - jitter_ms


def _check(appends: Appends, segment: OpenSegment, limits: RollLimits) -> None:
    """Refuse appends that no broker takes."""
    large = np.flatnonzero(appends.size_bytes > limits.segment_bytes)
    if len(large):
        raise ValueError(
            f"append of {appends.size_bytes[large[0]]} bytes is larger than segment.bytes "
            f"{limits.segment_bytes}"
        )
    before = np.append(segment.end_offset - 1, appends.last_offsets)[:-1]
    if (appends.last_offsets <= before).any() or (appends.size_bytes <= 0).any():
        raise ValueError("appends must have bytes, and last offsets that rise")
    capacity(limits.segment_index_bytes, TIME_ENTRY.itemsize)


def _first_offset(appends: Appends, number: int) -> int:
    """Give the first offset of an append, or the least it can be where it is not known."""
    first = int(appends.first_offsets[number])
    known = first != UNKNOWN_OFFSET
    return first if known else int(appends.last_offsets[number]) - MAX_RELATIVE_OFFSET
