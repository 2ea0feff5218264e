"""The offset index, `.index`: where appends start (docs/format.md, 8.1; Kafka's `OffsetIndex`).

    offset  size  field
         0     4  relative offset   last offset of the append, minus the segment's base offset
         4     4  position          first byte of the append in the log

Offsets strictly rise. `decode_offset_index` reads a file as a broker opens it, and checks nothing.
`parse_offset_index` is for lookups in a log that a broker may be writing, or that is cut or
foreign: there an index is a hint, a malformed one is None, and the log decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs
from klog.logformat.indexes.abstract_index import (
    check_entry_number,
    check_size,
    count_used,
    relative_offsets,
)

ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
MAX_POSITION = (1 << 31) - 1


class OffsetPosition(NamedTuple):
    """One entry: an absolute offset, and a position in the segment's log."""

    offset: int
    position: int


@dataclass(frozen=True, slots=True)
class OffsetIndex:
    """Entries in order: absolute `offsets`, `positions` in the segment's log."""

    offsets: Longs
    positions: Longs
    base_offset: int

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.offsets)

    def entry(self, number: int) -> OffsetPosition:
        """Return one entry.

        Args:
            number: Its number, from 0.

        Raises:
            ValueError: If there is no such entry.
        """
        check_entry_number(number, len(self))
        return OffsetPosition(int(self.offsets[number]), int(self.positions[number]))

    @property
    def last_offset(self) -> int:
        """Return the last entry's offset, the base offset without entries."""
        return int(self.offsets[-1]) if len(self) else self.base_offset

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the entry with the greatest offset at or below an offset; else (base offset, 0).

        Args:
            offset: An absolute offset.
        """
        number = int(np.searchsorted(self.offsets, offset, "right")) - 1
        return self.entry(number) if number >= 0 else OffsetPosition(self.base_offset, 0)

    def position_before(self, offset: int) -> int:
        """Return a position from which a scan finds every batch that reaches an offset.

        Args:
            offset: An absolute offset.
        """
        return self.lookup(offset).position


def empty_offset_index(base_offset: int) -> OffsetIndex:
    """Return an index without entries.

    Args:
        base_offset: The base offset of its segment.
    """
    return OffsetIndex(np.empty(0, np.int64), np.empty(0, np.int64), base_offset)


def encode_offset_index(index: OffsetIndex) -> bytes:
    """Encode a `.index`, trimmed to its entries, as after a roll or a clean stop.

    Args:
        index: The entries.

    Raises:
        ValueError: For an offset or a position that 4 bytes do not hold.
    """
    _check_positions(index.positions)
    entries = np.empty(len(index), ENTRY)
    entries["offset"] = relative_offsets(index.offsets, index.base_offset)
    entries["position"] = index.positions
    return entries.tobytes()


def decode_offset_index(data: bytes, base_offset: int) -> OffsetIndex:
    """Decode a `.index` as a broker opens it: every complete entry, zeros too, unchecked.

    Args:
        data: The whole file.
        base_offset: The base offset of its segment.
    """
    entries = np.frombuffer(data, ENTRY, len(data) // ENTRY.itemsize)
    offsets = entries["offset"].astype(np.int64) + base_offset
    return OffsetIndex(offsets, entries["position"].astype(np.int64), base_offset)


def check_offset_index(data: bytes, base_offset: int) -> None:
    """Check a `.index` as a broker's sanity check does: its size and its last entry.

    Args:
        data: The whole file; zeros after the entries pass.
        base_offset: The base offset of its segment.

    Raises:
        CorruptRecordError: With the position in the file.
    """
    index = decode_offset_index(data, base_offset)
    if len(index) and index.last_offset < base_offset:
        raise CorruptRecordError(
            f"last offset {index.last_offset} of the offset index is below base offset "
            f"{base_offset}",
            (len(index) - 1) * ENTRY.itemsize,
        )
    check_size(len(data), ENTRY.itemsize)


def parse_offset_index(data: bytes, base_offset: int, log_bytes: int) -> OffsetIndex | None:
    """Decode a `.index`; None if it is malformed.

    Preallocated zeros after the last entry are not entries. Entries that point past the end of the
    log are left out: the log may have been read before they were written.

    Args:
        data: The whole file.
        base_offset: The base offset of its segment.
        log_bytes: The size of the log.
    """
    if len(data) % ENTRY.itemsize:
        return None
    # A broker makes ten megabytes of room, so only what it has used is decoded.
    count = count_used(np.frombuffer(data, ENTRY)["position"])
    index = decode_offset_index(data[: count * ENTRY.itemsize], base_offset)
    offsets, positions = index.offsets, index.positions
    if count and (
        int(offsets[0]) < base_offset
        or int(positions[0]) < 0
        or (np.diff(offsets) <= 0).any()
        or (np.diff(positions) <= 0).any()
    ):
        return None
    count = int(np.searchsorted(positions, log_bytes))
    return OffsetIndex(offsets[:count], positions[:count], base_offset)


def _check_positions(positions: Longs) -> None:
    """Refuse positions that no segment has: a broker writes no log of more than 2 GiB."""
    if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) <= MAX_POSITION:
        raise ValueError(f"positions {positions.min()} to {positions.max()}; roll earlier")
