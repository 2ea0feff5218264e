"""Which records of one segment a cleaning retains, as a bitmap.

The rule: a bit a data record, in the order of the log. Records of control batches have no bits.
A tombstone has a bit of its own, as its key does not decide when it goes (`tombstone_retention`;
docs/format.md, 20).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from klog.logformat.array_types import Mask


@dataclass(frozen=True, slots=True)
class RetainedBitmap:
    """Packed bits of one segment's data records.

    Attributes:
        count: How many data records there are.
        retained: Which of them their keys retain.
        tombstones: Which of them are tombstones; empty without any.
        is_plain: Whether the segment has neither tombstones nor control batches nor batches without
            records: then `retained` alone decides what becomes of it.
    """

    count: int
    retained: bytes
    tombstones: bytes = b""
    is_plain: bool = True

    @property
    def retained_count(self) -> int:
        """Return how many records are retained."""
        return int(np.unpackbits(np.frombuffer(self.retained, np.uint8)).sum())

    def union(self, other: RetainedBitmap) -> RetainedBitmap:
        """Return a bitmap that retains what either retains.

        Args:
            other: Of the same segment, for another range of keys or another part of it.
        """
        bits, other_bits = (np.frombuffer(bitmap.retained, np.uint8) for bitmap in (self, other))
        return replace(self, retained=(bits | other_bits).tobytes())

    def masks(self) -> tuple[Mask, Mask]:
        """Return which records are retained, and which are tombstones."""
        retained = _unpacked(self.retained, self.count)
        if not self.tombstones:
            return retained, np.zeros(self.count, np.bool_)
        return retained, _unpacked(self.tombstones, self.count)


def retained_bitmap(retained: Mask, tombstones: Mask) -> RetainedBitmap:
    """Return the bitmap of records that are not in control batches.

    Args:
        retained: Which data records are retained.
        tombstones: Which of them are tombstones.
    """
    packed_tombstones = pack_tombstones(tombstones)
    return RetainedBitmap(
        len(retained), np.packbits(retained).tobytes(), packed_tombstones, not packed_tombstones
    )


def pack_tombstones(tombstones: Mask) -> bytes:
    """Return the bits of a mask, or no byte if there is no tombstone.

    Args:
        tombstones: Which records are tombstones.
    """
    return np.packbits(tombstones).tobytes() if tombstones.any() else b""


def _unpacked(bits: bytes, count: int) -> Mask:
    mask: Mask = np.unpackbits(np.frombuffer(bits, np.uint8), count=count).view(np.bool_)
    return mask
