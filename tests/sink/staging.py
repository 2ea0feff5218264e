"""Stage rows for a topic on a store in memory, as one task does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any

from klog.connector.log import operations
from klog.connector.log.commit import Topic
from klog.connector.log.operations import Staged
from klog.connector.log.state import State
from klog.connector.sink.plan import WritePlan, plan_write
from klog.connector.sink.segments import Task
from klog.connector.sink.stage import Given, stage
from tests.commits.logs import ROOT, TOPIC, CountingStore, attempt, topic_log
from tests.sink.reading import Row, read_segment

NOW_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Done:
    """What a task left."""

    plan: WritePlan
    staged: Staged
    store: CountingStore

    def bytes_of(self, entry: Any, suffix: str = ".log") -> bytes:
        """Give a file of a segment."""
        stem = entry["file"].removesuffix(".log")
        return self.store.files[f"{ROOT}/{stem}{suffix}"]

    def rows(self, partition: int) -> list[Row]:
        """Give a partition's records, the segments one behind the other."""
        found: list[Row] = []
        for entry in self.staged.segments:
            if entry["partition"] == partition:
                found += read_segment(self.bytes_of(entry), entry)
        return found

    def log_bytes(self, partition: int) -> bytes:
        """Give the bytes of a partition's segments together."""
        own = [entry for entry in self.staged.segments if entry["partition"] == partition]
        return b"".join(map(self.bytes_of, own))


def topic(partitions: int = 1, **config: str) -> State:
    """Make a topic; the names of its configs have underscores for dots."""
    said = {name.replace("_", "."): value for name, value in config.items()}
    log = topic_log(CountingStore())
    build = operations.create_topic(Topic("an id", partitions), said)
    return log.commit(log.load(), build, attempt("create-topic"))


def staged(
    state: State,
    given: Given,
    options: Mapping[str, str] | None = None,
    task: int = 0,
    open_file: Callable[[], IO[bytes]] = BytesIO,
) -> Done:
    """Stage rows on top of a state."""
    store = CountingStore()
    plan = plan_write(TOPIC, ROOT, state, options or {}, "a writer", 40_000)
    found = stage(plan, Task(task, "0123abcd", NOW_MS), given, store, open_file)
    return Done(plan, found, store)
