"""A stream that commits a record each second, and the costs of its topic as commits accumulate.

    python -m tests.soak.each_second 10000

The rule: commits, merges, vacuums and checkpoints are klog's own, on the store in memory; only the
time is simulated, a second a commit. At intervals a fresh reader loads the topic, and its requests
and bytes are counted. A merge runs every five minutes, and a vacuum every ten with half an hour of
grace: a grace of a day would keep all merged segments.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import fsspec
import pyarrow as pa

from klog.connector.back_off import back_off
from klog.connector.commit_log import commit_expiration, topic_vacuum
from klog.connector.commit_log.background_checkpointer import BackgroundCheckpointer
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.root_discovery import find_or_create_root
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.embedded_append import append
from klog.connector.store.temporary_names import random_id
from klog.connector.system_clock import now_ms
from klog.jobs import merge, verify

TOPIC = "t"
MERGE_EACH, VACUUM_EACH = 300, 600
GRACE_MS = 1_800_000


@dataclass(frozen=True, slots=True)
class Cost:
    """The costs after a number of commits.

    `live` is the most live segments so far, `merged` the live segments after the last merge, and
    `files` the partition's files on the store. `load_requests` and `load_bytes` are those of a
    fresh load; `checkpoint_bytes` are the bytes of checkpoints and their parts.
    """

    commits: int
    live: int
    merged: int
    files: int
    load_requests: int
    load_bytes: int
    checkpoint_bytes: int


class CountingStore:
    """A store that counts requests and bytes."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.requests = self.size_bytes = self.checkpoint_bytes = 0

    def entries(self, directory: str) -> Any:
        self.requests += 1
        return self._store.entries(directory)

    def names_after(self, directory: str, name: str) -> Any:
        self.requests += 1
        return self._store.names_after(directory, name)

    @property
    def max_parallel_reads(self) -> int:
        count: int = self._store.max_parallel_reads
        return count

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        self.requests += 1
        data: bytes = self._store.read(path, max_bytes)
        self.size_bytes += len(data)
        self.checkpoint_bytes += len(data) if path.endswith(".parquet") else 0
        return data


def costs(commits: int, interval: int, grace_ms: int = GRACE_MS) -> Iterator[Cost]:
    """Commit `commits` times; yield the costs at each interval; `grace_ms` is vacuum's."""
    url = f"memory://{random_id()}"
    root = find_or_create_root(url, "AAAAAAAAAAAAAAAAAAAAAA")
    TopicAdmin(root).create(TOPIC, 1, {"retention.ms": "-1"})
    times_ms, checkpointer, ids = [now_ms()], BackgroundCheckpointer(), count()
    log = CommitLog(root.store, root.log(TOPIC).paths, lambda: times_ms[0], back_off)
    state, live, merged = log.load(), 0, 0
    now = pa.array([times_ms[0]], pa.timestamp("ms", "UTC"))

    def new(operation: str) -> CommitInfo:
        return CommitInfo(f"{operation} {next(ids)}", operation, "a test")

    for number in range(1, commits + 1):
        times_ms[0] += 1000
        rows = pa.table({"value": [str(number)], "timestamp": now})
        state = checkpointer.offer(log, append(log, state, rows, new("append")).state)
        checkpointer.join()
        live = max(live, state.segments.num_rows)
        if number % MERGE_EACH == 0:
            merge.run(None, url, TOPIC)
            state = log.load(state)
            merged = state.segments.num_rows
        if number % VACUUM_EACH == 0:
            topic_vacuum.vacuum(log, new("vacuum"), grace_ms)
            commit_expiration.expire_log(log, grace_ms)
            state = log.load(state)
        if number % interval == 0:
            counted: Any = CountingStore(root.store)
            loaded = CommitLog(counted, log.paths, log.clock, back_off).load()
            assert loaded.log_end == (number,)
            files = len(root.store.entries(log.paths.data(f"{TOPIC}-0")))
            sizes = counted.requests, counted.size_bytes, counted.checkpoint_bytes
            yield Cost(number, live, merged, files, *sizes)
    report = verify.run(None, url)
    assert report.findings == (), report.findings
    assert report.records == commits
    fsspec.filesystem("memory").rm(url, recursive=True)


def main(commits: int) -> None:
    for cost in costs(commits, commits // 10):
        sys.stdout.write(f"{cost}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
