"""The transaction index, `.txnindex`: a segment's aborted transactions (docs/format.md, 8.3).

    offset  size  field
         0     2  version             0
         2     8  producerId
        10     8  firstOffset         of the transaction, maybe in an earlier segment
        18     8  lastOffset          of its ABORT marker, which lies in this segment
        26     8  lastStableOffset    after the marker: first offset of the earliest other open
                                      transaction, else marker + 1

The offsets of markers strictly rise; Kafka's classes are `TransactionIndex` and `AbortedTxn`.
`decode_aborted` reads a file as a broker does. `parse_aborted` accepts only a valid file, as the
control batches decide without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat.array_types import Longs, Structs

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
    """Aborted transactions, one an entry; `last_offsets` are those of their ABORT markers."""

    producer_ids: Longs
    first_offsets: Longs
    last_offsets: Longs
    last_stable_offsets: Longs

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.producer_ids)

    def with_entries(self, entries: Sequence[AbortedTransaction]) -> AbortedTransactions:
        """Return the index with more entries.

        Args:
            entries: In the order of their markers.

        Raises:
            ValueError: If a marker's offset does not rise.
        """
        last = self.last_offsets[-1:].tolist()
        for previous, offset in pairwise([*last, *(entry.last_offset for entry in entries)]):
            if offset <= previous:
                raise ValueError(
                    f"marker at offset {offset} after an entry for the marker at offset {previous}"
                )
        columns = np.array(entries, np.int64).reshape(-1, len(AbortedTransaction._fields)).T
        return AbortedTransactions(
            np.append(self.producer_ids, columns[0]),
            np.append(self.first_offsets, columns[1]),
            np.append(self.last_offsets, columns[2]),
            np.append(self.last_stable_offsets, columns[3]),
        )


NO_ABORTED_TRANSACTIONS = AbortedTransactions(*np.empty((4, 0), np.int64))


def encode_aborted(aborted: AbortedTransactions) -> bytes:
    """Encode a `.txnindex`; a segment without aborted transactions has no such file.

    Args:
        aborted: The entries.
    """
    entries = np.empty(len(aborted), ENTRY)
    entries["version"] = VERSION
    entries["producer_id"] = aborted.producer_ids
    entries["first_offset"] = aborted.first_offsets
    entries["last_offset"] = aborted.last_offsets
    entries["last_stable_offset"] = aborted.last_stable_offsets
    return entries.tobytes()


def decode_aborted(data: bytes) -> AbortedTransactions:
    """Decode a `.txnindex` as a broker reads it: every complete entry, bytes after them ignored.

    Args:
        data: The whole file.

    Raises:
        UnsupportedFormatError: For a version above 0.
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
    """Check a `.txnindex` as a broker's sanity check does: no marker is below the base offset.

    Args:
        data: The whole file.
        base_offset: The base offset of its segment.

    Raises:
        CorruptRecordError: With the position in the file.
        UnsupportedFormatError: For a version above 0.
    """
    below = np.flatnonzero(decode_aborted(data).last_offsets < base_offset)
    if len(below):
        raise CorruptRecordError(
            f"aborted transaction with its marker below base offset {base_offset}",
            int(below[0]) * ENTRY.itemsize,
        )


def parse_aborted(data: bytes, base_offset: int, end_offset: int) -> AbortedTransactions | None:
    """Decode a `.txnindex`; None if it is malformed.

    A valid file has complete entries of version 0, valid ids and offsets, and its markers are in
    order and in this segment.

    Args:
        data: The whole file.
        base_offset: The base offset of its segment.
        end_offset: The exclusive end of its segment.
    """
    if len(data) % ENTRY.itemsize:
        return None
    entries = np.frombuffer(data, ENTRY)
    aborted = _columns(entries)
    first_offsets, last_offsets = aborted.first_offsets, aborted.last_offsets
    is_bad = (entries["version"] != VERSION) | (aborted.producer_ids < 0) | (first_offsets < 0)
    is_bad |= (first_offsets >= last_offsets) | (last_offsets < base_offset)
    is_bad |= (last_offsets >= end_offset) | (aborted.last_stable_offsets > last_offsets + 1)
    return None if is_bad.any() or (np.diff(last_offsets) <= 0).any() else aborted


def _columns(entries: Structs) -> AbortedTransactions:
    return AbortedTransactions(
        entries["producer_id"].astype(np.int64),
        entries["first_offset"].astype(np.int64),
        entries["last_offset"].astype(np.int64),
        entries["last_stable_offset"].astype(np.int64),
    )
