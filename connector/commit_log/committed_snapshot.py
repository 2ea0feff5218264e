"""The topics of a klog root as their commits say: nothing is listed but names, nothing opened.

The rule: a look loads the state of each topic asked for, at most once; a long-lived root goes on
from the state it knows, so that looking at an idle topic costs one read and one listing. No
transaction is open: klog's own segments hold none, and a broker's log is adopted when all have
ended, so the last stable offset is the log end. A segment's file says its
offsets as written: the log's are `offset_shift` higher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from klog.connector.commit_log import segment_entries, segment_time_lookup
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.topic_partition import TopicPartition
from klog.logformat.array_types import Longs


@dataclass(frozen=True, slots=True)
class CommittedPartition:
    """A partition of a klog root; `segments` has `entries.SCHEMA`, in order of offset."""

    name: TopicPartition
    topic_id: str
    root: KlogRoot
    log_start: int
    log_end: int
    segments: pa.Table

    @property
    def is_locked_by_broker(self) -> bool:
        """Tell that no broker has it."""
        return False

    @property
    def readable_end(self) -> int:
        """Give the log end: what is committed is whole."""
        return self.log_end

    @property
    def size_bytes(self) -> int:
        """Give the bytes of its segments."""
        return int(self.numbers("size_bytes").sum())

    @property
    def segment_count(self) -> int:
        """Give the number of its segments."""
        return int(self.segments.num_rows)

    def numbers(self, column: str) -> Longs:
        """Give a column of the segments."""
        found: Longs = self.segments[column].to_numpy()
        return found

    def overlapping(self, start: int, end: int) -> pa.Table:
        """Keep the segments that reach into a range of offsets."""
        first = int(np.searchsorted(self.numbers("next_offset"), start, "right"))
        behind = int(np.searchsorted(self.numbers("base_offset"), end, "left"))
        return self.segments.slice(first, max(behind - first, 0))

    def last_stable_offset(self) -> int:
        """Give the log end."""
        return self.log_end

    def offset_for_time(self, timestamp_ms: int, bound: int) -> int | None:
        """Give the first offset of at least this time, None if none below `bound` has it."""
        late = self.numbers("max_timestamp_ms") >= timestamp_ms
        late &= self.numbers("next_offset") > self.log_start
        for number in np.flatnonzero(late).tolist():
            entry = self.segments.slice(number, 1).to_pylist()[0]
            if entry["base_offset"] >= bound:
                return None
            found = segment_time_lookup.offset_for_time(
                self.root, entry, timestamp_ms, self.log_start
            )
            if found is not None:
                return found if found < bound else None
        return None


class CommittedRoot:
    """A klog root for reading; a long-lived one keeps the states that it has loaded."""

    def __init__(self, root: KlogRoot) -> None:
        """Take the root; nothing is read yet."""
        self.root = root
        self._known: dict[str, TopicState] = {}

    def snapshot(self) -> CommittedSnapshot:
        """See what is there now: each topic as of when it is first asked for."""
        return CommittedSnapshot(self)

    def state(self, topic: str) -> TopicState:
        """Load a topic's state, from the one known; `topic.json` is read when nothing is known."""
        known = self._known.get(topic)
        log = self.root.log(topic) if known is not None else self.root.log_to_read(topic)
        self._known[topic] = log.load(known)
        return self._known[topic]


class CommittedSnapshot:
    """What a klog root held at one look."""

    def __init__(self, root: CommittedRoot) -> None:
        """Begin a look; a topic is loaded when it is asked for."""
        self._root = root
        self._loaded: dict[str, TopicState] = {}
        self._segments: dict[str, pa.Table] = {}
        self.topics: Mapping[str, Sequence[int]] = _Topics(self, root.root.topic_names)

    @property
    def no_topics_hint(self) -> str:
        """Say that the root has no topics."""
        return (
            f"{self._root.root.location} has no topics. Create one with `klog topics create`, or "
            "write to one"
        )

    def missing_topic_reason(self, topic: str) -> str:
        """Say that a topic is not there, or that it was deleted."""
        if self.state(topic).version < 0:
            return f"there is no topic {topic}"
        return f"topic {topic} was deleted (`klog history --topic {topic}` says when and by whom)"

    def __contains__(self, name: object) -> bool:
        """Tell whether a `TopicPartition` was there."""
        if not isinstance(name, TopicPartition):
            return False
        return 0 <= name.partition < self.state(name.topic).partitions

    def open(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedPartition]:
        """Open partitions; one that is not there is a `FileNotFoundError`."""
        opened = {}
        for name in names:
            if name not in self:
                raise FileNotFoundError(f"partition {name} has gone")
            state = self.state(name.topic)
            if name.topic not in self._segments:
                self._segments[name.topic] = state.segments.combine_chunks()
            opened[name] = CommittedPartition(
                name,
                state.topic_id,
                self._root.root,
                state.log_start[name.partition],
                state.log_end[name.partition],
                segment_entries.rows_of_partition(self._segments[name.topic], name.partition),
            )
        return opened

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Give the id of each of these topics."""
        ids = {topic: self.state(topic).topic_id for topic in topics}
        return {topic: topic_id for topic, topic_id in ids.items() if topic_id}

    def state(self, topic: str) -> TopicState:
        """Give the state of a topic as of this look; one that is not there has no id."""
        if topic not in self._loaded:
            self._loaded[topic] = self._root.state(topic)
        return self._loaded[topic]


class _Topics(Mapping[str, Sequence[int]]):
    """The topics, each loaded when it is asked for; by name alone, deleted ones are there too."""

    def __init__(self, look: CommittedSnapshot, list_names: Callable[[], list[str]]) -> None:
        self._look, self._list_names = look, list_names
        self._names: list[str] | None = None

    def __getitem__(self, topic: str) -> Sequence[int]:
        partitions = range(self._look.state(topic).partitions)
        if not partitions:
            raise KeyError(topic)
        return partitions

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed())

    def __len__(self) -> int:
        return len(self._listed())

    def _listed(self) -> list[str]:
        if self._names is None:
            self._names = self._list_names()
        return self._names
