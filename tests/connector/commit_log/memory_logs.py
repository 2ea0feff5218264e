"""A topic's log on a store in memory, with a clock that a test sets and every request counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from itertools import count
from typing import Any

import pyarrow as pa

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
    commit_builders,
    commit_expiration,
)
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.past_versions import load_version
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.readable_store import DirectoryEntry, File, check_size, entry_names_after
from klog.connector.store.writable_store import PutResult
from tests.support.segment_entry import entry_of

TOPIC, ROOT = "orders", "/root"
DAY_MS = 86_400_000
_ids = count()


@dataclass
class SizedFile:
    """A file that is open for its size alone."""

    size_bytes: int
    identity = stamp = ""

    def read(self, start: int, end: int) -> bytes:
        """Read nothing."""
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing."""


@dataclass
class CountingStore:
    """Files in a dictionary; `requests` counts calls by kind."""

    files: dict[str, bytes] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    max_parallel_reads = 1

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """List a directory."""
        self.requests["list"] += 1
        start, names = directory + "/", {}
        for path, data in self.files.items():
            if path.startswith(start):
                name, below, _ = path[len(start) :].partition("/")
                names[name] = DirectoryEntry(name, start + name, len(data), bool(below))
        if not names:
            raise FileNotFoundError(directory)
        return list(names.values())

    def names_after(self, directory: str, name: str) -> list[str]:
        """List the names that sort after one."""
        return entry_names_after(self, directory, name)

    def open(self, path: str, size_bytes: int | None = None) -> File:
        """Open a file for its size: a commit log reads whole files."""
        self.requests["open"] += 1
        if path not in self.files:
            raise FileNotFoundError(path)
        return SizedFile(len(self.files[path]))

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """Read a file."""
        self.requests["read"] += 1
        if path not in self.files:
            raise FileNotFoundError(path)
        check_size(path, len(self.files[path]), max_bytes)
        return self.files[path]

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Create a file."""
        self.requests["create"] += 1
        if path in self.files:
            return PutResult.EXISTS
        self.files[path] = data
        return PutResult.CREATED

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file."""
        self.requests["put"] += 1
        self.files[path] = b"".join(pieces)

    def delete(self, path: str) -> None:
        """Remove a file."""
        self.requests["delete"] += 1
        self.files.pop(path, None)


@dataclass
class Clock:
    """A clock that stands where it is put."""

    now_ms: int = 1_700_000_000_000

    def __call__(self) -> int:
        """Return the time."""
        return self.now_ms


def topic_log(store: Any, clock: Clock | None = None) -> CommitLog:
    """Return the log of the topic; nobody sleeps."""
    return CommitLog(store, TopicPaths(ROOT, TOPIC), clock or Clock(), lambda tries: None)


def attempt(operation: str) -> CommitInfo:
    """Name a new try."""
    return CommitInfo(f"write {next(_ids)}", operation, "test")


def created(log: CommitLog, partitions: int = 2, topic_id: str = "an id") -> TopicState:
    """Make the topic."""
    build = commit_builders.create_topic(Topic(topic_id, partitions), {"cleanup.policy": "delete"})
    return log.commit(log.load(), build, attempt("create-topic"))


def staged(
    state: TopicState, *counts: tuple[int, int], store: CountingStore | None = None
) -> append_commit.StagedSegments:
    """Stage segments, given as (partition, records), from the log ends of a state."""
    ends, segments = dict(enumerate(state.log_end)), []
    for partition, records in counts:
        path = SegmentPath(TOPIC, partition, ends[partition], state.version, f"{next(_ids):08x}")
        segments.append(entry_of(str(path), partition, ends[partition], ends[partition] + records))
        ends[partition] += records
        if store is not None:
            store.files[f"{ROOT}/{path}"] = b"records"
    return append_commit.StagedSegments(state.topic_id, state.version, segments)


def append(
    log: CommitLog,
    state: TopicState,
    *counts: tuple[int, int],
    writer: append_commit.Writer | None = None,
    store: CountingStore | None = None,
) -> TopicState:
    """Stage and commit."""
    build = append_commit.append(staged(state, *counts, store=store), writer)
    return log.commit(state, build, attempt("append"))


def appended(log: CommitLog, state: TopicState, times: int) -> TopicState:
    """Append so many times, to two partitions in turns."""
    for number in range(times):
        state = append(log, state, (number % 2, 3))
    return state


def checkpoint_and_expire(log: CommitLog, retention_ms: int = 0) -> int:
    """Write a checkpoint of the version before the last, and expire the commits up to it."""
    state = log.load()
    checkpoint_writer.write_checkpoint(log, load_version(log, state.version - 1, state))
    return commit_expiration.expire_log(log, retention_ms)


def plain(state: TopicState) -> dict[str, Any]:
    """Return the fields of a state, tables by their rows."""
    names = [field.name for field in fields(state) if field.compare]
    values = {name: getattr(state, name) for name in names}
    values["live"] = state.live.rows()
    return {k: v.to_pylist() if isinstance(v, pa.Table) else v for k, v in values.items()}


def same(state: TopicState, other: TopicState) -> bool:
    """Return whether two states are equal, tables by their rows."""
    return plain(state) == plain(other)
