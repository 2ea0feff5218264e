"""Where a segment's log is cut: at an offset, and into parts if its offsets overflow.

A log is cut between batches only. Truncation to an offset drops the batch that reaches it (Kafka's
`LogSegment.truncateTo`). Offsets in a segment lie within 2147483647 of its base offset; a segment
with larger ones is split, and its first batch names each part (docs/format.md, 14, step 2; Kafka's
`LocalLog.splitOverflowedSegment`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.indexes.abstract_index import MAX_RELATIVE_OFFSET


@dataclass(frozen=True, slots=True)
class SegmentPart:
    """A segment to be: its base offset, and where its bytes lie in the segment that is split."""

    base_offset: int
    start: int
    end: int


def position_before(batches: v2.Batches, offset: int) -> int:
    """Return the position at which a log is cut so that it ends before `offset`.

    It is the position of the first batch that reaches `offset`, or the end of the batches.
    """
    first = int(np.searchsorted(batches.next_offsets, offset, "right"))
    if first < len(batches):
        return int(batches.starts[first])
    return int(batches.ends[-1]) if len(batches) else 0


def overflows(batches: v2.Batches, base_offset: int) -> bool:
    """Return whether a segment of this base offset has a batch with too large offsets."""
    return bool((batches.next_offsets - 1 - base_offset > MAX_RELATIVE_OFFSET).any())


def split(data: bytes, batches: v2.Batches, base_offset: int) -> list[SegmentPart]:
    """Split a segment that overflows, whose `batches` lie in `data`, into as few parts as hold it.

    Raises `ValueError` for a segment that does not overflow, `CorruptRecordError` for a wrapper
    that cannot be decompressed.
    """
    if not overflows(batches, base_offset):
        raise ValueError(f"the segment of offset {base_offset} does not overflow")
    parts = []
    start = 0
    while start < len(batches):
        part_offset = _first_offset(data, batches.slice(start, start + 1))
        last_offsets = batches.next_offsets[start:] - 1
        end = start + int(np.searchsorted(last_offsets, part_offset + MAX_RELATIVE_OFFSET, "right"))
        parts.append(
            SegmentPart(part_offset, int(batches.starts[start]), int(batches.ends[end - 1]))
        )
        start = end
    return parts


def _first_offset(data: bytes, batch: v2.Batches) -> int:
    """Return a batch's first offset; that of a wrapper is in its records."""
    if int(batch.headers["count"][0]) != v2.WRAPPER_COUNT:
        return int(batch.base_offsets[0])
    return int(decode_records(data, batch, ()).offset[0])
