"""Rewrite in place what lies outside a batch's CRC: its base offset and its leader epoch.

The rule: nothing else changes, neither a record nor a checksum. A partition's leader stamps batches
so, and so may whoever moves them to other offsets (docs/format.md, 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat import batch as v2
from klog.logformat.epochs import MAX_EPOCH
from klog.logformat.varint import Longs


@dataclass(frozen=True, slots=True)
class Run:
    """Whole batches, one behind the other: all of `data`, in which `batches` lie."""

    data: bytes
    batches: v2.Batches

    def stamped(self) -> Run:
        """Write into a copy of the bytes the offsets that the batches are said to have."""
        data = bytearray(self.data)
        batches = restamp(data, self.batches)
        return Run(bytes(data), batches)


def moved(batches: v2.Batches, shift: int) -> v2.Batches:
    """Give batches whose offsets are so much higher; in their bytes they are as they were.

    Raises `UnsupportedFormatError` for messages of formats v0 and v1: theirs lie under the CRC.
    """
    if not shift or not len(batches):
        return batches
    is_legacy = batches.is_legacy
    if is_legacy.any():
        raise UnsupportedFormatError(
            "messages of formats v0 and v1 cannot be given other offsets",
            int(batches.starts[np.argmax(is_legacy)]),
        )
    headers = batches.headers.copy()
    headers["base_offset"] = batches.base_offsets + shift
    return v2.Batches(batches.starts, batches.ends, headers)


def restamp(
    data: bytearray,
    batches: v2.Batches,
    base_offsets: Longs | None = None,
    leader_epoch: int | None = None,
) -> v2.Batches:
    """Put base offsets, one a batch, or a leader epoch, or both, into batches that lie in `data`.

    Gives the batches as they are then; `data` is left as it was if it raises `ValueError`: for
    offsets that do not rise, a leader epoch below -1, batches that are not of format v2.
    """
    if (batches.headers["magic"] != v2.MAGIC).any():
        raise ValueError("only batches of format v2 keep offset and leader epoch outside their CRC")
    headers = batches.headers.copy()
    if base_offsets is not None:
        headers["base_offset"] = base_offsets
    if leader_epoch is not None:
        if not v2.NONE_SET <= leader_epoch <= MAX_EPOCH:
            raise ValueError(f"there is no leader epoch {leader_epoch}")
        headers["leader_epoch"] = leader_epoch
    stamped = v2.Batches(batches.starts, batches.ends, headers)
    try:
        v2.check_offsets(stamped)
    except CorruptRecordError as exc:
        raise ValueError(f"batches cannot be given these offsets: {exc.reason}") from exc
    if len(batches):
        rows = len(data) - v2.HEADER_BYTES + 1
        view: v2.Headers = np.ndarray((rows,), v2.HEADER, data, 0, (1,))
        for name in ("base_offset", "leader_epoch"):
            view[name][batches.starts] = headers[name]
    return stamped
