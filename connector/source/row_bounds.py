"""Bounds that the filters of a query put on a read, beyond its options.

The rule: a bound leaves out only rows that its filter leaves out. Bounds of topics, partitions and
offsets are exact: they become the offsets of slices, so a reader needs no filter of its own. Those
of times are not: a read begins at the first record of a partition that is as late, and ends where
commits say that no segment has a record in time, and rows between may be earlier or later. Offsets
are the log's, times are milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from klog.connector.snapshot import PartitionSnapshot
from klog.connector.source.load_plan import ResolvedRange
from klog.errors import CorruptRecordError


@dataclass(frozen=True, slots=True)
class RowBounds:
    """Which rows of a read are wanted; the default is all.

    Attributes:
        topics: Their topics; None for all.
        partitions: Their partitions; None for all.
        start_offset: The first offset; None for no bound.
        end_offset: The offset after the last one; None for no bound.
        start_timestamp_ms: The earliest time; None for no bound.
        end_timestamp_ms: The time before which all are; None for no bound.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int | None = None
    end_offset: int | None = None
    start_timestamp_ms: int | None = None
    end_timestamp_ms: int | None = None

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RowBounds:
        """Return the bounds of a JSON object, whose fields are those of the class in camelCase.

        Args:
            values: The object. A field that is missing is no bound.
        """
        topics, partitions = values.get("topics"), values.get("partitions")
        return cls(
            None if topics is None else frozenset(topics),
            None if partitions is None else frozenset(partitions),
            values.get("startOffset"),
            values.get("endOffset"),
            values.get("startTimestampMs"),
            values.get("endTimestampMs"),
        )

    def within(self, ranges: Iterable[ResolvedRange]) -> list[ResolvedRange]:
        """Return what is left of ranges, without empty ones.

        Args:
            ranges: The offsets of a read.
        """
        cut = (self._cut(planned) for planned in ranges if self._has_partition(planned))
        return [planned for planned in cut if planned.start_offset < planned.end_offset]

    def within_times(
        self, log: PartitionSnapshot, start_offset: int, end_offset: int
    ) -> tuple[int, int]:
        """Return what is left of a range of offsets of a partition, by time.

        Args:
            log: The partition.
            start_offset: The first offset of the range.
            end_offset: The offset after the last one.

        Returns:
            Both offsets of a part of the range, which are equal if no record is in time.
        """
        if self.start_timestamp_ms is None and self.end_timestamp_ms is None:
            return start_offset, end_offset
        start, end = log.offsets_between_times(
            self.start_timestamp_ms, self.end_timestamp_ms, start_offset, end_offset
        )
        return min(max(start, self._first_offset(log, start, end)), end), end

    def _first_offset(self, log: PartitionSnapshot, start_offset: int, end_offset: int) -> int:
        if self.start_timestamp_ms is None or start_offset == end_offset:
            return start_offset
        try:
            offset = log.offset_for_time(self.start_timestamp_ms, end_offset)
        except CorruptRecordError:  # It may lie before what is read; a filter needs no bound.
            return start_offset
        return end_offset if offset is None else offset

    def _has_partition(self, planned: ResolvedRange) -> bool:
        is_topic = self.topics is None or planned.name.topic in self.topics
        return is_topic and (self.partitions is None or planned.name.partition in self.partitions)

    def _cut(self, planned: ResolvedRange) -> ResolvedRange:
        start, end = planned.start_offset, planned.end_offset
        start = start if self.start_offset is None else max(start, self.start_offset)
        end = end if self.end_offset is None else min(end, self.end_offset)
        return replace(planned, start_offset=start, end_offset=end)


ALL_ROWS = RowBounds()
"""No bounds."""
