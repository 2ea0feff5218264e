"""What commits say of the records in a range of offsets of a klog root, segment by segment.

The rule: a segment's entry says how many records a read_committed reader gets of all of it. It says
so of a part, too, if every offset of the segment has a record, or none has. A read_uncommitted
reader gets at least as many, and more if transactions were aborted there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.committed_snapshot import CommittedPartition
from klog.connector.source.offset_ranges import OffsetRange
from klog.logformat.array_types import Longs, Mask
from klog.logformat.arrow_values import to_numpy


@dataclass(frozen=True, slots=True)
class SegmentCounts:
    """The segments that have offsets of a range, in order: an array has a number for each.

    Attributes:
        rows: Their rows in the topic's table.
        start_offsets: The first offset of the range in each.
        end_offsets: The offset after the last one of the range in each.
        record_counts: How many records of the range each has at least.
        is_exact: Whether it has no more.
        is_dense: Whether each of its offsets has a record.
        is_complete: Whether the range has all of its offsets.
    """

    rows: range
    start_offsets: Longs
    end_offsets: Longs
    record_counts: Longs
    is_exact: Mask
    is_dense: Mask
    is_complete: Mask

    @classmethod
    def of(cls, offset_range: OffsetRange, log: CommittedPartition) -> SegmentCounts:
        """Look up the segments of a range.

        Args:
            offset_range: The range.
            log: Its partition.
        """
        rows = log.overlapping_rows(offset_range.start_offset, offset_range.end_offset)
        base, next_offset, counts = (
            log.table.numbers(name)[rows.start : rows.stop]
            for name in ("base_offset", "next_offset", "record_count")
        )
        start = np.maximum(base, offset_range.start_offset)
        end = np.minimum(next_offset, offset_range.end_offset)
        is_complete = (start == base) & (end == next_offset)
        is_dense = counts == next_offset - base
        is_counted = is_complete | (counts == 0)
        if not offset_range.committed_only:
            aborted = log.table.table["aborted"].slice(rows.start, len(rows))
            is_counted &= to_numpy(pc.list_value_length(aborted)) == 0
        return cls(
            rows,
            start,
            end,
            np.where(is_dense, end - start, np.where(is_complete, counts, 0)),
            is_dense | is_counted,
            is_dense,
            is_complete,
        )
