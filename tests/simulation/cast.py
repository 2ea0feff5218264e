"""The state that all actors of a world share, and how they write segments.

The rule: a segment's bytes are its records as JSON, each (writer, batch, partition, number). The
protocol needs no more, and it is enough to tell a record's writer wherever it turns up. Null stands
for a record that a compaction removed. The state here survives crashes: Spark's checkpoints,
acknowledgements, and what readers saw.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.live_segments import LiveSegments
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.topic_state import TopicState
from tests.simulation.simulated_store import SimulatedStore
from tests.simulation.world import Actor, World
from tests.support.segment_entry import entry_of

TOPIC, ROOT = "orders", "/root"
PARTITIONS = 2

Batch = tuple[str, str, int]
"""A transactional id (for batch writers: their name), the query, and the batch id."""
Record = tuple[str, int, int, int]
Records = Sequence[Record | None]
Position = tuple[str, int, int]
"""A topic's id, a partition and an offset."""


def key_of(record: Record) -> int:
    """Return a record's key; a compaction keeps the last record of each key."""
    _, batch, _, number = record
    return (batch + number) % 5


@dataclass
class Cast:
    """The state that the actors share."""

    world: World
    done: dict[str, int] = field(default_factory=dict)
    """Spark's checkpoint: the next batch of each query."""
    acknowledged: set[Batch] = field(default_factory=set)
    seen: dict[Position, Record] = field(default_factory=dict)
    """The records that readers have read."""
    batches: dict[str, Batch] = field(default_factory=dict)
    """The batch of each file."""
    records: dict[str, Records] = field(default_factory=dict)
    """The records of each file."""
    written_for: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The topic's id and number of partitions when each file was written."""
    kept: dict[str, TopicState] = field(default_factory=dict)
    """The state that each reader loaded last."""
    wrap_log: Callable[[CommitLog], CommitLog] | None = None
    """Return the same log with checks of its loads and commits."""
    _planned: dict[int, tuple[LiveSegments, list[segment_entries.SegmentEntry]]] = field(
        default_factory=dict
    )

    def log(self, actor: Actor) -> CommitLog:
        """Return the topic's log for an actor, with its own clock."""
        log = CommitLog(
            SimulatedStore(self.world),
            TopicPaths(ROOT, TOPIC),
            lambda: self.world.clock(actor),
            lambda tries: self.idle(2 * tries),
        )
        return log if self.wrap_log is None else self.wrap_log(log)

    def attempt(self, operation: str) -> CommitInfo:
        """Return the info of a new commit."""
        return CommitInfo(self.world.new_id(), operation, "simulation")

    def chance(self, share: float) -> bool:
        """Draw whether an event happens whose probability is `share`."""
        return self.world.random.random() < share

    def idle(self, steps: int) -> None:
        """Sleep for some steps, while other actors run."""
        self.world.request("clock", lambda: None, steps)

    def write(
        self,
        log: CommitLog,
        state: TopicState,
        partition: int,
        base: int,
        records: Records,
        origin: str,
    ) -> segment_entries.SegmentEntry:
        """Write a segment; return its entry."""
        file = str(SegmentPath(TOPIC, partition, base, state.version, self.world.new_id()))
        data = json.dumps(records).encode()
        self.records[file] = records
        self.written_for[file] = (state.topic_id, state.partitions)
        log.store.put(log.paths.data(file), [data])
        return entry_of(file, partition, base, base + len(records), origin, size_bytes=len(data))

    def read(self, log: CommitLog, row: segment_entries.SegmentEntry) -> Records:
        """Read a segment's records."""
        values = json.loads(log.store.read(log.paths.data(row["file"])))
        return [
            None if value is None else (value[0], value[1], value[2], value[3]) for value in values
        ]

    def rows(self, state: TopicState, partition: int) -> list[segment_entries.SegmentEntry]:
        """Return a partition's segments in order, as a plan has them."""
        live, rows = self._planned.get(id(state.live), (None, []))
        if live is None:
            rows = state.segments.to_pylist()
            self._planned[id(state.live)] = (state.live, rows)
        return [row for row in rows if row["partition"] == partition]
