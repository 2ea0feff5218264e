"""Which part of a partition a compaction cleans, and whether its dirty ratio makes it due.

The rule is Kafka's (docs/format.md, 20; `LogCleanerManager.cleanableOffsets`). All segments below
the last stable offset may be cleaned; klog has no active segment. What was cleaned before ends at
`cleaned_to`. What is dirty begins there, or at the log start, and ends before the first segment
with a record younger than `min.compaction.lag.ms`. Segments are cleaned whole.

The dirty ratio is the share of dirty bytes in all bytes below that end. It must be above
`min.cleanable.dirty.ratio`, unless a dirty record has waited for `max.compaction.lag.ms`.

Two differences: if the log begins within a segment, klog counts all of it as dirty, a broker counts
it as clean too. And a broker only asks how long the first batch of a segment has waited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from klog.logformat.array_types import Longs


@dataclass(frozen=True, slots=True)
class CleaningLimits:
    """When to clean a topic: `min.cleanable.dirty.ratio`, `min.` and `max.compaction.lag.ms`."""

    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int


@dataclass(frozen=True, slots=True)
class CleanableRange:
    """The first `segment_count` segments of a partition: clean below an offset, dirty from it on.

    `end_offset` is the offset up to which the partition is clean afterwards.
    """

    first_dirty_offset: int
    end_offset: int
    segment_count: int
    clean_bytes: int
    dirty_bytes: int
    limits: CleaningLimits
    has_waited: bool

    @property
    def dirty_ratio(self) -> float:
        """Return the share of dirty bytes."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Return whether a compaction cleans the partition."""
        exceeds_ratio = self.dirty_ratio > self.limits.min_dirty_ratio
        return self.dirty_bytes > 0 and (self.has_waited or exceeds_ratio)


def cleanable_range(
    segments: pa.Table,
    log_start: int,
    last_stable: int,
    cleaned_to: int,
    limits: CleaningLimits,
    now_ms: int,
) -> CleanableRange:
    """Return what of a partition may be cleaned.

    Args:
        segments: Its segments in order of offset, as `segment_entries.SCHEMA`.
        log_start: Its log start offset.
        last_stable: Its last stable offset.
        cleaned_to: The offset up to which it was cleaned before.
        limits: When to clean.
        now_ms: The time of the compaction.
    """
    next_offsets, sizes = _numbers(segments, "next_offset"), _numbers(segments, "size_bytes")
    latest_ms = _numbers(segments, "max_timestamp_ms")
    earliest_ms = _numbers(segments, "min_timestamp_ms")
    first_dirty_offset = max(cleaned_to, log_start)
    if first_dirty_offset > last_stable:
        first_dirty_offset = log_start  # A broker does so if its checkpoint is after the log end.
    stop = int(np.searchsorted(next_offsets, last_stable, "right"))
    first_dirty = int(np.searchsorted(next_offsets, first_dirty_offset, "right"))
    if limits.min_lag_ms > 0:
        is_young = latest_ms[first_dirty:stop] > now_ms - limits.min_lag_ms
        if is_young.any():
            stop = first_dirty + int(np.argmax(is_young))
    end_offset = int(next_offsets[stop - 1]) if stop else first_dirty_offset
    dirty_ms = earliest_ms[first_dirty:stop]
    return CleanableRange(
        first_dirty_offset,
        max(end_offset, first_dirty_offset),
        stop,
        int(sizes[:first_dirty].sum()),
        int(sizes[first_dirty:stop].sum()),
        limits,
        bool(((dirty_ms > 0) & (dirty_ms < now_ms - limits.max_lag_ms)).any()),
    )


def _numbers(segments: pa.Table, column: str) -> Longs:
    values: Longs = segments[column].to_numpy()
    return values
