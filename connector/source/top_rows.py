"""The first or the last rows by offset: how much of a range of offsets has enough of them.

The rule: what is left out of a range has no row of the result, because commits prove that what is
left has as many rows as the query wants. A segment counts for no row if commits do not say how many
records it has. A broker's directory has no counts: nothing is left out there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from klog.connector.source.offset_ranges import OffsetRange


@dataclass(frozen=True, slots=True)
class TopRows:
    """So many rows with the lowest or the highest offsets.

    Attributes:
        rows: How many rows the query wants, 1 or more.
        is_descending: Whether those with the highest offsets.
    """

    rows: int
    is_descending: bool

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TopRows:
        """Return the rows of a JSON object, whose fields are those of the class in camelCase.

        Args:
            values: The object.
        """
        return cls(values["rows"], values["isDescending"])

    def within(self, offset_range: OffsetRange) -> OffsetRange:
        """Return the part of a range that has all of its rows that the result may have.

        Args:
            offset_range: Offsets of one partition.
        """
        from klog.connector.commit_log.committed_snapshot import CommittedPartition
        from klog.connector.source.segment_counts import SegmentCounts

        log = offset_range.log
        if not isinstance(log, CommittedPartition):
            return offset_range
        segments = SegmentCounts.of(offset_range, log)
        counts = segments.record_counts
        if self.is_descending:
            counts = counts[::-1]
        number = int(np.searchsorted(np.cumsum(counts), self.rows, "left"))
        if number == len(counts):
            return offset_range
        # A dense segment is cut too: what it has to give are its first or its last offsets.
        rows = self.rows - int(counts[:number].sum())
        row = len(counts) - 1 - number if self.is_descending else number
        start, end = int(segments.start_offsets[row]), int(segments.end_offsets[row])
        is_dense = bool(segments.is_dense[row])
        if self.is_descending:
            return replace(offset_range, start_offset=end - rows if is_dense else start)
        return replace(offset_range, end_offset=start + rows if is_dense else end)
