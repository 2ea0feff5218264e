"""One partition as of one look: its bounds, in the same words for every kind of root.

For a raw root: which files are its segments, and where each segment's offsets end. That is said
here and nowhere else: its offsets before the next segment's first one, its bytes with its file.
Only the active segment, the last, ends where `tail` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from klog.connector.log.directory import LISTING_TRIES, Directory, Segment
from klog.connector.log.segment import SegmentReader
from klog.connector.log.tail import End
from klog.connector.store.files import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A topic's partition, printed as its directory is named."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Give `<topic>-<partition>`."""
        return f"{self.topic}-{self.partition}"


class PartitionLog(Protocol):
    """A partition that can be read: offsets from `log_start` to before `log_end`.

    `topic_id` is empty where there is none. `held` says that a broker has the directory: then the
    log end is its high watermark, which may go back.
    """

    @property
    def name(self) -> TopicPartition:
        """Give topic and number."""

    @property
    def topic_id(self) -> str:
        """Give the id of the topic's incarnation."""

    @property
    def log_start(self) -> int:
        """Give the first offset that is kept."""

    @property
    def log_end(self) -> int:
        """Give the offset behind the last record that a reader may see."""

    @property
    def held(self) -> bool:
        """Tell whether a broker has it."""

    @property
    def readable_end(self) -> int:
        """Give the offset behind the last record whose bytes are there."""

    @property
    def size_bytes(self) -> int:
        """Give the readable bytes of its segments."""

    @property
    def segment_count(self) -> int:
        """Give the number of segments that are not empty."""

    def last_stable_offset(self) -> int:
        """Give the first offset of the earliest open transaction, else the log end."""

    def offset_for_time(self, timestamp_ms: int, bound: int) -> int | None:
        """Give the first offset of at least this time, None if none below `bound` has it."""


class Look(Protocol):
    """What a root held at one look."""

    @property
    def topics(self) -> Mapping[str, Sequence[int]]:
        """Give the numbers of each topic's partitions.

        Names are cheap, and may be those of topics that were deleted: `in` tells.
        """

    @property
    def no_topics(self) -> str:
        """Say, for an error, that there are no topics, and what to do."""

    def missing(self, topic: str) -> str:
        """Say, for an error, that a topic is not there, and why."""

    def __contains__(self, name: object) -> bool:
        """Tell whether a `TopicPartition` was there."""

    def open(self, names: Iterable[TopicPartition]) -> Mapping[TopicPartition, PartitionLog]:
        """Open partitions. Raises `FileNotFoundError` for one that has gone."""

    def topic_ids(self, topics: Iterable[str]) -> Mapping[str, str]:
        """Give the id of each of these topics that has one."""


class Root(Protocol):
    """Where topics are; a long-lived one remembers what makes the next look cheap."""

    def look(self) -> Look:
        """See what is there now."""


class RawReading(Protocol):
    """What answers for a raw partition from its bytes."""

    def last_stable_offset(self, log: RawPartition) -> int:
        """Give the last stable offset."""

    def offset_for_time(self, log: RawPartition, timestamp_ms: int, bound: int) -> int | None:
        """Give the first offset of at least this time."""

    def relist(self, log: RawPartition) -> RawPartition:
        """Return the partition with its files listed again and the same log end."""


@dataclass(frozen=True, slots=True)
class RawPartition:
    """A partition of a raw root: where it begins and ends, and its segments.

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
    held: bool
    reading: RawReading = field(repr=False, compare=False)

    def last_stable_offset(self) -> int:
        """Give the first offset of the earliest open transaction, else the log end."""
        return self.reading.last_stable_offset(self)

    def offset_for_time(self, timestamp_ms: int, bound: int) -> int | None:
        """Give the first offset of at least this time, None if none below `bound` has it."""
        return self.reading.offset_for_time(self, timestamp_ms, bound)

    @property
    def size_bytes(self) -> int:
        """Give the readable bytes of its segments."""
        return sum(
            self.end.position if self.is_active(segment) else segment.log.size_bytes
            for segment in self.segments
        )

    @property
    def segment_count(self) -> int:
        """Give the number of segments that are not empty."""
        return sum(segment.log.size_bytes > 0 for segment in self.segments)

    @property
    def readable_end(self) -> int:
        """Give the offset behind the last record whose bytes are there."""
        return self.end.next_offset

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
        """Open one of the segments. Raises as `SegmentReader`."""
        return SegmentReader(self.store, segment)

    def retry_stale(self, read: Callable[[RawPartition], T]) -> T:
        """Return `read` of this partition; list its files again if a segment was replaced.

        Raises `FileNotFoundError` if the whole root has to be listed again.
        """
        log = self
        for _ in range(LISTING_TRIES - 1):
            try:
                return read(log)
            except FileNotFoundError:
                log = self.reading.relist(self)
        return read(log)
