"""What becomes of each batch in a cleaning; Kafka's `BatchRetention` and `MemoryRecords.filterTo`.

The rule (docs/format.md, 20):

    unchanged   all its records are retained, and it needs no new delete horizon
    rewritten   some of its records are retained, or it needs a delete horizon
    emptied     no record is retained, but its last offset is: a header without records stays
    deleted     else

The last offset of a batch is retained if a producer is known by it (`producer_last_batches`), or if
it ends the part of the log that is cleaned. A control batch keeps its record until its marker is
removable (`removable_markers`) and past its delete horizon (`tombstone_retention`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.cleaning.tombstone_retention import (
    delete_horizons,
    has_delete_horizon,
    is_past_delete_horizon,
)

_NO_OFFSETS: Longs = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class CleaningContext:
    """What a cleaning has to know of a partition apart from the keys of its records.

    Attributes:
        now_ms: The time of the cleaning, in ms since the epoch.
        delete_horizon_ms: The delete horizon that it writes, in ms since the epoch.
        retain_empty_offsets: Last offsets of batches that stay even without a record, rising.
        removable_markers: Offsets of transaction markers without data, rising.
    """

    now_ms: int
    delete_horizon_ms: int
    retain_empty_offsets: Longs = field(default_factory=_NO_OFFSETS.copy)
    removable_markers: Longs = field(default_factory=_NO_OFFSETS.copy)


@dataclass(frozen=True, slots=True)
class BatchRetention:
    """What becomes of each batch: one that no mask has is deleted.

    Attributes:
        is_unchanged: Which batches keep their bytes.
        is_rewritten: Which are written with fewer records, or with a delete horizon.
        is_emptied: Which become a header without records.
        has_horizon: Which have a delete horizon after the cleaning, unless they are emptied.
        horizons_ms: Their delete horizons.
    """

    is_unchanged: Mask
    is_rewritten: Mask
    is_emptied: Mask
    has_horizon: Mask
    horizons_ms: Longs


def plan_batch_retention(
    batches: v2.Batches,
    record_counts: Longs,
    retained: Mask,
    tombstones: Mask,
    context: CleaningContext,
) -> BatchRetention:
    """Return what becomes of each batch.

    Args:
        batches: The next batches of a segment.
        record_counts: Data records of each batch, 0 for control batches.
        retained: Which data records are retained, tombstones past their horizon left out.
        tombstones: Which data records are tombstones.
        context: What the cleaning knows of the partition apart from keys.
    """
    is_marker = batches.is_control
    is_removable = is_marker
    if is_marker.any():
        is_removable = is_marker & np.isin(batches.base_offsets, context.removable_markers)
    counts = np.where(is_marker, batches.headers["count"].astype(np.int64), record_counts)
    retained_counts = np.where(is_marker, counts, count_by_batch(retained, record_counts))
    retained_counts[is_removable & is_past_delete_horizon(batches, context.now_ms)] = 0
    has_tombstones = count_by_batch(retained & tombstones, record_counts) > 0
    had_horizon = has_delete_horizon(batches)
    needs_horizon = ~had_horizon & (retained_counts > 0) & (is_removable | has_tombstones)
    retains_offset = np.isin(batches.next_offsets - 1, context.retain_empty_offsets)
    # A batch that an earlier cleaning emptied is unchanged too, if its offset is still retained.
    is_unchanged = (retained_counts == counts) & ((retained_counts > 0) | retains_offset)
    is_unchanged &= ~needs_horizon
    return BatchRetention(
        is_unchanged,
        (retained_counts > 0) & ~is_unchanged,
        (retained_counts == 0) & retains_offset & ~is_unchanged,
        had_horizon | needs_horizon,
        delete_horizons(batches, needs_horizon, context.delete_horizon_ms),
    )


def count_by_batch(mask: Mask, record_counts: Longs) -> Longs:
    """Return for how many records of each batch a mask holds.

    Args:
        mask: A bit a data record.
        record_counts: Data records of each batch.
    """
    rows = np.flatnonzero(mask)
    counts: Longs = np.diff(np.searchsorted(rows, np.append(0, np.cumsum(record_counts))))
    return counts
