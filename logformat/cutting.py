"""Where a segment's log is cut: in two at an offset, or in several because its offsets overflow.

A log is only ever cut between batches. Truncation to an offset drops the batch that reaches it,
whole (Kafka's `LogSegment.truncateTo`). Offsets in a segment lie within 2147483647 of its base; one
that has more is split, each part named by its first batch (docs/format.md, 14, step 2; Kafka's
`LocalLog.splitOverflowedSegment`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.columnar import decode
from klog.logformat.index import MAX_RELATIVE_OFFSET


@dataclass(frozen=True, slots=True)
class Part:
    """One segment to be: its base offset, and where its bytes lie in the segment that is split."""

    base_offset: int
    begin: int
    end: int


def position_before(batches: v2.Batches, offset: int) -> int:
    """Give the position at which a log is cut so that it ends before `offset`.

    It is that of the first batch that reaches `offset`, or the end of the batches.
    """
    first = int(np.searchsorted(batches.next_offsets, offset, "right"))
    if first < len(batches):
        return int(batches.starts[first])
    return int(batches.ends[-1]) if len(batches) else 0


def overflows(batches: v2.Batches, base_offset: int) -> bool:
    """Tell whether a segment of this base has a batch whose offsets are too large for it."""
    return bool((batches.next_offsets - 1 - base_offset > MAX_RELATIVE_OFFSET).any())


def split(data: bytes, batches: v2.Batches, base_offset: int) -> list[Part]:
    """Split a segment that overflows, whose `batches` lie in `data`, into as few parts as hold it.

    Raises `ValueError` for a segment that does not overflow, `CorruptRecordError` for a wrapper
    that cannot be opened.
    """
    if not overflows(batches, base_offset):
        raise ValueError(f"the segment of offset {base_offset} does not overflow")
    parts = []
    begin = 0
    while begin < len(batches):
        base = _first_offset(data, batches.part(begin, begin + 1))
        last = batches.next_offsets[begin:] - 1
        end = begin + int(np.searchsorted(last, base + MAX_RELATIVE_OFFSET, "right"))
        parts.append(Part(base, int(batches.starts[begin]), int(batches.ends[end - 1])))
        begin = end
    return parts


def _first_offset(data: bytes, batch: v2.Batches) -> int:
    """Give a batch's base offset; a wrapper has to be opened for it."""
    if int(batch.headers["count"][0]) != v2.WRAPPER_COUNT:
        return int(batch.base_offsets[0])
    return int(decode(data, batch, ()).offset[0])
