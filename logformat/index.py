"""What an offset index and a time index have in common (docs/format.md, 8.1, 8.2; `AbstractIndex`).

Both speak of offsets relative to the base offset of their segment, in 4 bytes; both are given
`segment.index.bytes`, rounded down to whole entries, while they are written, and lose what is
unused when the segment is rolled or closed. A file that was not closed ends in zeros.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klog.errors import CorruptRecordError

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SEGMENT_INDEX_BYTES = 10 << 20
"""Kafka's default of `segment.index.bytes`."""
MAX_RELATIVE_OFFSET = (1 << 31) - 1


def relative_offset(offset: int, base_offset: int) -> int:
    """Give an offset as its segment's files write it; `ValueError` if they cannot.

    Kafka's `LogSegmentOffsetOverflowException` and `IndexOffsetOverflowException`.
    """
    relative = offset - base_offset
    if not 0 <= relative <= MAX_RELATIVE_OFFSET:
        raise ValueError(
            f"offset {offset} does not fit a segment with base offset {base_offset}; roll first"
        )
    return relative


def relative_offsets(offsets: Longs, base_offset: int) -> Longs:
    """Give offsets as their segment's files write them; `ValueError` if they cannot."""
    if len(offsets):
        relative_offset(int(offsets.min()), base_offset)
        relative_offset(int(offsets.max()), base_offset)
    return offsets - base_offset


def capacity(segment_index_bytes: int, entry_bytes: int) -> int:
    """Count the entries for which `segment.index.bytes` has room; `ValueError` if for none."""
    if segment_index_bytes < entry_bytes:
        raise ValueError(
            f"segment.index.bytes {segment_index_bytes} is below one entry of {entry_bytes} bytes"
        )
    return segment_index_bytes // entry_bytes


def check_entry(number: int, entries: int) -> None:
    """Refuse the number of an entry that is not there."""
    if not 0 <= number < entries:
        raise ValueError(f"no entry {number} in an index of {entries} entries")


def check_whole(size_bytes: int, entry_bytes: int) -> None:
    """Refuse a file that is not made of whole entries."""
    if size_bytes % entry_bytes:
        raise CorruptRecordError(
            f"index of {size_bytes} bytes is not a multiple of {entry_bytes}",
            size_bytes - size_bytes % entry_bytes,
        )


def count_below(offsets: Longs, offset: int) -> int:
    """Count the entries before the first at or above an offset, whatever order they are in."""
    reached = np.flatnonzero(offsets >= offset)
    return int(reached[0]) if len(reached) else len(offsets)


def used(values: Longs) -> int:
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
