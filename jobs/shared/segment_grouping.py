"""How many neighbouring segments may become one segment.

The rule is that of Kafka's cleaner (`Cleaner.groupSegmentsBySize`): the logs together are within
`segment.bytes`, the indexes of each kind within `segment.index.bytes`, and their offsets fit an
index. The sizes are those before the job, as the size of a cleaned segment is known only when it is
written. A commit names at most `MAX_PRODUCERS` producers of a segment.
"""

from __future__ import annotations

from dataclasses import dataclass

from klog.connector.commit_log.segment_entries import MAX_PRODUCERS, SegmentEntry
from klog.logformat.indexes.abstract_index import MAX_RELATIVE_OFFSET
from klog.logformat.topic_config import TopicConfig


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """What one segment may hold.

    `span_ms` limits the time from its first record to its last; None means no limit.
    """

    segment_bytes: int
    index_bytes: int
    span_ms: int | None = None

    @staticmethod
    def of(config: TopicConfig) -> SegmentLimits:
        """Return the limits of a topic, without one for times.

        Args:
            config: The configs of the topic.
        """
        return SegmentLimits(config.number("segment.bytes"), config.number("segment.index.bytes"))


@dataclass(frozen=True, slots=True)
class SegmentGroup:
    """Neighbouring segments, from number `start` to before `stop`, and what they have together."""

    start: int
    stop: int
    size_bytes: int
    index_bytes: int
    producer_count: int
    base_offset: int
    next_offset: int
    min_timestamp_ms: int
    max_timestamp_ms: int

    @staticmethod
    def of(number: int, entry: SegmentEntry) -> SegmentGroup:
        """Return the group of one segment, which has this number.

        Args:
            number: The number of the segment in its partition.
            entry: The segment's entry.
        """
        return SegmentGroup(
            number,
            number + 1,
            entry["size_bytes"],
            max(entry["index_bytes"], entry["time_index_bytes"]),
            len(entry["producer_ids"]),
            entry["base_offset"],
            entry["next_offset"],
            entry["min_timestamp_ms"],
            entry["max_timestamp_ms"],
        )

    def joined(self, after: SegmentGroup) -> SegmentGroup:
        """Return this group and the one after it as one.

        Args:
            after: The group that begins with the segment after this one.
        """
        return SegmentGroup(
            self.start,
            after.stop,
            self.size_bytes + after.size_bytes,
            self.index_bytes + after.index_bytes,
            self.producer_count + after.producer_count,
            self.base_offset,
            after.next_offset,
            min(self.min_timestamp_ms, after.min_timestamp_ms),
            max(self.max_timestamp_ms, after.max_timestamp_ms),
        )

    def fits(self, limits: SegmentLimits) -> bool:
        """Return whether one segment may hold the group.

        Args:
            limits: What one segment may hold.
        """
        span_ms = self.max_timestamp_ms - self.min_timestamp_ms
        return (
            self.size_bytes <= limits.segment_bytes
            and self.index_bytes <= limits.index_bytes
            and self.producer_count <= MAX_PRODUCERS
            and self.next_offset - 1 - self.base_offset <= MAX_RELATIVE_OFFSET
            and (limits.span_ms is None or span_ms <= limits.span_ms)
        )
