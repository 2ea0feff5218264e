"""The offset index, `.index`: where appends begin (docs/format.md, 8.1; Kafka's `OffsetIndex`).

    offset  size  field
         0     4  relative offset   last offset of the append, less the segment's base offset
         4     4  position          first byte of the append in the log

Offsets strictly rise. `decode_offset_index` takes a file for what a broker takes it, and checks
nothing; `read_offset_index` is for looking up in a log that may be live, cut or foreign: there an
index is a hint, one that is malformed is None, and the log decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.index import (
    SEGMENT_INDEX_BYTES,
    Longs,
    capacity,
    check_entry,
    check_whole,
    count_below,
    relative_offset,
    relative_offsets,
    used,
)

ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
MAX_POSITION = (1 << 31) - 1


class OffsetPosition(NamedTuple):
    """One entry: an offset, absolute, and a position in the segment's log."""

    offset: int
    position: int


@dataclass(frozen=True, slots=True)
class OffsetIndex:
    """Entries in order: `offsets` absolute, `positions` in the segment's log."""

    offsets: Longs
    positions: Longs
    base_offset: int

    def __len__(self) -> int:
        """Give the number of entries."""
        return len(self.offsets)

    def entry(self, number: int) -> OffsetPosition:
        """Give one entry by its number from 0; `ValueError` if there is none."""
        check_entry(number, len(self))
        return OffsetPosition(int(self.offsets[number]), int(self.positions[number]))

    @property
    def last_offset(self) -> int:
        """Give the last entry's offset, the base offset if there is none."""
        return int(self.offsets[-1]) if len(self) else self.base_offset

    def lookup(self, offset: int) -> OffsetPosition:
        """Give the entry with the greatest offset at or below this, else (base offset, 0)."""
        number = int(np.searchsorted(self.offsets, offset, "right")) - 1
        return self.entry(number) if number >= 0 else OffsetPosition(self.base_offset, 0)

    def position_before(self, offset: int) -> int:
        """Give the position of the last entry whose append ends at or before `offset`, else 0.

        Scanning from there meets every batch that reaches `offset` or beyond.
        """
        return self.lookup(offset).position

    def upper_bound(self, position: int, size_bytes: int) -> OffsetPosition | None:
        """Give the first entry at or behind the end of a fetch; None if none lies there.

        Kafka's `fetchUpperBoundOffset`: no batch of the fetch has an offset above the entry's.
        """
        number = int(np.searchsorted(self.positions, position + size_bytes, "left"))
        return self.entry(number) if number < len(self) else None

    def is_full(self, segment_index_bytes: int = SEGMENT_INDEX_BYTES) -> bool:
        """Tell whether no entry more has room: the segment rolls before its next append."""
        return len(self) >= capacity(segment_index_bytes, ENTRY.itemsize)

    def truncated_to(self, offset: int) -> OffsetIndex:
        """Keep the entries below `offset`, as a broker does when it cuts the log there."""
        kept = count_below(self.offsets, offset)
        return OffsetIndex(self.offsets[:kept], self.positions[:kept], self.base_offset)

    def with_entries(
        self,
        entries: Sequence[tuple[int, int]],
        segment_index_bytes: int = SEGMENT_INDEX_BYTES,
    ) -> OffsetIndex:
        """Append (offset, position) entries as a broker does.

        `ValueError` if the index is full, or if an offset does not rise or is out of the segment's
        range.
        """
        offsets = [offset for offset, _ in entries]
        if len(self) + len(entries) > capacity(segment_index_bytes, ENTRY.itemsize):
            raise ValueError(f"offset index is full with {len(self)} entries; roll first")
        last = self.last_offset if len(self) else self.base_offset - 1
        for offset in offsets:
            relative_offset(offset, self.base_offset)
            if offset <= last:
                raise ValueError(f"offset {offset} behind an index entry for offset {last}")
            last = offset
        return OffsetIndex(
            np.append(self.offsets, np.array(offsets, np.int64)),
            np.append(self.positions, np.array([at for _, at in entries], np.int64)),
            self.base_offset,
        )


def empty_offset_index(base_offset: int) -> OffsetIndex:
    """Give the index of a segment that has none yet."""
    return OffsetIndex(np.empty(0, np.int64), np.empty(0, np.int64), base_offset)


def _check_positions(positions: Longs) -> None:
    """Refuse positions that are in no segment: no broker makes a log of more than 2 GiB."""
    if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) <= MAX_POSITION:
        raise ValueError(f"positions {positions.min()} to {positions.max()}; roll earlier")


def encode_offset_index(index: OffsetIndex) -> bytes:
    """Write a `.index` trimmed to its entries, as it is after a roll or a clean stop.

    `ValueError` at an offset or a position that 4 bytes do not hold.
    """
    _check_positions(index.positions)
    entries = np.empty(len(index), ENTRY)
    entries["offset"] = relative_offsets(index.offsets, index.base_offset)
    entries["position"] = index.positions
    return entries.tobytes()


def decode_offset_index(data: bytes, base_offset: int) -> OffsetIndex:
    """Decode a `.index` as a broker opens it: every whole entry, zeros among them, unchecked."""
    entries = np.frombuffer(data, ENTRY, len(data) // ENTRY.itemsize)
    offsets = entries["offset"].astype(np.int64) + base_offset
    return OffsetIndex(offsets, entries["position"].astype(np.int64), base_offset)


def check_offset_index(data: bytes, base_offset: int) -> None:
    """Raise `CorruptRecordError` where a broker's sanity check finds a `.index` corrupt.

    It looks at the last entry and the size alone: zeros behind the entries pass.
    """
    index = decode_offset_index(data, base_offset)
    if len(index) and index.last_offset < base_offset:
        raise CorruptRecordError(
            f"last offset {index.last_offset} of the offset index is below base offset "
            f"{base_offset}",
            (len(index) - 1) * ENTRY.itemsize,
        )
    check_whole(len(data), ENTRY.itemsize)


def read_offset_index(data: bytes, base_offset: int, log_bytes: int) -> OffsetIndex | None:
    """Decode a `.index`; None if it is malformed.

    The zeros that a broker preallocates behind the last entry are not entries, and those that point
    past the end of the log are left out: the log may have been opened before they were written.
    """
    if len(data) % ENTRY.itemsize:
        return None
    index = decode_offset_index(data, base_offset)
    filled = used(index.positions)
    offsets, positions = index.offsets[:filled], index.positions[:filled]
    if filled and (
        int(offsets[0]) < base_offset
        or int(positions[0]) < 0
        or (np.diff(offsets) <= 0).any()
        or (np.diff(positions) <= 0).any()
    ):
        return None
    inside = int(np.searchsorted(positions, log_bytes))
    return OffsetIndex(offsets[:inside], positions[:inside], base_offset)
