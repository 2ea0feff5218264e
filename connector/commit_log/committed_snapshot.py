"""The topics of a klog root as their commits say: only names are listed, and no segment is opened.

The rule: a snapshot loads the state of each topic that a caller asks for, at most once. A
long-lived root continues from the states that it knows, so that a snapshot of an idle topic costs
one read and one listing. No transaction is open: klog's own segments have none, and a broker's log
is adopted after all have ended, so the last stable offset is the log end. A segment's file has the
offsets as written: those of the log are `offset_shift` higher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from klog.connector.commit_log.commit import Hole
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.past_restores import (
    PastRestore,
    first_changed_offset,
    last_restore,
)
from klog.connector.commit_log.segment_files import LIVE_FILES, SegmentFiles
from klog.connector.commit_log.segment_table import SegmentTable
from klog.connector.commit_log.topic_state import TopicState
from klog.logformat.array_types import Longs
from klog.logformat.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class CommittedPartition:
    """A partition of a klog root.

    Attributes:
        name: Topic and number.
        topic_id: The id of the topic.
        root: The root.
        log_start: The log start offset.
        log_end: The log end offset.
        table: The segments of the topic.
        rows: Those of the partition, in order of offset.
        holes: The holes of the topic.
        restores: The restores of the topic.
        files: Looks whether the files of its segments are there.
    """

    name: TopicPartition
    topic_id: str
    root: KlogRoot
    log_start: int
    log_end: int
    table: SegmentTable
    rows: range
    holes: tuple[Hole, ...] = ()
    restores: tuple[PastRestore, ...] = ()
    files: SegmentFiles = LIVE_FILES

    @property
    def segments(self) -> pa.Table:
        """Return its segments, a table of `segment_entries.SCHEMA` in order of offset."""
        return self.table.table.slice(self.rows.start, len(self.rows))

    @property
    def last_restore(self) -> int:
        """Return the version of the commit that restored the topic last; 0 if none has."""
        return last_restore(self.restores)

    def first_changed_offset(self, seen_restore: int) -> int | None:
        """See `PartitionSnapshot.first_changed_offset`."""
        return first_changed_offset(self.restores, seen_restore, self.name.partition)

    def first_hole(self, start_offset: int, end_offset: int) -> int | None:
        """See `PartitionSnapshot.first_hole`."""
        for hole in self.holes:
            if hole.partition != self.name.partition:
                continue
            start, end = max(hole.base_offset, start_offset), min(hole.next_offset, end_offset)
            # A merged segment may have swallowed the hole.
            if start < end and not self.overlapping(start, end).num_rows:
                return start
        return None

    @property
    def is_locked_by_broker(self) -> bool:
        """Return False: no broker has it."""
        return False

    @property
    def readable_end(self) -> int:
        """Return the log end: committed segments are complete."""
        return self.log_end

    @property
    def size_bytes(self) -> int:
        """Return the size of its segments."""
        return int(self.numbers("size_bytes").sum())

    @property
    def segment_count(self) -> int:
        """Return the number of its segments."""
        return len(self.rows)

    def numbers(self, column: str) -> Longs:
        """Return a column of the segments.

        Args:
            column: The name of the column.
        """
        return self.table.numbers(column)[self.rows.start : self.rows.stop]

    def overlapping_rows(self, start: int, end: int) -> range:
        """Return the rows of the table with the segments that have offsets of a range.

        Args:
            start: The first offset.
            end: The offset after the last one.
        """
        first = int(self.numbers("next_offset").searchsorted(start, "right"))
        after = int(self.numbers("base_offset").searchsorted(end, "left"))
        return self.rows[first : max(after, first)]

    def overlapping(self, start: int, end: int) -> pa.Table:
        """Return the segments that have offsets of a range.

        Args:
            start: The first offset.
            end: The offset after the last one.
        """
        rows = self.overlapping_rows(start, end)
        return self.table.table.slice(rows.start, len(rows))

    def bytes_between(self, start_offset: int, end_offset: int) -> int:
        """See `PartitionSnapshot.bytes_between`."""
        rows = self.overlapping_rows(start_offset, end_offset)
        base, next_offset, size_bytes = (
            self.table.numbers(name)[rows.start : rows.stop]
            for name in ("base_offset", "next_offset", "size_bytes")
        )
        counts = np.minimum(next_offset, end_offset) - np.maximum(base, start_offset)
        return int(np.ceil(size_bytes * (counts / (next_offset - base))).sum())

    def last_stable_offset(self) -> int:
        """Return the log end."""
        return self.log_end

    def offset_for_time(self, timestamp_ms: int, end_offset: int) -> int | None:
        """Return the first offset whose record is at or after a time; None if there is none.

        Args:
            timestamp_ms: The time, in ms since the epoch.
            end_offset: Records at or above this offset do not count.
        """
        from klog.connector.commit_log import partition_times  # It decodes batches.

        return partition_times.find_first_offsets([self], [timestamp_ms], [end_offset])[0]

    def offsets_between_times(
        self, start_ms: int | None, end_ms: int | None, start_offset: int, end_offset: int
    ) -> tuple[int, int]:
        """See `PartitionSnapshot.offsets_between_times`."""
        rows = self.overlapping_rows(start_offset, end_offset)
        segments = slice(rows.start, rows.stop)
        numbers = self.table.numbers
        may_have = np.ones(len(rows), np.bool_)
        if start_ms is not None:
            may_have &= numbers("max_timestamp_ms")[segments] >= start_ms
        if end_ms is not None:
            # Of other segments commits have only the first timestamp of each batch.
            is_known = self.table.is_appended[segments]
            may_have &= ~is_known | (numbers("min_timestamp_ms")[segments] < end_ms)
        kept = np.flatnonzero(may_have)
        if not len(kept):
            return end_offset, end_offset
        start = int(numbers("base_offset")[segments][kept[0]])
        end = int(numbers("next_offset")[segments][kept[-1]])
        return max(start, start_offset), min(end, end_offset)

    def max_timestamp_ms(self) -> int | None:
        """See `PartitionSnapshot.max_timestamp_ms`."""
        from klog.connector.commit_log import partition_times

        return partition_times.find_max_timestamps([self])[0]


class CommittedRoot:
    """A klog root for reading; a long-lived one keeps the states that it has loaded."""

    def __init__(self, root: KlogRoot) -> None:
        """Take the root; nothing is read yet.

        Args:
            root: The root.
        """
        self.root = root
        self._states: dict[str, TopicState] = {}

    @property
    def is_klog_root(self) -> bool:
        """Return True."""
        return True

    @property
    def loaded_segments(self) -> int:
        """Return how many segments the states have that it keeps."""
        return sum(len(state.live) for state in self._states.values())

    def is_same_root(self, other: CommittedRoot) -> bool:
        """Return whether another root is this one, by what its `format.json` says.

        Args:
            other: A root at the same path, opened later.
        """
        return self.root.description == other.root.description

    def snapshot(self) -> CommittedSnapshot:
        """Return a snapshot: each topic as of when a caller first asks for it."""
        return CommittedSnapshot(self)

    def state(self, topic: str) -> TopicState:
        """Load a topic's state, from the cached one if there is one.

        Args:
            topic: The name of the topic.
        """
        cached = self._states.get(topic)
        log = self.root.log(topic) if cached is not None else self.root.log_to_read(topic)
        self._states[topic] = log.load(cached)
        return self._states[topic]


class CommittedSnapshot:
    """The topics of a klog root at one time."""

    def __init__(self, root: CommittedRoot) -> None:
        """Take the root; a topic is loaded when a caller asks for it.

        Args:
            root: The root, which keeps the states that are loaded.
        """
        self._root = root
        self._loaded: dict[str, TopicState] = {}
        self._segments: dict[str, SegmentTable] = {}
        self.topics: Mapping[str, Sequence[int]] = TopicsOfSnapshot(self, root.root.topic_names)

    @property
    def no_topics_hint(self) -> str:
        """Return the text that the root has no topics, and what to do."""
        return (
            f"{self._root.root.location} has no topics. Create one with `klog topics create`, or "
            "write to one"
        )

    def missing_topic_reason(self, topic: str) -> str:
        """Return the text that a topic does not exist, or was deleted.

        Args:
            topic: The name of the topic.
        """
        if self.state(topic).version < 0:
            return f"there is no topic {topic}"
        return f"topic {topic} was deleted (`klog history --topic {topic}` says when and by whom)"

    def __contains__(self, name: object) -> bool:
        """Return whether a `TopicPartition` existed."""
        if not isinstance(name, TopicPartition):
            return False
        return 0 <= name.partition < self.state(name.topic).partitions

    def open(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedPartition]:
        """Open partitions.

        Args:
            names: The partitions.

        Raises:
            FileNotFoundError: A partition does not exist.
        """
        opened = {}
        for name in names:
            if name not in self:
                raise FileNotFoundError(f"partition {name} has gone")
            state = self.state(name.topic)
            table = self._segments.get(name.topic)
            if table is None:
                table = self._segments[name.topic] = SegmentTable(state.segments)
            opened[name] = CommittedPartition(
                name,
                state.topic_id,
                self._root.root,
                state.log_start[name.partition],
                state.log_end[name.partition],
                table,
                table.rows_of_partition(name.partition),
                state.holes,
                state.restores,
            )
        return opened

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the topic ids by topic, without topics that do not exist.

        Args:
            topics: The names of the topics.
        """
        ids = {topic: self.state(topic).topic_id for topic in topics}
        return {topic: topic_id for topic, topic_id in ids.items() if topic_id}

    def state(self, topic: str) -> TopicState:
        """Return the state of a topic as of this snapshot; a missing topic has no id.

        Args:
            topic: The name of the topic.
        """
        if topic not in self._loaded:
            self._loaded[topic] = self._root.state(topic)
        return self._loaded[topic]


class TopicsOfSnapshot(Mapping[str, Sequence[int]]):
    """The topics, each loaded when a caller asks for it; the names include deleted topics."""

    def __init__(self, snapshot: CommittedSnapshot, list_names: Callable[[], list[str]]) -> None:
        self._snapshot, self._list_names = snapshot, list_names
        self._names: list[str] | None = None

    def __getitem__(self, topic: str) -> Sequence[int]:
        partitions = range(self._snapshot.state(topic).partitions)
        if not partitions:
            raise KeyError(topic)
        return partitions

    def __iter__(self) -> Iterator[str]:
        return iter(self._list())

    def __len__(self) -> int:
        return len(self._list())

    def _list(self) -> list[str]:
        if self._names is None:
            self._names = self._list_names()
        return self._names
