"""Cut a broker's segment at entries of its offset index that batch headers confirm.

The rule: an index is a hint. A byte range begins at a batch of known offset, at or before the first
wanted, and ends at a batch that begins at or after the end of what is wanted. So nothing wanted
lies outside, whatever the index says.
"""

from __future__ import annotations

import numpy as np

from klog.connector.kafka_dir.segment_reader import SegmentHeaders
from klog.logformat.indexes.offset_index import OffsetIndex

UNKNOWN_OFFSET = -1


def confirmed_cuts(
    headers: SegmentHeaders,
    index: OffsetIndex,
    start_offset: int,
    end_offset: int,
    end_position: int,
    target_bytes: int | None = None,
) -> list[tuple[int, int]] | None:
    """Cut the bytes that hold a range of offsets at index entries, about `target_bytes` apart.

    Args:
        headers: The headers of the segment.
        index: Its offset index.
        start_offset: First offset wanted.
        end_offset: Offset after the last one wanted.
        end_position: Where the readable bytes of the segment end.
        target_bytes: Bytes between two cuts; None for one byte range.

    Returns:
        The position of each cut with the first offset of the batch there, the last one where the
        range ends, with `UNKNOWN_OFFSET`. None if the headers do not confirm the index.
    """
    start = index.position_before(start_offset)
    end = _position_after(index, end_offset, end_position)
    if start >= end:
        return None
    headers.load(start, end)
    if end < end_position:
        first_offset = headers.first_offset_at(end)
        if first_offset is None or first_offset < end_offset:
            return None
    cuts: list[tuple[int, int]] = []
    for position in sorted({start, *_split_positions(index, start, end, target_bytes)}):
        first_offset = headers.first_offset_at(position)
        if first_offset is None:
            return None
        cuts.append((position, first_offset))
    if start and cuts[0][1] > start_offset:
        return None
    return [*cuts, (end, UNKNOWN_OFFSET)]


def _position_after(index: OffsetIndex, end_offset: int, end_position: int) -> int:
    """Return the position of the entry after the one that reaches the end of a range."""
    entry = int(np.searchsorted(index.offsets, end_offset - 1, "left")) + 1
    if entry >= len(index.positions):
        return end_position
    return min(int(index.positions[entry]), end_position)


def _split_positions(
    index: OffsetIndex, start: int, end: int, target_bytes: int | None
) -> list[int]:
    """Return the positions of entries between two others, about `target_bytes` apart."""
    if target_bytes is None:
        return []
    count = max(-(-(end - start) // target_bytes), 1)
    ideal = start + np.arange(1, count) * ((end - start) / count)
    entries = np.unique(np.searchsorted(index.positions, ideal))
    positions = index.positions[entries[entries < len(index.positions)]]
    return [position for position in positions.tolist() if start <= position < end]
