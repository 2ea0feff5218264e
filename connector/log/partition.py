"""One partition as of one listing: its bounds, its segments, and where each segment's offsets end.

Where a segment ends is said here and nowhere else: its offsets before the next segment's first one,
its bytes with its file. Only the active segment, the last, ends where `tail` says.
"""

from __future__ import annotations

from dataclasses import dataclass

from klog.connector.log.directory import Directory, Segment
from klog.connector.log.segment import SegmentReader
from klog.connector.log.tail import End
from klog.connector.store.files import Store


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A topic's partition, printed as its directory is named."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Give `<topic>-<partition>`."""
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """A partition: where it begins and ends, and its segments.

    `topic_id` is empty where the directory names none. `log_end` is exclusive and bounded by the
    high watermark while a broker runs; `end` is where the active segment's readable bytes end,
    whatever the high watermark.
    """

    name: TopicPartition
    topic_id: str
    root: str
    store: Store
    directory: Directory
    log_start: int
    log_end: int
    end: End

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Give the segments in order of base offset."""
        return self.directory.segments

    def is_active(self, segment: Segment) -> bool:
        """Tell whether a segment is the one that a broker appends to."""
        return segment is self.directory.segments[-1]

    def bounded_segments(self) -> list[tuple[Segment, int]]:
        """Give each segment with the offset before which its own ones lie."""
        behind = [segment.base_offset for segment in self.segments[1:]]
        return list(zip(self.segments, [*behind, self.end.next_offset], strict=False))

    def readable_bytes(self, reader: SegmentReader) -> int:
        """Give how many bytes of an open segment may be read.

        A segment may have grown since it was listed, if it was rolled meanwhile.
        """
        size = reader.file.size_bytes
        return min(self.end.position, size) if self.is_active(reader.segment) else size

    def open(self, segment: Segment) -> SegmentReader:
        """Open one of the segments."""
        return SegmentReader(self.store, segment)
