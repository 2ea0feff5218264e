"""Measure the jobs that read no record (merge, retention, fast verify), and memory.

The rule: klog's own functions in one process, on files in the page cache. A copy is Python's
`shutil.copyfile` of the same files, one after the other, in turns with the merge; once without
fsync and once with an fsync of each file, as klog writes its files. The memory of a compaction is
that of a fresh process, by the kernel's figure; ten times the records have as many keys.

    python -m benchmarks.upkeep ROOT     # the process that compacts
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import klog
from benchmarks.commit_histories import TOPIC as STATE_TOPIC
from benchmarks.commit_histories import append, state_of
from benchmarks.memory import CHILD_TIMEOUT_SECONDS, peak_mib
from benchmarks.records import as_table, records
from benchmarks.spark_write import Result
from benchmarks.timing import Spread, interleaved
from klog.connector.commit_log.checkpoint_writer import write_checkpoint
from klog.connector.commit_log.root_discovery import find_root
from klog.jobs import compact, merge, retain, verify

TOPIC = "kept"
VALUE_BYTES = 100
APPENDS = 200
SEGMENTS, RETAINED_VERSION = 100_000, 1_000
MERGE_TARGET, RETAIN_TARGET_SECONDS, VERIFY_TARGET = 0.5, 2, 1.0
MEMORY_SHARE = 10


def run(count: int, rounds: int) -> Iterator[Result]:
    """Measure all; memory takes a tenth of `count` records, then all of them."""
    with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as folder:
        yield from measure_merge(Path(folder), count // 4, rounds)
    with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as folder:
        yield from measure_retain(Path(folder), rounds)
    with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as folder:
        yield from measure_compact(Path(folder), count)


def write_topic(folder: Path, count: int, appends: int, keys: int | None, **config: str) -> Path:
    """Write a topic of one partition by so many appends."""
    log = klog.open(folder)
    configs = {name.replace("_", "."): value for name, value in config.items()}
    log.create_topic(TOPIC, 1, {"compression.type": "lz4", **configs})
    for rows in records(count, VALUE_BYTES, unique_keys=keys):
        table = as_table(rows)
        appends_each = max(1, appends * len(rows) // count)
        for begin in range(0, len(rows), -(-len(rows) // appends_each)):
            log.append(TOPIC, table.slice(begin, -(-len(rows) // appends_each)))
    return folder


def measure_merge(folder: Path, count: int, rounds: int) -> Iterator[Result]:
    """Merge small segments in turns with a copy of their files; verify them, headers only."""
    root = write_topic(folder / "root", count, APPENDS, None)
    files = sorted((root / f"{TOPIC}-0").glob("*.log"))
    size_bytes = sum(file.stat().st_size for file in files)

    def by_klog() -> int:
        shutil.rmtree(folder / "copy", ignore_errors=True)
        shutil.copytree(root, folder / "copy", copy_function=os.link)
        (report,) = merge.run(None, str(folder / "copy"), TOPIC).partitions
        if report.failure is not None or report.segments_after >= report.segments:
            raise RuntimeError(f"nothing was merged: {report}")
        return size_bytes

    def by_copy(*, forced: bool) -> int:
        shutil.rmtree(folder / "copies", ignore_errors=True)
        (folder / "copies").mkdir()
        for file in files:
            shutil.copyfile(file, folder / "copies" / file.name)
            if forced:
                with (folder / "copies" / file.name).open("rb+") as copied:
                    os.fsync(copied.fileno())
        return size_bytes

    works: dict[str, Callable[[], int]] = {
        "merge": by_klog,
        "copy": lambda: by_copy(forced=False),
        "forced": lambda: by_copy(forced=True),
    }
    times = interleaved(works, rounds, time.perf_counter)
    of = f"{len(files)} segments of {size_bytes / len(files) / 1e6:.1f} MB"
    ratio = times.ratio("merge", "copy")
    yield Result("merge / file copy: throughput", of, str(ratio), f"at least {MERGE_TARGET}")
    forced = times.ratio("merge", "forced")
    yield Result("merge / file copy that is forced to disk: throughput", of, str(forced))
    yield Result("merge", of, f"{times.rate('merge') / 1e9:.2f} GB a second")
    yield measure_verify(root, of, rounds)
    yield measure_verify(folder / "copy", "the same, merged", rounds)


def measure_verify(root: Path, of: str, rounds: int) -> Result:
    """Verify a topic by its headers, its files in the page cache."""
    files = list((root / f"{TOPIC}-0").glob("*.log"))
    size_bytes = sum(len(file.read_bytes()) for file in files)
    median_s, min_s, max_s = _spread(
        lambda: verify.run(None, str(root), TOPIC, fast=True), rounds, time.process_time
    )
    fast = Spread(*(size_bytes / 1e9 / seconds for seconds in (median_s, max_s, min_s)))
    return Result(
        "verify, fast form", of, f"{fast} GB a second a core", f"over {VERIFY_TARGET:.0f}"
    )


def measure_retain(folder: Path, rounds: int) -> Iterator[Result]:
    """Retain a large topic so that every segment is deleted."""
    state = state_of(SEGMENTS, RETAINED_VERSION)

    def prepared() -> str:
        path = str(folder / os.urandom(4).hex())
        klog.open(path).create_topic(TOPIC, 1)
        root = find_root(path)
        assert root is not None
        log = root.new_log(STATE_TOPIC)
        write_checkpoint(log, state)
        append(log, state)
        return path

    roots = [prepared() for _ in range(rounds + 1)]

    def work() -> None:
        report = retain.run(None, roots.pop(), STATE_TOPIC)
        if sum(partition.segments for partition in report.partitions) < SEGMENTS:
            raise RuntimeError("retention did not delete all segments")

    seconds = Spread(*_spread(work, rounds, time.perf_counter))
    yield Result(
        "retention, all segments go",
        f"{SEGMENTS:,} segments",
        f"{seconds} s",
        f"under {RETAIN_TARGET_SECONDS}",
    )


def measure_compact(folder: Path, count: int) -> Iterator[Result]:
    """Compact one and ten times the records, in fresh processes."""
    for share in (MEMORY_SHARE, 1):
        records_written = count // share
        keys = count // MEMORY_SHARE // 2
        root = write_topic(folder / str(share), records_written, 1, keys, cleanup_policy="compact")
        command = [sys.executable, "-m", __spec__.name, str(root)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, check=True, timeout=CHILD_TIMEOUT_SECONDS
        )
        figures = json.loads(done.stdout)
        yield Result(
            "compaction, peak memory",
            f"{records_written:,} records of {VALUE_BYTES} B, {keys:,} keys, one partition",
            f"{figures['peak_mib']:.0f} MiB, of it {figures['imported_mib']:.0f} before",
        )


def compact_all(root: str) -> dict[str, float]:
    """Compact in this process."""
    imported = peak_mib()
    compact.run(None, root, TOPIC)
    return {"imported_mib": imported, "peak_mib": peak_mib()}


def _spread(
    work: Callable[[], object], rounds: int, clock: Callable[[], float]
) -> tuple[float, float, float]:
    """Return the median, minimum and maximum of the seconds after a first, uncounted time."""
    work()
    seconds = []
    for _ in range(rounds):
        began = clock()
        work()
        seconds.append(clock() - began)
    return median(seconds), min(seconds), max(seconds)


if __name__ == "__main__":
    print(json.dumps(compact_all(sys.argv[1])))
