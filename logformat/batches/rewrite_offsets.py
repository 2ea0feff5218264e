"""Rewrite what lies outside a batch's CRC: its base offset and its leader epoch.

The rule: nothing else changes, neither a record nor a checksum. A partition's leader writes these
fields into batches that it receives, and klog when it moves batches to other offsets
(docs/format.md, 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat.array_types import Longs
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.scan_batches import check_batch_offsets


@dataclass(frozen=True, slots=True)
class BatchRun:
    """Complete batches without gaps: all of `data`, in which `batches` lie."""

    data: bytes
    batches: v2.Batches

    def rewritten(self) -> BatchRun:
        """Return a copy whose bytes have the offsets of `batches`."""
        data = bytearray(self.data)
        batches = rewrite_offsets(data, self.batches)
        return BatchRun(bytes(data), batches)


def shift_offsets(batches: v2.Batches, shift: int) -> v2.Batches:
    """Return batches with higher offsets; their bytes keep the old ones.

    Args:
        batches: The batches.
        shift: What to add to each offset.

    Raises:
        UnsupportedFormatError: There are messages of formats v0 and v1: their offsets lie under the
            CRC.
    """
    if not shift or not len(batches):
        return batches
    is_legacy = batches.is_legacy
    if is_legacy.any():
        raise UnsupportedFormatError(
            "messages of formats v0 and v1 cannot get other offsets",
            int(batches.starts[np.argmax(is_legacy)]),
        )
    headers = batches.headers.copy()
    headers["base_offset"] = batches.base_offsets + shift
    return v2.Batches(batches.starts, batches.ends, headers)


def rewrite_offsets(
    data: bytearray,
    batches: v2.Batches,
    base_offsets: Longs | None = None,
    leader_epoch: int | None = None,
) -> v2.Batches:
    """Write base offsets and a leader epoch into batches, and return the rewritten batches.

    Args:
        data: The buffer of the batches; it does not change if there is an error.
        batches: The batches, all of format v2.
        base_offsets: One for each batch; None for those of `batches`.
        leader_epoch: None for those of `batches`.

    Raises:
        ValueError: Offsets do not rise, the leader epoch is below -1, or a batch is not of format
            v2.
    """
    if (batches.headers["magic"] != v2.MAGIC).any():
        raise ValueError("only batches of format v2 keep offset and leader epoch outside their CRC")
    headers = batches.headers.copy()
    if base_offsets is not None:
        headers["base_offset"] = base_offsets
    if leader_epoch is not None:
        if not v2.UNSET <= leader_epoch <= v2.MAX_LEADER_EPOCH:
            raise ValueError(f"leader epoch {leader_epoch} does not exist")
        headers["leader_epoch"] = leader_epoch
    rewritten = v2.Batches(batches.starts, batches.ends, headers)
    try:
        check_batch_offsets(rewritten)
    except CorruptRecordError as exc:
        raise ValueError(f"batches cannot get these offsets: {exc.reason}") from exc
    if len(batches):
        rows = len(data) - v2.HEADER_BYTES + 1
        view: v2.Headers = np.ndarray((rows,), v2.HEADER, data, 0, (1,))
        for name in ("base_offset", "leader_epoch"):
            view[name][batches.starts] = headers[name]
    return rewritten
