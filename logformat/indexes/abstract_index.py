"""What offset index and time index have in common (docs/format.md, 8.1, 8.2; `AbstractIndex`).

Both store offsets relative to the base offset of their segment, in 4 bytes. While it is written, a
file has `segment.index.bytes`, rounded down to complete entries; it is trimmed when the segment is
rolled or closed. A file that was not closed ends in zeros.
"""

from __future__ import annotations

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs

SEGMENT_INDEX_BYTES = 10 << 20
"""Kafka's default of `segment.index.bytes`."""
MAX_RELATIVE_OFFSET = (1 << 31) - 1


def relative_offset(offset: int, base_offset: int) -> int:
    """Return an offset relative to its segment's base offset.

    Args:
        offset: An absolute offset.
        base_offset: The segment's base offset.

    Raises:
        ValueError: If 4 bytes do not hold it; Kafka's `LogSegmentOffsetOverflowException` and
            `IndexOffsetOverflowException`.
    """
    relative = offset - base_offset
    if not 0 <= relative <= MAX_RELATIVE_OFFSET:
        raise ValueError(
            f"offset {offset} does not fit a segment with base offset {base_offset}; roll first"
        )
    return relative


def relative_offsets(offsets: Longs, base_offset: int) -> Longs:
    """Return offsets relative to their segment's base offset.

    Args:
        offsets: Absolute offsets.
        base_offset: The segment's base offset.

    Raises:
        ValueError: As `relative_offset`.
    """
    if len(offsets):
        relative_offset(int(offsets.min()), base_offset)
        relative_offset(int(offsets.max()), base_offset)
    return offsets - base_offset


def max_entries(segment_index_bytes: int, entry_bytes: int) -> int:
    """Return how many entries fit into an index.

    Args:
        segment_index_bytes: The topic's `segment.index.bytes`.
        entry_bytes: The size of an entry.

    Raises:
        ValueError: If no entry fits.
    """
    if segment_index_bytes < entry_bytes:
        raise ValueError(
            f"segment.index.bytes {segment_index_bytes} is below one entry of {entry_bytes} bytes"
        )
    return segment_index_bytes // entry_bytes


def check_entry_number(number: int, count: int) -> None:
    """Check that an index has an entry.

    Args:
        number: The entry's number, from 0.
        count: How many entries there are.

    Raises:
        ValueError: If there is no such entry.
    """
    if not 0 <= number < count:
        raise ValueError(f"no entry {number} in an index of {count} entries")


def check_size(size_bytes: int, entry_bytes: int) -> None:
    """Check that a file consists of complete entries.

    Args:
        size_bytes: The size of the file.
        entry_bytes: The size of an entry.

    Raises:
        CorruptRecordError: If its last entry is cut short, with that entry's position.
    """
    if size_bytes % entry_bytes:
        raise CorruptRecordError(
            f"index of {size_bytes} bytes is not a multiple of {entry_bytes}",
            size_bytes - size_bytes % entry_bytes,
        )


def count_used(values: Longs) -> int:
    """Return the number of entries before the zeros that fill the rest of a file.

    It reads few of them: a zero between entries is left to checks of their order.

    Args:
        values: A field of all entries, 0 only in an unused one.
    """
    if not len(values) or values[-1] != 0:
        return len(values)
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if values[middle] == 0 else (middle + 1, high)
    return low
