"""The transaction index, `.txnindex`: a segment's aborted transactions (docs/format.md, 8.3).

    offset  size  field
         0     2  version             0
         2     8  producerId
        10     8  firstOffset         of the transaction, maybe in an earlier segment
        18     8  lastOffset          of its ABORT marker, which lies in this segment
        26     8  lastStableOffset    behind the marker: first offset of the earliest other open
                                      transaction, else marker + 1

Markers strictly rise; Kafka's classes are `TransactionIndex` and `AbortedTxn`.
`decode_aborted` takes a file for what a broker takes it; `read_aborted` wants it without a fault,
for what it does not say the control batches can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat.index import Longs, check_entry, count_below

ENTRY = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first_offset", ">i8"),
        ("last_offset", ">i8"),
        ("last_stable_offset", ">i8"),
    ]
)
VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction; `last_offset` is that of its ABORT marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class AbortedTransactions:
    """Aborted transactions, an entry each; `last_offsets` are those of their ABORT markers."""

    producer_ids: Longs
    first_offsets: Longs
    last_offsets: Longs
    last_stable_offsets: Longs

    def __len__(self) -> int:
        """Give the number of entries."""
        return len(self.producer_ids)

    def entry(self, number: int) -> AbortedTransaction:
        """Give one entry by its number from 0; `ValueError` if there is none."""
        check_entry(number, len(self))
        return AbortedTransaction(
            int(self.producer_ids[number]),
            int(self.first_offsets[number]),
            int(self.last_offsets[number]),
            int(self.last_stable_offsets[number]),
        )

    def where(self, chosen: npt.NDArray[np.bool_] | slice) -> AbortedTransactions:
        """Keep the entries of a mask or a slice."""
        return AbortedTransactions(
            self.producer_ids[chosen],
            self.first_offsets[chosen],
            self.last_offsets[chosen],
            self.last_stable_offsets[chosen],
        )

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[AbortedTransactions, bool]:
        """Give the transactions that a fetch of [fetch offset, upper bound) has to know.

        The second is True where no later segment can hold another: an entry's last stable offset
        reaches the upper bound. Else the search goes on there.
        """
        stops = np.flatnonzero(self.last_stable_offsets >= upper_bound)
        seen = self.where(slice(int(stops[0]) + 1)) if len(stops) else self
        touched = (seen.last_offsets >= fetch_offset) & (seen.first_offsets < upper_bound)
        return seen.where(touched), bool(len(stops))

    def truncated_to(self, offset: int) -> AbortedTransactions:
        """Cut at the first entry whose marker is at or above `offset`."""
        return self.where(slice(count_below(self.last_offsets, offset)))

    def with_entries(self, entries: Sequence[AbortedTransaction]) -> AbortedTransactions:
        """Append entries as a broker does; `ValueError` if a marker's offset does not rise."""
        last = self.last_offsets[-1:].tolist()
        for before, offset in pairwise([*last, *(entry.last_offset for entry in entries)]):
            if offset <= before:
                raise ValueError(
                    f"marker at offset {offset} behind an entry for the marker at offset {before}"
                )
        new = np.array(entries, np.int64).reshape(-1, len(AbortedTransaction._fields)).T
        return AbortedTransactions(
            np.append(self.producer_ids, new[0]),
            np.append(self.first_offsets, new[1]),
            np.append(self.last_offsets, new[2]),
            np.append(self.last_stable_offsets, new[3]),
        )


NONE_ABORTED = AbortedTransactions(*np.empty((4, 0), np.int64))


def encode_aborted(aborted: AbortedTransactions) -> bytes:
    """Write a `.txnindex`. A segment without aborted transactions has no such file."""
    entries = np.empty(len(aborted), ENTRY)
    entries["version"] = VERSION
    entries["producer_id"] = aborted.producer_ids
    entries["first_offset"] = aborted.first_offsets
    entries["last_offset"] = aborted.last_offsets
    entries["last_stable_offset"] = aborted.last_stable_offsets
    return entries.tobytes()


def decode_aborted(data: bytes) -> AbortedTransactions:
    """Decode a `.txnindex` as a broker reads it: every whole entry, what is behind them ignored.

    Raises `UnsupportedFormatError` at a version above 0.
    """
    entries = np.frombuffer(data, ENTRY, len(data) // ENTRY.itemsize)
    newer = np.flatnonzero(entries["version"] > VERSION)
    if len(newer):
        raise UnsupportedFormatError(
            f"aborted transaction of version {entries['version'][newer[0]]}; this klog reads "
            f"version {VERSION}",
            int(newer[0]) * ENTRY.itemsize,
        )
    return _columns(entries)


def check_aborted(data: bytes, base_offset: int) -> None:
    """Raise `CorruptRecordError` where a broker's sanity check finds a `.txnindex` corrupt.

    That is a marker below the segment's base offset. Raises as `decode_aborted` does.
    """
    below = np.flatnonzero(decode_aborted(data).last_offsets < base_offset)
    if len(below):
        raise CorruptRecordError(
            f"aborted transaction with its marker below base offset {base_offset}",
            int(below[0]) * ENTRY.itemsize,
        )


def read_aborted(data: bytes, base_offset: int, end_offset: int) -> AbortedTransactions | None:
    """Decode a `.txnindex`; None if it is malformed.

    Well-formed means whole entries of version 0, ids and offsets that can be, markers in order and
    in this segment, which holds offsets from `base_offset` to before `end_offset`.
    """
    if len(data) % ENTRY.itemsize:
        return None
    entries = np.frombuffer(data, ENTRY)
    found = _columns(entries)
    firsts, lasts = found.first_offsets, found.last_offsets
    wrong = (entries["version"] != VERSION) | (found.producer_ids < 0) | (firsts < 0)
    wrong |= (firsts >= lasts) | (lasts < base_offset) | (lasts >= end_offset)
    wrong |= found.last_stable_offsets > lasts + 1
    return None if wrong.any() or (np.diff(lasts) <= 0).any() else found


def _columns(entries: npt.NDArray[np.void]) -> AbortedTransactions:
    return AbortedTransactions(
        entries["producer_id"].astype(np.int64),
        entries["first_offset"].astype(np.int64),
        entries["last_offset"].astype(np.int64),
        entries["last_stable_offset"].astype(np.int64),
    )
