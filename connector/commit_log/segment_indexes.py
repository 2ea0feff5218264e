"""The indexes of a segment: read within limits, and what they say about positions.

The rule: an index may lie, or be missing. It only says where to start to read; the data that is
read then decides.
"""

from __future__ import annotations

import numpy as np

from klog.connector.store.readable_store import MAX_INDEX_BYTES, ReadableStore
from klog.errors import InvalidFileError
from klog.logformat.indexes.offset_index import OffsetIndex, parse_offset_index
from klog.logformat.indexes.time_index import TimeIndex, parse_time_index


def read_segment_index(
    store: ReadableStore, path: str, size_bytes: int, base_offset: int, segment_size_bytes: int
) -> OffsetIndex | None:
    """Read the offset index of a segment.

    Args:
        store: The store of the segment.
        path: The path of the index file.
        size_bytes: The size that the index must not exceed.
        base_offset: The base offset of the segment, as its file says it.
        segment_size_bytes: The size of the segment.

    Returns:
        The index; None if it is missing, malformed, empty or too large.
    """
    data = _read(store, path, size_bytes)
    index = None if data is None else parse_offset_index(data, base_offset, segment_size_bytes)
    return index if index is not None and len(index) else None


def read_segment_time_index(
    store: ReadableStore, path: str, size_bytes: int, base_offset: int
) -> TimeIndex | None:
    """Read the time index of a segment.

    Args:
        store: The store of the segment.
        path: The path of the index file.
        size_bytes: The size that the index must not exceed.
        base_offset: The base offset of the segment, as its file says it.

    Returns:
        The index; None if it is missing, malformed or too large.
    """
    data = _read(store, path, size_bytes)
    return None if data is None else parse_time_index(data, base_offset)


def positions_between(
    index: OffsetIndex, size_bytes: int, first_offset: int, last_offset: int
) -> tuple[int, int]:
    """Return the positions in a segment between which a range of offsets is.

    An index entry has the last offset of an append, and the position where the append starts. So
    the range starts with the last append that ends before `first_offset`, and ends with the one
    that has `last_offset`.

    Args:
        index: The offset index of the segment.
        size_bytes: The size of the segment.
        first_offset: The first offset, as the file says it.
        last_offset: The last offset, inclusive.

    Returns:
        The start and the end position.
    """
    positions = np.append(index.positions, size_bytes)
    start, end = np.searchsorted(index.offsets, (first_offset, last_offset), "left").tolist()
    start_position = int(positions[start - 1]) if start else 0
    return start_position, int(positions[min(end + 1, len(index))])


def _read(store: ReadableStore, path: str, size_bytes: int) -> bytes | None:
    try:
        return store.read(path, min(size_bytes, MAX_INDEX_BYTES))
    except (FileNotFoundError, InvalidFileError):
        return None
