"""The three indexes beside a segment: offsets, times, aborted transactions (format notes 4.3-4.5).

An offset index entry says: the append that ended with this offset begins at this position. A time
index entry says: up to this offset the largest timestamp was this. A transaction index entry is one
aborted transaction. Indexes are hints: one that is malformed is None here, and the log decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]

_OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_ABORTED_ENTRY = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first_offset", ">i8"),
        ("last_offset", ">i8"),
        ("last_stable_offset", ">i8"),
    ]
)


@dataclass(frozen=True, slots=True)
class OffsetIndex:
    """Entries in order: `offsets` absolute, `positions` in the segment's log."""

    offsets: Longs
    positions: Longs

    def position_before(self, offset: int) -> int:
        """Give the position of the last entry whose append ends at or before `offset`, else 0.

        Scanning from there meets every batch that reaches `offset` or beyond.
        """
        entry = int(np.searchsorted(self.offsets, offset, "right")) - 1
        return int(self.positions[entry]) if entry >= 0 else 0


@dataclass(frozen=True, slots=True)
class TimeIndex:
    """Entries in order: `timestamps` in ms, the largest so far, and the `offsets` that had them."""

    timestamps: Longs
    offsets: Longs

    def entry_before(self, timestamp_ms: int) -> int:
        """Give the last entry whose timestamp is below this, -1 if there is none.

        No record up to that entry's offset has a timestamp of `timestamp_ms` or more.
        """
        return int(np.searchsorted(self.timestamps, timestamp_ms, "left")) - 1


@dataclass(frozen=True, slots=True)
class AbortedTransactions:
    """Aborted transactions, an entry each; `last_offsets` are those of their ABORT markers."""

    producer_ids: Longs
    first_offsets: Longs
    last_offsets: Longs


EMPTY_OFFSET_INDEX = OffsetIndex(np.empty(0, np.int64), np.empty(0, np.int64))


def read_offset_index(data: bytes, base_offset: int, log_bytes: int) -> OffsetIndex | None:
    """Decode a `.index`; None if it is malformed.

    The zeros that a broker preallocates behind the last entry are not entries, and those that point
    past the end of the log are left out: the log may have been opened before they were written.
    """
    if len(data) % _OFFSET_ENTRY.itemsize:
        return None
    entries = np.frombuffer(data, _OFFSET_ENTRY)
    entries = entries[: _used(entries["position"])]
    offsets = entries["offset"].astype(np.int64)
    positions = entries["position"].astype(np.int64)
    if len(positions) and (
        int(offsets[0]) < 0
        or int(positions[0]) < 0
        or (np.diff(offsets) <= 0).any()
        or (np.diff(positions) <= 0).any()
    ):
        return None
    inside = int(np.searchsorted(positions, log_bytes))
    return OffsetIndex(offsets[:inside] + base_offset, positions[:inside])


def read_time_index(data: bytes, base_offset: int) -> TimeIndex | None:
    """Decode a `.timeindex`; None if it is malformed. Preallocated zeros are not entries."""
    if len(data) % _TIME_ENTRY.itemsize:
        return None
    entries = np.frombuffer(data, _TIME_ENTRY)
    entries = entries[: _used(entries["timestamp"])]
    timestamps = entries["timestamp"].astype(np.int64)
    offsets = entries["offset"].astype(np.int64)
    if len(offsets) and (
        int(offsets[0]) < 0 or (np.diff(timestamps) <= 0).any() or (np.diff(offsets) < 0).any()
    ):
        return None
    return TimeIndex(timestamps, offsets + base_offset)


def read_aborted(data: bytes, base_offset: int, end_offset: int) -> AbortedTransactions | None:
    """Decode a `.txnindex`; None if it is malformed.

    Well-formed means whole entries of version 0, ids and offsets that can be, markers in order and
    in this segment, which holds offsets from `base_offset` to before `end_offset`.
    """
    if len(data) % _ABORTED_ENTRY.itemsize:
        return None
    entries = np.frombuffer(data, _ABORTED_ENTRY)
    producers = entries["producer_id"].astype(np.int64)
    firsts = entries["first_offset"].astype(np.int64)
    lasts = entries["last_offset"].astype(np.int64)
    wrong = (entries["version"] != 0) | (producers < 0) | (firsts < 0) | (firsts >= lasts)
    wrong |= (
        (lasts < base_offset)
        | (lasts >= end_offset)
        | (entries["last_stable_offset"].astype(np.int64) > lasts + 1)
    )
    if wrong.any() or (np.diff(lasts) <= 0).any():
        return None
    return AbortedTransactions(producers, firsts, lasts)


def _used(values: Longs) -> int:
    """Count the entries before the zeros that fill the rest, looking at few of them.

    A zero among the entries is no filling: the checks of order find it.
    """
    if not len(values) or values[-1] != 0:
        return len(values)
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if values[middle] == 0 else (middle + 1, high)
    return low
