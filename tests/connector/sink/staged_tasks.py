"""Rows staged by one task for a topic, on a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any

from klog.connector.commit_log import commit_builders
from klog.connector.commit_log.append_commit import StagedSegments
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.producer_ids import producer_identity
from klog.connector.sink.task_writer import InputRows, stage_task
from klog.connector.sink.write_plan import TaskAttempt, TopicPlan, plan_append
from tests.connector.commit_log.memory_logs import ROOT, TOPIC, CountingStore, attempt, topic_log
from tests.connector.sink.staged_rows import Row, read_segment

NOW_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class StagedTask:
    """What a task has staged."""

    plan: TopicPlan
    staged: StagedSegments
    store: CountingStore

    def bytes_of(self, entry: Any, suffix: str = ".log") -> bytes:
        """Return a file of a segment."""
        stem = entry["file"].removesuffix(".log")
        return self.store.files[f"{ROOT}/{stem}{suffix}"]

    def rows(self, partition: int) -> list[Row]:
        """Return a partition's records, in the order of its segments."""
        rows: list[Row] = []
        for entry in self.staged.segments:
            if entry["partition"] == partition:
                rows += read_segment(self.bytes_of(entry), entry)
        return rows

    def log_bytes(self, partition: int) -> bytes:
        """Return the bytes of all segments of a partition."""
        entries = [entry for entry in self.staged.segments if entry["partition"] == partition]
        return b"".join(map(self.bytes_of, entries))


def topic_state(partitions: int = 1, **config: str) -> TopicState:
    """Return the state of a new topic; the names of its configs have underscores for dots."""
    config = {name.replace("_", "."): value for name, value in config.items()}
    log = topic_log(CountingStore())
    build = commit_builders.create_topic(Topic("an id", partitions), config)
    return log.commit(log.load(), build, attempt("create-topic"))


def stage_rows(
    state: TopicState,
    rows: InputRows,
    options: Mapping[str, str] | None = None,
    index: int = 0,
    open_file: Callable[[], IO[bytes]] = BytesIO,
) -> StagedTask:
    """Stage rows on top of a state, as batch 40,000 of a writer."""
    store = CountingStore()
    plan = plan_append(TopicPaths(ROOT, TOPIC), state, options or {}, "a write")
    topic_plan = plan.topics[TOPIC]
    task = TaskAttempt(index, "0123abcd", NOW_MS, producer_identity("a writer", index, 40_000))
    message = stage_task(plan, None, task, rows, store, ROOT, open_file=open_file)
    return StagedTask(topic_plan, message.topics.get(TOPIC, topic_plan.staged([])), store)
