"""The time index, `.timeindex`: the largest timestamp up to an offset (docs/format.md, 8.2).

    offset  size  field
         0     8  timestamp         ms, the largest so far in the segment
         8     4  relative offset   last offset of the earliest batch that has it, less the base

Timestamps strictly rise, offsets do not fall; Kafka's class is `TimeIndex`. As with the offset
index, `decode_time_index` takes a file for what a broker takes it, and `read_time_index` for a hint
that may be malformed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.batch import NO_TIMESTAMP
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

ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])


class TimestampOffset(NamedTuple):
    """One entry: a timestamp in ms, and the offset, absolute, that had it."""

    timestamp_ms: int
    offset: int


@dataclass(frozen=True, slots=True)
class TimeIndex:
    """Entries in order: `timestamps` in ms, the largest so far, and the `offsets` that had them."""

    timestamps: Longs
    offsets: Longs
    base_offset: int

    def __len__(self) -> int:
        """Give the number of entries."""
        return len(self.timestamps)

    def entry(self, number: int) -> TimestampOffset:
        """Give one entry by its number from 0; `ValueError` if there is none."""
        check_entry(number, len(self))
        return TimestampOffset(int(self.timestamps[number]), int(self.offsets[number]))

    @property
    def last_entry(self) -> TimestampOffset:
        """Give the last entry, (-1, base offset) if there is none.

        It is what a broker takes for the largest timestamp of a segment it opens.
        """
        if not len(self):
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return self.entry(len(self) - 1)

    def lookup(self, timestamp_ms: int) -> TimestampOffset:
        """Give the entry with the greatest timestamp at or below this, else (-1, base offset)."""
        number = int(np.searchsorted(self.timestamps, timestamp_ms, "right")) - 1
        none = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return self.entry(number) if number >= 0 else none

    def entry_before(self, timestamp_ms: int) -> int:
        """Give the number of the last entry whose timestamp is below this, -1 if there is none.

        No record up to that entry's offset has a timestamp of `timestamp_ms` or more.
        """
        return int(np.searchsorted(self.timestamps, timestamp_ms, "left")) - 1

    def is_full(self, segment_index_bytes: int = SEGMENT_INDEX_BYTES) -> bool:
        """Tell whether only the slot is left that is kept for the entry of the roll."""
        return len(self) >= capacity(segment_index_bytes, ENTRY.itemsize) - 1

    def truncated_to(self, offset: int) -> TimeIndex:
        """Keep the entries below `offset`, as a broker does when it cuts the log there."""
        kept = count_below(self.offsets, offset)
        return TimeIndex(self.timestamps[:kept], self.offsets[:kept], self.base_offset)

    def with_entries(
        self,
        entries: Sequence[tuple[int, int]],
        segment_index_bytes: int = SEGMENT_INDEX_BYTES,
        *,
        reserved: int = 1,
    ) -> TimeIndex:
        """Append (timestamp, offset) entries as a broker does: those of a larger timestamp only.

        `reserved` slots are to stay free: one until the entry of the roll, which may take it (0).
        `ValueError` if they would not, if timestamp or offset falls, or if an offset is out of the
        segment's range.
        """
        room = capacity(segment_index_bytes, ENTRY.itemsize) - reserved
        new: list[TimestampOffset] = []
        last = self.last_entry
        for timestamp, offset in entries:
            count = len(self) + len(new)
            if count >= room:
                raise ValueError(f"time index is full with {count} entries; roll first")
            if count and offset < last.offset:
                raise ValueError(f"offset {offset} behind an index entry for offset {last.offset}")
            if count and timestamp < last.timestamp_ms:
                raise ValueError(f"timestamp {timestamp} behind an index entry for later: {last}")
            if timestamp > last.timestamp_ms:
                relative_offset(offset, self.base_offset)
                last = TimestampOffset(timestamp, offset)
                new.append(last)
        timestamps, offsets = np.array(new, np.int64).reshape(-1, 2).T
        return TimeIndex(
            np.append(self.timestamps, timestamps),
            np.append(self.offsets, offsets),
            self.base_offset,
        )


def empty_time_index(base_offset: int) -> TimeIndex:
    """Give the index of a segment that has none yet."""
    return TimeIndex(np.empty(0, np.int64), np.empty(0, np.int64), base_offset)


def encode_time_index(index: TimeIndex) -> bytes:
    """Write a `.timeindex` trimmed to its entries, as it is after a roll or a clean stop."""
    entries = np.empty(len(index), ENTRY)
    entries["timestamp"] = index.timestamps
    entries["offset"] = relative_offsets(index.offsets, index.base_offset)
    return entries.tobytes()


def decode_time_index(data: bytes, base_offset: int) -> TimeIndex:
    """Decode a `.timeindex` as a broker opens it: every whole entry, zeros too, unchecked."""
    entries = np.frombuffer(data, ENTRY, len(data) // ENTRY.itemsize)
    offsets = entries["offset"].astype(np.int64) + base_offset
    return TimeIndex(entries["timestamp"].astype(np.int64), offsets, base_offset)


def check_time_index(data: bytes, base_offset: int) -> None:
    """Raise `CorruptRecordError` where a broker's sanity check finds a `.timeindex` corrupt.

    It looks at the first and the last entry and at the size alone.
    """
    index = decode_time_index(data, base_offset)
    last, at = index.last_entry, (len(index) - 1) * ENTRY.itemsize
    if len(index) and last.timestamp_ms < index.entry(0).timestamp_ms:
        raise CorruptRecordError(
            f"last timestamp {last.timestamp_ms} of the time index is below the first, "
            f"{index.entry(0).timestamp_ms}",
            at,
        )
    if len(index) and last.offset < base_offset:
        raise CorruptRecordError(
            f"last offset {last.offset} of the time index is below base offset {base_offset}", at
        )
    check_whole(len(data), ENTRY.itemsize)


def read_time_index(data: bytes, base_offset: int) -> TimeIndex | None:
    """Decode a `.timeindex`; None if it is malformed. Preallocated zeros are not entries."""
    if len(data) % ENTRY.itemsize:
        return None
    index = decode_time_index(data, base_offset)
    filled = used(index.timestamps)
    timestamps, offsets = index.timestamps[:filled], index.offsets[:filled]
    if filled and (
        int(offsets[0]) < base_offset
        or (timestamps[1:] <= timestamps[:-1]).any()
        or (np.diff(offsets) < 0).any()
    ):
        return None
    return TimeIndex(timestamps, offsets, base_offset)
