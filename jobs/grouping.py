"""What neighbouring segments may become one: as much as one segment may hold.

The rule is that of Kafka's cleaner (`Cleaner.groupSegmentsBySize`): the bytes of the logs within
`segment.bytes` and of each index within `segment.index.bytes`, offsets that an index can say. It
goes by the sizes before, for what is left of a segment that loses records is not known until it is
written. A commit can name so many producers of a segment, and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

from klog.connector.log.entries import MOST_PRODUCERS, Entry
from klog.logformat.index import MAX_RELATIVE_OFFSET
from klog.logformat.topic_config import TopicConfig


@dataclass(frozen=True, slots=True)
class Limits:
    """What a segment may hold; sizes in bytes, `span_ms` from its first record's time to its last.

    Without `span_ms` any times may lie in one segment.
    """

    segment_bytes: int
    index_bytes: int
    span_ms: int | None = None

    @staticmethod
    def of(config: TopicConfig) -> Limits:
        """Take a topic's limits but for times."""
        return Limits(config.number("segment.bytes"), config.number("segment.index.bytes"))


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbours from number `begin` to before `end`; offsets of the log, the end exclusive."""

    begin: int
    end: int
    size_bytes: int
    index_bytes: int
    producers: int
    base_offset: int
    next_offset: int
    min_timestamp_ms: int
    max_timestamp_ms: int

    @staticmethod
    def of(number: int, entry: Entry) -> Group:
        """Begin a group with one segment."""
        return Group(
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

    def joined(self, behind: Group) -> Group:
        """Give the group with the one behind it."""
        return Group(
            self.begin,
            behind.end,
            self.size_bytes + behind.size_bytes,
            self.index_bytes + behind.index_bytes,
            self.producers + behind.producers,
            self.base_offset,
            behind.next_offset,
            min(self.min_timestamp_ms, behind.min_timestamp_ms),
            max(self.max_timestamp_ms, behind.max_timestamp_ms),
        )

    def fits(self, limits: Limits) -> bool:
        """Tell whether one segment may hold it."""
        span_ms = self.max_timestamp_ms - self.min_timestamp_ms
        return (
            self.size_bytes <= limits.segment_bytes
            and self.index_bytes <= limits.index_bytes
            and self.producers <= MOST_PRODUCERS
            and self.next_offset - 1 - self.base_offset <= MAX_RELATIVE_OFFSET
            and (limits.span_ms is None or span_ms <= limits.span_ms)
        )
