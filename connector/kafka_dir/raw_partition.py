"""A partition of a raw root: its bounds, its segments, and where each segment's offsets end.

The rule: the offsets of a segment end before the base offset of the next one, its bytes with its
file. Only the active segment, the last, ends where `log_end` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from klog.connector.kafka_dir.log_bounds import LogEnd
from klog.connector.kafka_dir.partition_directory import (
    MAX_LISTING_TRIES,
    PartitionDirectory,
    Segment,
)
from klog.connector.kafka_dir.segment_reader import SegmentReader
from klog.connector.store.readable_store import ReadableStore
from klog.logformat.topic_partition import TopicPartition

T = TypeVar("T")


class RawPartitionReader(Protocol):
    """Answers questions about a raw partition from its bytes."""

    def last_stable_offset(self, log: RawPartition) -> int:
        """Return the last stable offset.

        Args:
            log: The partition.
        """

    def offset_for_time(self, log: RawPartition, timestamp_ms: int, end_offset: int) -> int | None:
        """Return the offset of the first record at or after a time; None if there is none.

        Args:
            log: The partition.
            timestamp_ms: The time, in ms since the epoch.
            end_offset: Records at or above this offset do not count.
        """

    def max_timestamp_ms(self, log: RawPartition) -> int | None:
        """Return the largest timestamp of a record; None without one.

        Args:
            log: The partition.
        """

    def relist(self, log: RawPartition) -> RawPartition:
        """Return the partition with its files listed again and the same log end.

        Args:
            log: The partition as of an earlier listing.

        Raises:
            FileNotFoundError: The partition belongs to another topic now, or ends earlier.
        """


@dataclass(frozen=True, slots=True)
class RawPartition:
    """A partition of a raw root as of one listing.

    Attributes:
        name: Topic and number.
        topic_id: The topic's id, empty if the directory names none.
        root: The log directory as the user wrote it.
        store: The store that has it.
        directory: The partition's files.
        log_start: The log start offset.
        log_end: The log end offset, or the high watermark while a broker runs.
        active_end: Where the active segment's readable bytes end, whatever the high watermark.
        is_locked_by_broker: Whether a broker runs on the log directory.
    """

    name: TopicPartition
    topic_id: str
    root: str
    store: ReadableStore
    directory: PartitionDirectory
    log_start: int
    log_end: int
    active_end: LogEnd
    is_locked_by_broker: bool
    _reader: RawPartitionReader = field(repr=False, compare=False)

    @property
    def last_restore(self) -> None:
        """Return None: a broker restores nothing."""
        return

    def first_changed_offset(self, seen_restore: int) -> None:
        """Return None: a broker restores nothing.

        Args:
            seen_restore: Not used.
        """

    def first_hole(self, start_offset: int, end_offset: int) -> None:
        """Return None: only commits say which offsets are holes.

        Args:
            start_offset: Not used.
            end_offset: Not used.
        """

    def last_stable_offset(self) -> int:
        """Return the first offset of the earliest open transaction, else the log end."""
        return self._reader.last_stable_offset(self)

    def offset_for_time(self, timestamp_ms: int, end_offset: int) -> int | None:
        """See `PartitionSnapshot.offset_for_time`."""
        return self._reader.offset_for_time(self, timestamp_ms, end_offset)

    def offsets_between_times(
        self, start_ms: int | None, end_ms: int | None, start_offset: int, end_offset: int
    ) -> tuple[int, int]:
        """Return the range: only a segment's file says its times.

        Args:
            start_ms: Not used.
            end_ms: Not used.
            start_offset: The first offset of the range.
            end_offset: The offset after the last one.
        """
        return start_offset, end_offset

    def max_timestamp_ms(self) -> int | None:
        """See `PartitionSnapshot.max_timestamp_ms`."""
        return self._reader.max_timestamp_ms(self)

    @property
    def size_bytes(self) -> int:
        """Return the readable bytes of its segments."""
        return sum(map(self._segment_bytes, self.segments))

    @property
    def segment_count(self) -> int:
        """Return the number of segments that are not empty."""
        return sum(segment.log.size_bytes > 0 for segment in self.segments)

    @property
    def readable_end(self) -> int:
        """Return the offset after the last complete record, whatever the high watermark."""
        return self.active_end.next_offset

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments in order of base offset."""
        return self.directory.segments

    def is_active(self, segment: Segment) -> bool:
        """Return whether a segment is the one that a broker appends to.

        Args:
            segment: One of `segments`.
        """
        return segment is self.directory.segments[-1]

    def _segment_bytes(self, segment: Segment) -> int:
        return self.active_end.position if self.is_active(segment) else segment.log.size_bytes

    def segments_with_ends(self) -> list[tuple[Segment, int]]:
        """Return each segment with the offset that all of its own are below."""
        next_bases = [segment.base_offset for segment in self.segments[1:]]
        return list(zip(self.segments, [*next_bases, self.active_end.next_offset], strict=False))

    def overlapping(self, start_offset: int, end_offset: int) -> list[tuple[Segment, int]]:
        """Return the segments that may have offsets of a range, each with the offset after it.

        Args:
            start_offset: The first offset.
            end_offset: The offset after the last one.
        """
        return [
            (segment, next_base)
            for segment, next_base in self.segments_with_ends()
            if segment.base_offset < end_offset and next_base > start_offset
        ]

    def bytes_between(self, start_offset: int, end_offset: int) -> int:
        """See `PartitionSnapshot.bytes_between`."""
        size_bytes = 0
        for segment, next_base in self.overlapping(start_offset, end_offset):
            count = min(next_base, end_offset) - max(segment.base_offset, start_offset)
            share = count / max(next_base - segment.base_offset, 1)
            size_bytes += math.ceil(self._segment_bytes(segment) * share)
        return size_bytes

    def readable_bytes(self, reader: SegmentReader) -> int:
        """Return how many bytes of an open segment may be read.

        A segment may have grown since it was listed, if it was rolled meanwhile.

        Args:
            reader: One of the segments, open.
        """
        size = reader.file.size_bytes
        return min(self.active_end.position, size) if self.is_active(reader.segment) else size

    def open(self, segment: Segment) -> SegmentReader:
        """Open one of the segments.

        Args:
            segment: The segment.

        Raises:
            FileNotFoundError: As `SegmentReader`.
        """
        return SegmentReader(self.store, segment)

    def retry_if_replaced(self, read: Callable[[RawPartition], T]) -> T:
        """Return `read` of this partition; list its files again if a segment was replaced.

        Args:
            read: Raises `FileNotFoundError` if a segment has gone or is another file.

        Raises:
            FileNotFoundError: If the whole root has to be listed again.
        """
        log = self
        for _ in range(MAX_LISTING_TRIES - 1):
            try:
                return read(log)
            except FileNotFoundError:
                log = self._reader.relist(self)
        return read(log)
