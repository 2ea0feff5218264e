"""The time index, `.timeindex`: the largest timestamp up to an offset (docs/format.md, 8.2).

    offset  size  field
         0     8  timestamp         ms, the largest so far in the segment
         8     4  relative offset   last offset of the first batch with it, minus the base offset

Timestamps strictly rise, offsets do not fall; Kafka's class is `TimeIndex`. As for the offset
index, `decode_time_index` reads a file as a broker opens it, and `parse_time_index` reads a hint
that may be malformed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs
from klog.logformat.batches.record_batch import NO_TIMESTAMP
from klog.logformat.indexes.abstract_index import (
    check_entry_number,
    check_size,
    count_used,
    relative_offsets,
)

ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])


class TimestampOffset(NamedTuple):
    """One entry: a timestamp in ms, and the absolute offset that has it."""

    timestamp_ms: int
    offset: int


@dataclass(frozen=True, slots=True)
class TimeIndex:
    """Entries in order: `timestamps` in ms, the largest so far, and `offsets` that have them."""

    timestamps: Longs
    offsets: Longs
    base_offset: int

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.timestamps)

    def entry(self, number: int) -> TimestampOffset:
        """Return one entry.

        Args:
            number: Its number, from 0.

        Raises:
            ValueError: If there is no such entry.
        """
        check_entry_number(number, len(self))
        return TimestampOffset(int(self.timestamps[number]), int(self.offsets[number]))

    @property
    def last_entry(self) -> TimestampOffset:
        """Return the last entry, (-1, base offset) without entries.

        A broker takes it for the largest timestamp of a segment that it opens.
        """
        if not len(self):
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return self.entry(len(self) - 1)

    def entry_before(self, timestamp_ms: int) -> int:
        """Return the number of the last entry below a timestamp, -1 without one.

        No record up to that entry's offset has a timestamp of `timestamp_ms` or later.

        Args:
            timestamp_ms: A timestamp.
        """
        return int(np.searchsorted(self.timestamps, timestamp_ms, "left")) - 1


def empty_time_index(base_offset: int) -> TimeIndex:
    """Return an index without entries.

    Args:
        base_offset: The base offset of its segment.
    """
    return TimeIndex(np.empty(0, np.int64), np.empty(0, np.int64), base_offset)


def encode_time_index(index: TimeIndex) -> bytes:
    """Encode a `.timeindex`, trimmed to its entries, as after a roll or a clean stop.

    Args:
        index: The entries.

    Raises:
        ValueError: For an offset that 4 bytes do not hold.
    """
    entries = np.empty(len(index), ENTRY)
    entries["timestamp"] = index.timestamps
    entries["offset"] = relative_offsets(index.offsets, index.base_offset)
    return entries.tobytes()


def decode_time_index(data: bytes, base_offset: int) -> TimeIndex:
    """Decode a `.timeindex` as a broker opens it: every complete entry, zeros too, unchecked.

    Args:
        data: The whole file.
        base_offset: The base offset of its segment.
    """
    entries = np.frombuffer(data, ENTRY, len(data) // ENTRY.itemsize)
    offsets = entries["offset"].astype(np.int64) + base_offset
    return TimeIndex(entries["timestamp"].astype(np.int64), offsets, base_offset)


def check_time_index(data: bytes, base_offset: int) -> None:
    """Check a `.timeindex` as a broker's sanity check does: its size, first and last entry.

    Args:
        data: The whole file.
        base_offset: The base offset of its segment.

    Raises:
        CorruptRecordError: With the position in the file.
    """
    index = decode_time_index(data, base_offset)
    last_entry, last_position = index.last_entry, (len(index) - 1) * ENTRY.itemsize
    if len(index) and last_entry.timestamp_ms < index.entry(0).timestamp_ms:
        raise CorruptRecordError(
            f"last timestamp {last_entry.timestamp_ms} of the time index is below the first, "
            f"{index.entry(0).timestamp_ms}",
            last_position,
        )
    if len(index) and last_entry.offset < base_offset:
        raise CorruptRecordError(
            f"last offset {last_entry.offset} of the time index is below base offset {base_offset}",
            last_position,
        )
    check_size(len(data), ENTRY.itemsize)


def parse_time_index(data: bytes, base_offset: int) -> TimeIndex | None:
    """Decode a `.timeindex`; None if it is malformed. Preallocated zeros are not entries.

    Args:
        data: The whole file.
        base_offset: The base offset of its segment.
    """
    if len(data) % ENTRY.itemsize:
        return None
    count = count_used(np.frombuffer(data, ENTRY)["timestamp"])
    index = decode_time_index(data[: count * ENTRY.itemsize], base_offset)
    timestamps, offsets = index.timestamps, index.offsets
    if count and (
        int(offsets[0]) < base_offset
        or (timestamps[1:] <= timestamps[:-1]).any()
        or (np.diff(offsets) < 0).any()
    ):
        return None
    return TimeIndex(timestamps, offsets, base_offset)
