"""What all actors of a world know of each other, and how each of them writes a segment.

The rule: a segment's bytes are its records as JSON, each of them (writer, batch, partition,
number): that is all that the protocol needs of them, and enough to tell whose they are wherever
they turn up; null is where a compaction took one out. What is kept here outlives crashes: Spark's
checkpoints, what callers were told, and what readers saw.
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
"""A transactional id (none for batch writers: their name), the query, and the batch's number."""
Record = tuple[str, int, int, int]
Records = Sequence[Record | None]
Place = tuple[str, int, int]
"""A topic's id, a partition and an offset."""


def key_of(record: Record) -> int:
    """Give a record's key, of which a compaction keeps the last record."""
    _, batch, _, number = record
    return (batch + number) % 5


@dataclass
class Cast:
    """The actors' common knowledge."""

    world: World
    done: dict[str, int] = field(default_factory=dict)
    """By query the next batch: Spark's checkpoint."""
    acknowledged: set[Batch] = field(default_factory=set)
    seen: dict[Place, Record] = field(default_factory=dict)
    """What readers read."""
    batches: dict[str, Batch] = field(default_factory=dict)
    """Whose batch a file was written for."""
    records: dict[str, Records] = field(default_factory=dict)
    """What was written to a file."""
    written_for: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The topic's id and its partitions when a file was written."""
    kept: dict[str, TopicState] = field(default_factory=dict)
    """By reader the last state they loaded."""
    watched: Callable[[CommitLog], CommitLog] | None = None
    """Gives the same log with its loads and commits looked at."""
    _planned: dict[int, tuple[LiveSegments, list[segment_entries.SegmentEntry]]] = field(
        default_factory=dict
    )

    def log(self, actor: Actor) -> CommitLog:
        """Give the topic's log as this actor sees it, by their own clock."""
        log = CommitLog(
            SimulatedStore(self.world),
            TopicPaths(ROOT, TOPIC),
            lambda: self.world.clock(actor),
            lambda tries: self.idle(2 * tries),
        )
        return log if self.watched is None else self.watched(log)

    def attempt(self, operation: str) -> CommitInfo:
        """Give what a new try of an operation is called."""
        return CommitInfo(self.world.new_id(), operation, "simulation")

    def chance(self, share: float) -> bool:
        """Draw whether something happens that does in such a share of all cases."""
        return self.world.random.random() < share

    def idle(self, steps: int) -> None:
        """Sleep, so that others go first."""
        self.world.hand_over("clock", lambda: None, steps)

    def write(
        self,
        log: CommitLog,
        state: TopicState,
        partition: int,
        base: int,
        records: Records,
        origin: str,
    ) -> segment_entries.SegmentEntry:
        """Write one segment and give its entry."""
        file = str(SegmentPath(TOPIC, partition, base, state.version, self.world.new_id()))
        data = json.dumps(records).encode()
        self.records[file] = records
        self.written_for[file] = (state.topic_id, state.partitions)
        log.store.put(log.paths.data(file), [data])
        return entry_of(file, partition, base, base + len(records), origin, size_bytes=len(data))

    def read(self, log: CommitLog, row: segment_entries.SegmentEntry) -> Records:
        """Read a segment's records."""
        found = json.loads(log.store.read(log.paths.data(row["file"])))
        return [None if one is None else (one[0], one[1], one[2], one[3]) for one in found]

    def rows(self, state: TopicState, partition: int) -> list[segment_entries.SegmentEntry]:
        """Give a partition's segments in order, as a plan would."""
        live, rows = self._planned.get(id(state.live), (None, []))
        if live is None:
            rows = state.segments.to_pylist()
            self._planned[id(state.live)] = (state.live, rows)
        return [row for row in rows if row["partition"] == partition]
