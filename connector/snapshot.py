"""What both kinds of root serve: a root, a snapshot of it, a partition of a snapshot.

The rule: what a read asks of a klog root and of a broker's directory goes by these protocols. Two
steps differ by kind: how segments become slices (`source.read_plan`), as neither kind of root knows
what a slice is, and how times are looked up in many partitions (`time_offsets`). A task goes by
`isCommitted` of its slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from klog.logformat.topic_partition import TopicPartition


class PartitionSnapshot(Protocol):
    """A partition that can be read: offsets from `log_start` to before `log_end`."""

    @property
    def name(self) -> TopicPartition:
        """Return topic and number."""

    @property
    def topic_id(self) -> str:
        """Return the id of the topic, which differs if it is created again; empty if none."""

    @property
    def log_start(self) -> int:
        """Return the log start offset."""

    @property
    def log_end(self) -> int:
        """Return the log end offset, or the high watermark while a broker runs."""

    @property
    def last_restore(self) -> int | None:
        """Return the version of the commit that restored the topic last.

        It is 0 if none has, and None if commits do not say what is there.
        """

    def first_changed_offset(self, seen_restore: int) -> int | None:
        """Return the offset from which a restore has changed what a reader has seen.

        Args:
            seen_restore: What `last_restore` was for the reader.

        Returns:
            The offset; None if all that the reader may have seen is there.
        """

    def first_hole(self, start_offset: int, end_offset: int) -> int | None:
        """Return the first offset of a range that a commit says no record has, and no segment.

        Args:
            start_offset: The first offset.
            end_offset: The offset after the last one.
        """

    @property
    def is_locked_by_broker(self) -> bool:
        """Return whether a broker runs on it: then `log_end` may go back for a while."""

    @property
    def readable_end(self) -> int:
        """Return the offset after the last complete record, whatever the high watermark."""

    @property
    def size_bytes(self) -> int:
        """Return the readable bytes of its segments."""

    @property
    def segment_count(self) -> int:
        """Return the number of segments that are not empty."""

    def bytes_between(self, start_offset: int, end_offset: int) -> int:
        """Return about how many bytes a range of offsets has.

        A part of a segment counts as if all of its records were of one size.

        Args:
            start_offset: The first offset.
            end_offset: The offset after the last one.
        """

    def last_stable_offset(self) -> int:
        """Return the first offset of the earliest open transaction, else the log end."""

    def offset_for_time(self, timestamp_ms: int, end_offset: int) -> int | None:
        """Return the offset of the first record at or after a time; None if there is none.

        Args:
            timestamp_ms: The time, in ms since the epoch.
            end_offset: Records at or above this offset do not count.
        """

    def offsets_between_times(
        self, start_ms: int | None, end_ms: int | None, start_offset: int, end_offset: int
    ) -> tuple[int, int]:
        """Return a part of a range that has all of its records between two times; reads nothing.

        Args:
            start_ms: The earliest time, in ms since the epoch; None for no bound.
            end_ms: The time before which all are; None for no bound.
            start_offset: The first offset of the range.
            end_offset: The offset after the last one.

        Returns:
            The part, which is empty if there are no such records, and may be all of the range.
        """

    def max_timestamp_ms(self) -> int | None:
        """Return the largest timestamp of a record, in ms since the epoch; None without records."""


Logs: TypeAlias = Mapping[TopicPartition, PartitionSnapshot]
"""The partitions that were opened for a read."""


class Snapshot(Protocol):
    """What a root had at one moment."""

    @property
    def topics(self) -> Mapping[str, Sequence[int]]:
        """Return the numbers of each topic's partitions.

        Iterating is cheap, and may yield topics that were deleted; `in` looks them up.
        """

    @property
    def no_topics_hint(self) -> str:
        """Return, for an error, that there are no topics, and what to do."""

    def missing_topic_reason(self, topic: str) -> str:
        """Return, for an error, that a topic does not exist, and why.

        Args:
            topic: The topic that is not in `topics`.
        """

    def __contains__(self, name: object) -> bool:
        """Return whether it has a `TopicPartition`."""

    def open(self, names: Iterable[TopicPartition]) -> Mapping[TopicPartition, PartitionSnapshot]:
        """Open partitions.

        Args:
            names: The partitions.

        Raises:
            FileNotFoundError: A partition has gone.
        """

    def topic_ids(self, topics: Iterable[str]) -> Mapping[str, str]:
        """Return the ids of topics, without those that have none.

        Args:
            topics: The names of the topics.
        """


class Root(Protocol):
    """A klog root, or a broker's log directories; it remembers what makes snapshots cheap."""

    @property
    def is_klog_root(self) -> bool:
        """Return whether commits say what is there. A klog root stays one for ever."""

    def snapshot(self) -> Snapshot:
        """Return what is there now."""
