"""Measure a topic's commit log: loads, commits, and both as its history grows.

The rule: klog's own code on a real store, on logs of `commit_histories.py`. A load is timed in a
fresh process that does nothing else, on one core, by its CPU time; its memory is the kernel's
figure. All other times are wall time, because commits wait for the disk.

    python -m benchmarks.commits ROOT     # the process that loads
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from threading import Barrier

import pyarrow as pa

from benchmarks.commit_histories import (
    PARTITIONS,
    TOPIC,
    TOPIC_ID,
    append,
    create,
    log_at,
    remembered_writes,
    state_of,
)
from benchmarks.memory import CHILD_TIMEOUT_SECONDS, peak_mib
from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.background_checkpointer import BackgroundCheckpointer
from klog.connector.commit_log.checkpoint_writer import write_checkpoint
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import commit_name
from klog.connector.commit_log.committed_snapshot import CommittedPartition
from klog.connector.commit_log.format_description import FormatDescription
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_table import SegmentTable
from klog.connector.commit_log.topic_state import MAX_REMEMBERED_WRITES, TopicState
from klog.connector.options.storage_options import StorageOptions
from klog.connector.source.offset_ranges import OffsetRange
from klog.connector.source.read_plan import plan
from klog.connector.source.slice_contract import TaskDict
from klog.connector.store.store_for_url import writable_store_for
from klog.logformat.topic_partition import TopicPartition

TARGET_MIB = 2048
LOAD_TARGETS = {100_000: 1.0, 1_000_000: 5.0}
RATE_TARGETS = {"local": 200, "hdfs": 50, "s3": 30}
HISTORIES = (1_000, 10_000, 100_000, 1_000_000)
WARM_UP = 300
"""Commits before those that are timed: a server in Java is slow at first."""
LATENCY_TURNS = 5
LIVE_SEGMENTS = 1_000
"""Of a topic with a long history: the rest was merged or deleted."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of commits_each measurement."""

    segments: tuple[int, ...] = (100_000, 1_000_000)
    histories: tuple[int, ...] = HISTORIES
    retained: int = 1_000_000
    commits: int = 3_000
    writers: int = 50


TINY = Sizes(
    segments=(3_000,), histories=(1_000, 1_000_000), retained=2_000, commits=120, writers=5
)


@dataclass(frozen=True, slots=True)
class Result:
    """A figure with its label and size, and the target if there is one."""

    label: str
    size: str
    figure: float
    unit: str
    target: str = ""


def run(sizes: Sizes) -> Iterator[Result]:
    """Measure on local disk."""
    for segments in sizes.segments:
        yield from _loads(segments)
    with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as folder:
        yield from rates("local", f"{folder}/rates", StorageOptions(), sizes)
        yield from _latencies(f"{folder}/latencies", sizes.commits)
        for version in sizes.histories:
            yield from _history(f"{folder}/{version}", version)
        yield from _retained(f"{folder}/retained", sizes.retained)


