"""`count(*)`, and the extremes of offsets and timestamps, of ranges of offsets: by commits alone.

The rule: an aggregate is known if the commits say exactly what a scan would return, else it is left
out. They say

* the first and the last offset of a segment's records, if each of its offsets has a record;
* the smallest and the largest timestamp of a segment that klog appended, if all of it is read. The
  numbers of other segments are those of batch headers: a marker's, or a removed record's, too;
* bounds for other segments: their offsets, and their `maxTimestampMs`; for an append that is read
  in part its `minTimestampMs`, too. A bound is enough if a known number is beyond it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from klog.connector.commit_log.committed_snapshot import CommittedPartition
from klog.connector.source.offset_ranges import OffsetRange
from klog.connector.source.segment_counts import SegmentCounts
from klog.logformat.array_types import Longs, Mask


def aggregate_by_commits(ranges: Iterable[OffsetRange]) -> dict[str, int | None]:
    """Return the aggregates of the records that a read of ranges returns, as far as commits know.

    Args:
        ranges: The ranges of offsets.

    Returns:
        By name: `count`, `minOffset`, `maxOffset`, `minTimestampMs`, `maxTimestampMs`. An aggregate
        that is not known is missing; an extreme is None if there are no records.
    """
    totals = _Totals()
    for offset_range in ranges:
        if not isinstance(offset_range.log, CommittedPartition):
            return {}
        totals.add(SegmentCounts.of(offset_range, offset_range.log), offset_range.log)
    return totals.known()


class _Totals:
    """The aggregates of the segments so far."""

    def __init__(self) -> None:
        self._count = 0
        self._is_count_known = True
        self._max_offset, self._max_timestamp = _Largest(), _Largest()
        # The smallest number is the largest one with other signs.
        self._min_offset, self._min_timestamp = _Largest(), _Largest()

    def add(self, segments: SegmentCounts, log: CommittedPartition) -> None:
        """Add the segments of a range."""
        self._count += int(segments.record_counts.sum())
        self._is_count_known &= bool(segments.is_exact.all())
        rows = slice(segments.rows.start, segments.rows.stop)
        has_records = ~(segments.is_exact & (segments.record_counts == 0))
        is_appended = log.table.is_appended[rows]
        min_ms, max_ms = (
            log.table.numbers(name)[rows] for name in ("min_timestamp_ms", "max_timestamp_ms")
        )
        # -1 stands for a time before 1970, too.
        earliest_ms = np.where(is_appended & (min_ms >= 0), min_ms, _ANY_TIME)
        is_dense = segments.is_dense
        has_times = is_appended & is_dense & segments.is_complete
        for largest, numbers, is_known in (
            (self._min_offset, -segments.start_offsets, is_dense),
            (self._max_offset, segments.end_offsets - 1, is_dense),
            (self._min_timestamp, -earliest_ms, has_times & (min_ms >= 0)),
            (self._max_timestamp, max_ms, has_times & (max_ms >= 0)),
        ):
            largest.add(numbers[has_records], is_known[has_records])

    def known(self) -> dict[str, int | None]:
        """Return the aggregates that are known."""
        values: dict[str, int | None] = {"count": self._count} if self._is_count_known else {}
        for name, largest, sign in (
            ("minOffset", self._min_offset, -1),
            ("maxOffset", self._max_offset, 1),
            ("minTimestampMs", self._min_timestamp, -1),
            ("maxTimestampMs", self._max_timestamp, 1),
        ):
            if largest.is_known:
                values[name] = None if largest.value is None else sign * largest.value
        return values


_ANY_TIME = -(1 << 62)
"""The bound if commits have none: earlier than any timestamp that they know."""


@dataclass(slots=True)
class _Largest:
    """The largest of numbers, if it is known: of some there is only an upper bound."""

    value: int | None = None
    bound: int | None = None

    def add(self, numbers: Longs, is_known: Mask) -> None:
        """Add numbers, and say which of them are known; the others are bounds."""
        self.value = _larger(self.value, numbers[is_known])
        self.bound = _larger(self.bound, numbers[~is_known])

    @property
    def is_known(self) -> bool:
        """Return whether no number that is not known can be larger."""
        return self.bound is None or (self.value is not None and self.value >= self.bound)


def _larger(number: int | None, numbers: Longs) -> int | None:
    """Return the largest of numbers and one that may be missing."""
    if not len(numbers):
        return number
    largest = int(numbers.max())
    return largest if number is None else max(number, largest)
