"""When a tombstone goes, and a removable transaction marker: the delete horizon of their batch.

The rule (docs/format.md, 20; KIP-534, `RecordBatch.deleteHorizonMs`): the first cleaning that
retains a tombstone, or finds a marker removable, writes a delete horizon into the header of their
batch: its own time plus `delete.retention.ms`. A later cleaning never changes it. A cleaning at or
after the delete horizon drops the tombstone, or the marker. So a reader who started at the oldest
offset has `delete.retention.ms` to reach a tombstone before it goes.

A batch v2 stores the horizon as its base timestamp, with a flag. Messages of formats v0 and v1 have
no horizon: a tombstone in them is rewritten as a batch v2.
"""

from __future__ import annotations

import numpy as np

from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2


def has_delete_horizon(batches: v2.Batches) -> Mask:
    """Return which batches have a delete horizon.

    Args:
        batches: Any batches.
    """
    mask: Mask = (batches.attributes & v2.DELETE_HORIZON) != 0
    return mask


def is_past_delete_horizon(batches: v2.Batches, now_ms: int) -> Mask:
    """Return which batches have a delete horizon that has passed.

    Args:
        batches: Any batches.
        now_ms: The time of the cleaning.
    """
    mask: Mask = has_delete_horizon(batches) & (_base_timestamps(batches) <= now_ms)
    return mask


def drop_expired_tombstones(
    batches: v2.Batches, record_counts: Longs, retained: Mask, tombstones: Mask, now_ms: int
) -> Mask:
    """Return which records are retained, without tombstones past their delete horizon.

    Args:
        batches: Any batches.
        record_counts: Data records of each batch.
        retained: Which data records their keys retain.
        tombstones: Which data records are tombstones.
        now_ms: The time of the cleaning.
    """
    is_past = is_past_delete_horizon(batches, now_ms)
    if not is_past.any():
        return retained
    return retained & ~(tombstones & np.repeat(is_past, record_counts))


def delete_horizons(batches: v2.Batches, is_new: Mask, delete_horizon_ms: int) -> Longs:
    """Return the delete horizon of each batch after a cleaning; of no meaning without one.

    Args:
        batches: Any batches.
        is_new: Which of them get a delete horizon from this cleaning.
        delete_horizon_ms: The time of this cleaning plus `delete.retention.ms`.
    """
    return np.where(is_new, delete_horizon_ms, _base_timestamps(batches))


def _base_timestamps(batches: v2.Batches) -> Longs:
    timestamps: Longs = batches.headers["base_timestamp"].astype(np.int64)
    return timestamps