def rates(scheme: str, root: str, storage: StorageOptions, sizes: Sizes) -> Iterator[Result]:
    """Commit from one writer, then from many at once."""
    store, path = writable_store_for(root, storage)
    target = f"at least {RATE_TARGETS[scheme]}"
    for writers in (1, sizes.writers):
        log = log_at(store, f"{path}/{writers}")
        state = create(log)
        for _ in range(min(WARM_UP, sizes.commits)):
            state = append(log, state)
        commits_each = max(1, sizes.commits // writers)
        size = f"{scheme}, {writers} writer{'s' * (writers > 1)}"
        single_target = target if writers == 1 else ""
        yield Result("commits", size, rate(log, writers, commits_each), "a second", single_target)


def rate(log: CommitLog, writers: int, commits_each: int) -> float:
    """Commit from several writers at once, each with its own state; return commits a second."""
    start = Barrier(writers + 1)

    def write() -> None:
        state = log.load()
        start.wait()
        for _ in range(commits_each):
            state = append(log, state)

    with ThreadPoolExecutor(writers) as pool:
        futures = [pool.submit(write) for _ in range(writers)]
        start.wait()
        began = time.perf_counter()
        for future in futures:
            future.result()
    return writers * commits_each / (time.perf_counter() - began)


def _latencies(root: str, commits: int) -> Iterator[Result]:
    """Time each commit of one writer, with checkpoints written at the same time and without."""
    store, path = writable_store_for(root)
    turns: dict[bool, list[_Latency]] = {False: [], True: []}
    for turn in range(LATENCY_TURNS):
        for with_checkpoints, latencies in turns.items():
            latencies.append(
                _latency(
                    log_at(store, f"{path}/{turn}-{with_checkpoints}"),
                    commits,
                    with_checkpoints=with_checkpoints,
                )
            )
    for with_checkpoints, latencies in turns.items():
        written = sum(latency.checkpoints for latency in latencies)
        size = f"{LATENCY_TURNS} turns of {commits:,} commits, {written} checkpoints"
        yield Result(
            "median of a commit",
            size,
            median(latency.median_seconds for latency in latencies) * 1e3,
            "ms",
        )
        ratios = [latency.p99_seconds / latency.median_seconds for latency in latencies]
        target = "at most 2" if with_checkpoints else ""
        yield Result("p99 / median of a commit", size, median(ratios), "", target)
        yield Result("its minimum", size, min(ratios), "")
        yield Result("its maximum", size, max(ratios), "")
    pairs = zip(turns[True], turns[False], strict=True)
    ratio = median(busy.p99_seconds / idle.p99_seconds for busy, idle in pairs)
    yield Result("p99 with checkpoints / without", f"{LATENCY_TURNS} turns", ratio, "")


@dataclass(frozen=True, slots=True)
class _Latency:
    """The times of the commits of one turn, and the number of checkpoints written meanwhile."""

    median_seconds: float
    p99_seconds: float
    checkpoints: int


def _latency(log: CommitLog, commits: int, *, with_checkpoints: bool) -> _Latency:
    state = create(log)
    state = replace(state, writes={**remembered_writes(MAX_REMEMBERED_WRITES - 1), **state.writes})
    # The writer loads again from it after a hundred commits.
    state = replace(state, checkpoint=write_checkpoint(log, state))
    checkpointer, seconds = BackgroundCheckpointer(), []
    for _ in range(commits):
        began = time.perf_counter()
        state = append(log, state)
        seconds.append(time.perf_counter() - began)
        if with_checkpoints:
            state = checkpointer.offer(log, state)
    checkpointer.join()
    written = len(log.names(log.paths.checkpoints)) - 1
    return _Latency(median(seconds), quantiles(seconds, n=100)[98], written)


def _history(root: str, version: int) -> Iterator[Result]:
    """Load and commit at the end of a long history; a checkpoint has all but its tail."""
    store, path = writable_store_for(root)
    log = log_at(store, path)
    state = state_of(LIVE_SEGMENTS, version)
    write_checkpoint(log, state)
    for _ in range(50):
        state = append(log, state)
    size = f"version {version:,}, {LIVE_SEGMENTS:,} segments"
    yield Result("load", f"{size}, 50 commits after the checkpoint", _median_ms(log.load, 9), "ms")
    states = [state]
    yield Result(
        "commit", size, _median_ms(lambda: states.append(append(log, states[-1])), 99), "ms"
    )


def _retained(root: str, commits: int) -> Iterator[Result]:
    """Load at the end of a log that keeps all its commits: a load lists them and reads none."""
    store, path = writable_store_for(root)
    log = log_at(store, path)
    state = state_of(LIVE_SEGMENTS, commits)
    write_checkpoint(log, state)
    for _ in range(50):
        state = append(log, state)
    for version in range(commits):
        Path(log.paths.commit(version)).touch()
    size = f"{commits:,} commits kept, 50 after the checkpoint"
    after = commit_name(commits)
    listing = _median_ms(lambda: store.names_after(log.paths.commits, after), 5)
    yield Result("names listed", size, listing, "ms")
    yield Result("cold load", size, _median_ms(log.load, 5), "ms")


def _loads(segments: int) -> Iterator[Result]:
    """Load a checkpoint in a fresh process, and plan a read of the whole topic."""
    with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as folder:
        log = log_at(*writable_store_for(folder))
        state = state_of(segments, max(1, segments // PARTITIONS))
        began = time.perf_counter()
        write_checkpoint(log, state)
        size, target = f"{segments:,} segments", LOAD_TARGETS.get(segments)
        yield Result("checkpoint written", size, time.perf_counter() - began, "s")
        began = time.perf_counter()
        state = append(log, state)
        yield Result("commit", size, (time.perf_counter() - began) * 1e3, "ms")
        write_checkpoint(log, state)
        del state
        command = [sys.executable, "-m", __spec__.name, folder]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, check=True, timeout=CHILD_TIMEOUT_SECONDS
        )
    figures = json.loads(done.stdout)
    under = "" if target is None else f"under {target:.0f}"
    yield Result("load and plan", size, figures["load"] + figures["plan"], "s", under)
    yield Result("of it the plan of all", size, figures["plan"], "s")
    yield Result("reload after one commit", size, figures["reload"], "s")
    memory = "" if target is None else f"under {TARGET_MIB:,}"
    yield Result("peak memory", size, figures["peak_mib"], "MiB", memory)


def load_and_plan(root: str) -> dict[str, float]:
    """Load the topic, plan a read of all of it, and load again after a commit."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    log = log_at(*writable_store_for(root))
    pa.array([0])  # Arrow imports pandas, where it is installed, with the first array it makes.
    began = time.process_time()
    state = log.load()
    loaded = time.process_time()
    plan_all(root, state)
    planned = time.process_time()
    peak = peak_mib()
    append(log, state)
    again = time.process_time()
    segment_entries.rows_of_partition(log.load(state).segments, 0)
    reloaded = time.process_time()
    return {
        "load": loaded - began,
        "plan": planned - loaded,
        "reload": reloaded - again,
        "peak_mib": peak,
    }


def plan_all(root: str, state: TopicState) -> list[TaskDict]:
    """Plan a read of every segment, as the source does once it has the state."""
    root_to_read = KlogRoot(root, *writable_store_for(root), "benchmark", 1, FormatDescription(""))
    table = SegmentTable(state.segments)
    ranges = []
    for partition, (start, end) in enumerate(zip(state.log_start, state.log_end, strict=True)):
        name = TopicPartition(TOPIC, partition)
        rows = table.rows_of_partition(partition)
        log = CommittedPartition(name, TOPIC_ID, root_to_read, start, end, table, rows)
        ranges.append(OffsetRange(log, start, end, committed_only=True))
    return plan(ranges)


def _median_ms(work: Callable[[], object], rounds: int) -> float:
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return median(seconds) * 1e3


if __name__ == "__main__":
    print(json.dumps(load_and_plan(sys.argv[1])))
