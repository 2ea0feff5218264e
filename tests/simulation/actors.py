"""Who works on a simulated topic: writers, readers and maintenance, each in klog's own code.

A segment's bytes are its records as JSON, each of them (writer, batch, partition, number): that is
all that the protocol needs of them, and enough to tell whose they are wherever they turn up.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from klog.connector.log import entries, garbage, operations
from klog.connector.log.commit import Topic
from klog.connector.log.paths import SegmentPath, TopicPaths
from klog.connector.log.state import State
from klog.connector.log.topic_log import Attempt, TopicLog
from klog.errors import CommitConflictError, KlogError
from tests.simulation.world import Actor, FoundError, SimulatedStore, StoreDownError, World

TOPIC, ROOT = "orders", "/root"
PARTITIONS = 2
STEP_MS = 1000
GRACE_MS = 200 * STEP_MS
START_MS = 1_700_000_000_000

Run = Callable[[Actor], None]
Record = tuple[str, int, int, int]


@dataclass
class Cast:
    """The actors' common knowledge: what Spark's checkpoints and the writers' callers know."""

    world: World
    done: dict[str, int] = field(default_factory=dict)
    acknowledged: set[tuple[str, int]] = field(default_factory=set)
    seen: dict[tuple[int, int], Record] = field(default_factory=dict)
    batches: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Whose batch a file was written for."""
    deletes_early: bool = False
    """Vacuum's clock is ahead: then what is old to it may be young to a reader."""

    def log(self, actor: Actor) -> TopicLog:
        """Give the topic's log as this actor sees it, by their own clock."""
        return TopicLog(
            SimulatedStore(self.world),
            TopicPaths(ROOT, TOPIC),
            lambda: START_MS + self.world.now * STEP_MS + actor.skew_ms,
            lambda tries: self.idle(),
        )

    def attempt(self, operation: str) -> Attempt:
        """Give what a new try of an operation is called."""
        return Attempt(self.world.new_id(), operation, "simulation")

    def idle(self, steps: int = 1) -> None:
        """Let others go first."""
        for _ in range(steps):
            self.world.hand_over("clock", lambda: None)

    def create(self) -> None:
        """Make the topic before anybody begins."""
        log = self.log(Actor("creator", lambda actor: None, 0, False))
        topic = Topic("id", PARTITIONS)
        log.commit(log.load(), operations.create_topic(topic, {}), self.attempt("create-topic"))

    def stage(self, log: TopicLog, state: State, writer: str, batch: int) -> operations.Staged:
        """Write a file for each partition, as tasks do."""
        staged = []
        for partition in range(PARTITIONS):
            records = [(writer, batch, partition, n) for n in range(1 + (batch + partition) % 3)]
            entry = self.write(log, state, partition, state.log_end[partition], records, "append")
            self.batches[entry["file"]] = (writer, batch)
            staged.append(entry)
        return operations.Staged(state.topic_id, state.version, staged)

    def write(
        self,
        log: TopicLog,
        state: State,
        partition: int,
        base: int,
        records: list[Record],
        origin: str,
    ) -> entries.Entry:
        """Write one segment and give its entry."""
        file = str(SegmentPath(TOPIC, partition, base, state.version, self.world.new_id()))
        data = json.dumps(records).encode()
        log.store.put(log.paths.data(file), [data])
        plain = dict.fromkeys(entries.SCHEMA.names, 0)
        return {
            **plain,
            "partition": partition,
            "file": file,
            "base_offset": base,
            "next_offset": base + len(records),
            "size_bytes": len(data),
            "codec": "none",
            "producer_ids": [],
            "origin": origin,
        }

    def stream(self, name: str, batches: int) -> Run:
        """Write batches in order, each exactly once, from where the checkpoint is."""

        def run(actor: Actor) -> None:
            log, run_id = self.log(actor), self.world.new_id()
            state = log.load()
            while (batch := self.done.get(name, 0)) < batches:
                staged = self.stage(log, state, name, batch)
                writer = operations.Writer(name, batch, f"query of {name}", run_id)
                state = self.commit_staged(log, state, staged, writer)
                self.acknowledged.add((name, batch))
                self.done[name] = max(self.done.get(name, 0), batch + 1)

        return run

    def commit_staged(
        self,
        log: TopicLog,
        state: State,
        staged: operations.Staged,
        writer: operations.Writer | None,
    ) -> State:
        """Commit as Spark's sink does: what it takes for a failure is followed by an abort."""
        try:
            state = log.commit(state, operations.append(staged, writer), self.attempt("append"))
            if writer is not None and self.world.random.random() < 0.03:
                raise StoreDownError("it landed, and Spark never heard")
        except KlogError:
            self.abort(log, staged)
            raise
        return state

    def abort(self, log: TopicLog, staged: operations.Staged) -> None:
        """Do nothing: what was staged may have been committed."""

    def batch_writer(self, name: str, batches: int) -> Run:
        """Write batches without a name; who fails is not begun anew."""

        def run(actor: Actor) -> None:
            log = self.log(actor)
            for batch in range(batches):
                state = log.load()
                staged = self.stage(log, state, name, batch)
                self.commit_staged(log, state, staged, None)
                self.acknowledged.add((name, batch))

        return run

    def merger(self) -> Run:
        """Make one segment of three neighbours, over and over."""

        def run(actor: Actor) -> None:
            log = self.log(actor)
            while True:
                self.idle()
                state = log.load()
                partition = self.world.random.randrange(PARTITIONS)
                rows = entries.of_partition(state.segments, partition).to_pylist()
                if len(rows) >= 3:
                    first = self.world.random.randrange(len(rows) - 2)
                    self._merge(log, state, rows[first : first + 3])

        return run

    def _merge(self, log: TopicLog, state: State, rows: list[entries.Entry]) -> None:
        try:
            records = [one for row in rows for one in self.records(log, row)]
        except FileNotFoundError:
            return
        output = self.write(
            log, state, rows[0]["partition"], rows[0]["base_offset"], records, "merge"
        )
        inputs = [row["file"] for row in rows]
        build = operations.replace_segments(
            state.topic_id, state.version, inputs, [output], {output["partition"]: 0}
        )
        try:
            log.commit(state, build, self.attempt("merge"))
        except CommitConflictError:
            return

    def records(self, log: TopicLog, row: entries.Entry) -> list[Record]:
        """Read a segment's records."""
        found = json.loads(log.store.read(log.paths.data(row["file"])))
        return [(writer, batch, partition, n) for writer, batch, partition, n in found]

    def retention(self) -> Run:
        """Let the oldest segment go where there are many."""

        def run(actor: Actor) -> None:
            log = self.log(actor)
            while True:
                self.idle(40)
                state = log.load()
                partition = self.world.random.randrange(PARTITIONS)
                rows = entries.of_partition(state.segments, partition).to_pylist()
                if len(rows) >= 6:
                    start = rows[0]["next_offset"] - self.world.random.randrange(2)
                    build = operations.delete_records(state.topic_id, {partition: start})
                    log.commit(state, build, self.attempt("retain"))

        return run

    def log_cleaner(self) -> Run:
        """Checkpoint, sometimes badly, and clean the log behind it."""

        def run(actor: Actor) -> None:
            log = self.log(actor)
            while True:
                self.idle(12)
                state = log.load()
                if state.version >= 4:
                    before = set(self.world.files)
                    path = log.paths.checkpoint(garbage.write_checkpoint(log, state))
                    if path not in before:
                        self._damage(path)
                    garbage.clean_log(log, GRACE_MS // 2)

        return run

    def _damage(self, path: str) -> None:
        """Tear a checkpoint, or change it, as a store that is not what it says may do."""
        data = self.world.files.get(path, b"")
        chance = self.world.random.random()
        if data and chance < 0.2:
            torn, changed = data[: len(data) // 2], data[:-9] + bytes(1) + data[-8:]
            self.world.files[path] = torn if chance < 0.1 else changed

    def vacuum(self) -> Run:
        """Delete the topic's garbage, over and over."""

        def run(actor: Actor) -> None:
            log = self.log(actor)
            self.deletes_early |= actor.skew_ms > STEP_MS
            while True:
                self.idle(3)
                garbage.vacuum(log, self.attempt("vacuum"), GRACE_MS)

        return run

    def reader(self, name: str) -> Run:
        """Read the whole log again and again; it must never contradict what was read before."""

        def run(actor: Actor) -> None:
            log, ends, state = self.log(actor), [0] * PARTITIONS, None
            while True:
                began = self.world.now
                state = log.load(state if self.world.random.random() < 0.5 else None)
                for partition in range(PARTITIONS):
                    if state.log_end[partition] < ends[partition]:
                        raise FoundError(f"{name}: the log end of {partition} went back")
                ends = list(state.log_end)
                self.idle(self.world.random.choice([0, 0, 4, 8]))
                self._read_all(log, state, name, began)

        return run

    def _read_all(self, log: TopicLog, state: State, name: str, began: int) -> None:
        for partition in range(PARTITIONS):
            for row in tiling(state, partition):
                try:
                    records = self.records(log, row)
                except FileNotFoundError:
                    age_ms = (self.world.now - began) * STEP_MS
                    if age_ms < GRACE_MS - 2 * STEP_MS and not self.deletes_early:
                        raise FoundError(f"{name}: {row['file']} of an open plan is gone") from None
                    if row["file"] in log.load().segments["file"].to_pylist():
                        raise FoundError(f"{name}: live file {row['file']} is gone") from None
                    return
                for number, record in enumerate(records):
                    at = (partition, row["base_offset"] + number)
                    if self.seen.setdefault(at, record) != record:
                        raise FoundError(f"{name}: {at} was {self.seen[at]}, is {record}")


def tiling(state: State, partition: int) -> list[entries.Entry]:
    """Give a partition's segments in order, which must tile it from its start to its end."""
    rows: list[entries.Entry] = entries.of_partition(state.segments, partition).to_pylist()
    start, end = state.log_start[partition], state.log_end[partition]
    at = rows[0]["base_offset"] if rows else start
    if at > start:
        raise FoundError(f"partition {partition} begins at {start}, its first segment at {at}")
    for row in rows:
        if row["base_offset"] != at:
            raise FoundError(f"partition {partition}: {row['file']} begins at {at}")
        at = row["next_offset"]
    if at != end:
        raise FoundError(f"partition {partition} ends at {end}, its last segment at {at}")
    return rows
