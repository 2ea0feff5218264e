"""A topic on any store whose records name their writer, and what must hold after a fault.

A segment's bytes are its records, one a line. The commit log needs no more, and it is enough to see
whether a record is lost, duplicated or moved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from klog.connector.back_off import back_off
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
from klog.connector.system_clock import now_ms
from tests.support.segment_entry import entry_of

TOPIC, TOPIC_ID, PARTITIONS = "orders", "an id", 2

Records = Mapping[int, Sequence[str]]


def log_on(
    store: WritableStore,
    root: str,
    clock: Callable[[], int] = now_ms,
    wait: Callable[[int], None] = back_off,
) -> CommitLog:
    """Return the topic's log; by default it waits as klog does."""
    return CommitLog(store, TopicPaths(root, TOPIC), clock, wait)


def new(operation: str) -> CommitInfo:
    """Return the info of a new commit; its id is unique across processes."""
    return CommitInfo(random_id(), operation, "test")


def create(log: CommitLog, topic_id: str = TOPIC_ID) -> TopicState:
    """Create the topic."""
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
    """Write the file of a segment; return its entry."""
    path = str(SegmentPath(TOPIC, partition, base, state.version, random_id()[:8]))
    data = "\n".join(records).encode()
    log.store.put(log.paths.data(path), [data])
    entry: segment_entries.SegmentEntry = entry_of(
        path, partition, base, base + len(records), origin, size_bytes=len(data)
    )
    return entry


def stage(log: CommitLog, state: TopicState, records: Records) -> append_commit.StagedSegments:
    """Write a segment to each partition, as tasks do."""
    entries = [
        put_segment(log, state, partition, state.log_end[partition], lines, "append")
        for partition, lines in records.items()
    ]
    return append_commit.StagedSegments(state.topic_id, state.version, entries)


def writer(batch_id: int, run_id: str = "a run") -> append_commit.Writer:
    """Return the writer of a batch of the query."""
    return append_commit.Writer("a writer", batch_id, "a query", run_id)


def append(
    log: CommitLog, state: TopicState, records: Records, by: append_commit.Writer | None = None
) -> TopicState:
    """Stage and commit."""
    build = append_commit.append(stage(log, state, records), by)
    return log.commit(state, build, new("append"))


def merge_first_two(log: CommitLog, state: TopicState, partition: int) -> CommitBuilder:
    """Merge a partition's first two segments; return the builder of the commit."""
    rows = segment_entries.rows_of_partition(state.segments, partition).to_pylist()[:2]
    lines = [line for row in rows for line in lines_of(log, row["file"])]
    merged = put_segment(log, state, partition, rows[0]["base_offset"], lines, "merge")
    files = [row["file"] for row in rows]
    return rewrite_commit.replace_segments(state.topic_id, state.version, files, [merged], {})


def lines_of(log: CommitLog, file: str) -> list[str]:
    """Read a segment's records."""
    return log.store.read(log.paths.data(file)).decode().split("\n")


def records_of(log: CommitLog, state: TopicState | None = None) -> list[list[str]]:
    """Read the records of each partition in order, from a fresh load or as of a state.

    Assert that segments and holes tile each partition from its start to its end, and that every
    file exists with the right number of records.
    """
    state = log.load() if state is None else state
    holes = {(hole.partition, hole.base_offset): hole.next_offset for hole in state.holes}
    records = []
    for partition in range(state.partitions):
        start, at = state.log_start[partition], None
        lines: list[str] = []
        for row in segment_entries.rows_of_partition(state.segments, partition).to_pylist():
            ends = (at, holes.get((partition, at or 0)))
            assert row["base_offset"] in ends or (at is None and row["base_offset"] <= start), row
            lines_of_segment = lines_of(log, row["file"])
            assert len(lines_of_segment) == row["next_offset"] - row["base_offset"], row
            lines += lines_of_segment[max(start - row["base_offset"], 0) :]
            at = row["next_offset"]
        at = start if at is None else at
        assert state.log_end[partition] in (at, holes.get((partition, at))), partition
        records.append(lines)
    return records


def replayed(log: CommitLog) -> TopicState:
    """Replay every commit from the first, without any checkpoint."""
    commits, version = [], 0
    while (commit := log.read(version)) is not None:
        commits.append(commit)
        version += 1
    return replay(TopicState(), commits)


def state_at(log: CommitLog, version: int) -> TopicState:
    """Return the state as of a version."""
    commits = [log.read(number) for number in range(version + 1)]
    return replay(TopicState(), [commit for commit in commits if commit is not None])
