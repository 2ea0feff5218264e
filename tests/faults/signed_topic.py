"""A topic whose records say who wrote them, on any store, and what must hold of it after a fault.

A segment's bytes are its records, a line each: all that the commit log needs of them, and enough to
see whether one is lost, doubled or moved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from klog.connector.commit_log import (
    append_commit,
    commit_builders,
    rewrite_commit,
    segment_entries,
)
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.temporary_names import random_id
from klog.connector.store.writable_store import WritableStore
from klog.connector.system_clock import back_off, now_ms
from tests.support.segment_entry import entry_of

TOPIC, TOPIC_ID, PARTITIONS = "orders", "an id", 2

Records = Mapping[int, Sequence[str]]


def log_on(
    store: WritableStore,
    root: str,
    clock: Callable[[], int] = now_ms,
    wait: Callable[[int], None] = back_off,
) -> CommitLog:
    """Give the topic's log; it waits as klog does unless told otherwise."""
    return CommitLog(store, TopicPaths(root, TOPIC), clock, wait)


def new(operation: str) -> CommitInfo:
    """Name a new try; processes do not share names."""
    return CommitInfo(random_id(), operation, "test")


def create(log: CommitLog, topic_id: str = TOPIC_ID) -> TopicState:
    """Make the topic."""
    build = commit_builders.create_topic(Topic(topic_id, PARTITIONS), {})
    return log.commit(log.load(), build, new("create-topic"))


def put_segment(
    log: CommitLog,
    state: TopicState,
    partition: int,
    base: int,
    records: Sequence[str],
    origin: str,
) -> segment_entries.SegmentEntry:
    """Write one segment's file and give its entry."""
    path = str(SegmentPath(TOPIC, partition, base, state.version, random_id()[:8]))
    log.store.put(log.paths.data(path), ["\n".join(records).encode()])
    found: segment_entries.SegmentEntry = entry_of(
        path, partition, base, base + len(records), origin
    )
    return found


def stage(log: CommitLog, state: TopicState, records: Records) -> append_commit.StagedSegments:
    """Write a segment for each partition, as tasks do."""
    found = [
        put_segment(log, state, partition, state.log_end[partition], lines, "append")
        for partition, lines in records.items()
    ]
    return append_commit.StagedSegments(state.topic_id, state.version, found)


def writer(batch_id: int, run_id: str = "a run") -> append_commit.Writer:
    """Name a batch of the one query."""
    return append_commit.Writer("a writer", batch_id, "a query", run_id)


def append(
    log: CommitLog, state: TopicState, records: Records, by: append_commit.Writer | None = None
) -> TopicState:
    """Stage and commit."""
    build = append_commit.append(stage(log, state, records), by)
    return log.commit(state, build, new("append"))


def merge_first_two(log: CommitLog, state: TopicState, partition: int) -> CommitBuilder:
    """Write one segment in place of a partition's first two; gives what commits it."""
    rows = segment_entries.rows_of_partition(state.segments, partition).to_pylist()[:2]
    lines = [line for row in rows for line in lines_of(log, row["file"])]
    merged = put_segment(log, state, partition, rows[0]["base_offset"], lines, "merge")
    files = [row["file"] for row in rows]
    return rewrite_commit.replace_segments(state.topic_id, state.version, files, [merged], {})


def lines_of(log: CommitLog, file: str) -> list[str]:
    """Read a segment's records."""
    return log.store.read(log.paths.data(file)).decode().split("\n")


def records_of(log: CommitLog, state: TopicState | None = None) -> list[list[str]]:
    """Read the topic from nothing, or as of a state: the records of each partition in order.

    Asserts that segments tile each partition from its start to its end, and that every file is
    there with as many records as it should have.
    """
    state = log.load() if state is None else state
    found = []
    for partition in range(state.partitions):
        start, at = state.log_start[partition], None
        lines: list[str] = []
        for row in segment_entries.rows_of_partition(state.segments, partition).to_pylist():
            assert row["base_offset"] == at or (at is None and row["base_offset"] <= start), row
            own = lines_of(log, row["file"])
            assert len(own) == row["next_offset"] - row["base_offset"], row
            lines += own[max(start - row["base_offset"], 0) :]
            at = row["next_offset"]
        assert (start if at is None else at) == state.log_end[partition], partition
        found.append(lines)
    return found


def replayed(log: CommitLog) -> TopicState:
    """Fold every commit from the first, without any checkpoint."""
    commits, version = [], 0
    while (one := log.read(version)) is not None:
        commits.append(one)
        version += 1
    return replay(TopicState(), commits)


def fold_to(log: CommitLog, version: int) -> TopicState:
    """Give the state as of a version, as one had it who loaded then."""
    found = [log.read(number) for number in range(version + 1)]
    return replay(TopicState(), [one for one in found if one is not None])
