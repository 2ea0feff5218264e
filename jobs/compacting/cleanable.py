"""Which part of a partition a compaction cleans, and whether it is worth it.

The rule is Kafka's (docs/format.md, 20; `LogCleanerManager.cleanableOffsets`), but for the active
segment, which klog has not: everything below the last stable offset may be cleaned. What was
cleaned before ends at `cleaned_to`; what is dirty begins there, or at the log start, and ends
before the first segment that has a record younger than `min.compaction.lag.ms`. Segments are
cleaned whole. The dirty ratio is the dirty bytes' share of all bytes below that end. It has to be
above `min.cleanable.dirty.ratio`, unless a dirty record has waited for `max.compaction.lag.ms`.
Where a segment is dirty in part, for the log begins within it, all of it counts as dirty; a broker
counts it as clean besides. And a broker asks only how long the first batch of a segment has waited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from klog.logformat.index import Longs


@dataclass(frozen=True, slots=True)
class Lags:
    """A topic's configs that say when to clean; times in ms."""

    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int


@dataclass(frozen=True, slots=True)
class Cleanable:
    """The segments to be cleaned: those before `behind`, by number; dirty from `dirty_from` on.

    `end` is the offset up to which the partition is clean afterwards.
    """

    dirty_from: int
    end: int
    behind: int
    clean_bytes: int
    dirty_bytes: int
    is_due: bool

    @property
    def dirty_ratio(self) -> float:
        """Give the dirty bytes' share."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def cleanable(
    segments: pa.Table, log_start: int, last_stable: int, cleaned_to: int, lags: Lags, now_ms: int
) -> Cleanable:
    """Say what of a partition is to be cleaned; `segments` has `entries.SCHEMA`, in order."""
    nexts, sizes = _numbers(segments, "next_offset"), _numbers(segments, "size_bytes")
    latest, earliest = (_numbers(segments, f"{one}_timestamp_ms") for one in ("max", "min"))
    dirty_from = max(cleaned_to, log_start)
    if dirty_from > last_stable:
        dirty_from = log_start  # As a broker does with a checkpoint behind the log's end.
    behind = int(np.searchsorted(nexts, last_stable, "right"))
    first_dirty = int(np.searchsorted(nexts, dirty_from, "right"))
    if lags.min_lag_ms > 0:
        young = latest[first_dirty:behind] > now_ms - lags.min_lag_ms
        if young.any():
            behind = first_dirty + int(np.argmax(young))
    end = int(nexts[behind - 1]) if behind else dirty_from
    clean, dirty = int(sizes[:first_dirty].sum()), int(sizes[first_dirty:behind].sum())
    waiting = earliest[first_dirty:behind]
    has_waited = bool(((waiting > 0) & (waiting < now_ms - lags.max_lag_ms)).any())
    found = Cleanable(dirty_from, max(end, dirty_from), behind, clean, dirty, is_due=False)
    is_due = dirty > 0 and (has_waited or found.dirty_ratio > lags.min_dirty_ratio)
    return Cleanable(dirty_from, found.end, behind, clean, dirty, is_due)


def _numbers(segments: pa.Table, name: str) -> Longs:
    found: Longs = segments[name].to_numpy()
    return found
