"""Measure what is spared when less is asked: counts, some columns, plans of wide topics.

The rule: one process, one core, CPU time, files in the page cache. Counts and scans are of the same
log directory, in turns; a plan is of a klog root whose commits name a segment in each partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.logs import SMALL_BATCHES, Shape, shape_records, write_log_directory
from benchmarks.spark_write import Result
from benchmarks.timing import Spread, interleaved
from klog.connector.commit_log import append_commit
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid
from klog.connector.commit_log.root_discovery import find_or_create_root
from klog.connector.commit_log.segment_entry_builder import build_segment_entry
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.topic_admin import TopicAdmin
from klog.connector.open_root import open_root
from klog.connector.options.read_options import ReadOptions, parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.task_reader import make_reader

PARTITIONS, TINY_PARTITIONS = 10_000, 100
CODECS = ("none", "zstd")
_SUBSCRIPTION = {"subscribePattern": ".*"}


def run(records: int, partitions: int, rounds: int) -> Iterator[Result]:
    """Measure counts and columns of each codec, then the plan of a wide topic."""
    with TemporaryDirectory() as folder:
        for codec in CODECS:
            yield from _counts_and_columns(Path(folder) / codec, codec, records, rounds)
        yield from _plan(Path(folder) / "wide", partitions, rounds)


def _counts_and_columns(root: Path, codec: str, records: int, rounds: int) -> Iterator[Result]:
    shape = Shape(codec, SMALL_BATCHES, 100, records)
    write_log_directory(root, shape, shape_records(shape))
    size_bytes = sum(file.stat().st_size for file in root.rglob("*.log"))
    works = {
        "count": lambda: count(root),
        "offset": lambda: scan(root, "partition,offset"),
        "key": lambda: scan(root, "key,offset"),
        "all": lambda: scan(root, "key,value,topic,partition,offset,timestamp,timestampType"),
    }
    times = interleaved(works, rounds, time.process_time)
    of = f"{records:,} records of 100 B, {codec}, batches of 16 KiB, {size_bytes / 1e6:.1f} MB"
    rates = Spread.of([size_bytes / 1e9 / seconds for seconds in times.seconds["count"]])
    yield Result("count, GB of log a second", of, str(rates), "1" if codec == "none" else "")
    for name, label in {
        "count": "count", "offset": "columns partition, offset", "key": "columns key, offset"
    }.items():  # fmt: skip
        yield Result(f"{label} / all columns", of, str(times.ratio(name, "all")))


def count(root: Path) -> int:
    """Count the records of a log directory, with a new look at it."""
    options, reader = _options(root), make_reader([str(root)], _options(root))
    snapshot = open_root([str(root)]).snapshot()
    return sum(scan_planner.count_snapshot(snapshot, options, reader).values())


def scan(root: Path, columns: str) -> int:
    """Scan columns of a log directory; return the number of rows."""
    options = _options(root, columns=columns)
    tasks = scan_planner.plan_snapshot(open_root([str(root)]).snapshot(), options)
    reader = make_reader([str(root)], options)
    return sum(batch.num_rows for task in tasks for batch in reader.read(task))


def write_wide_topic(root: Path, partitions: int) -> None:
    """Make a klog root with a topic whose commits name a segment in each partition."""
    klog_root = find_or_create_root(str(root), random_uuid())
    TopicAdmin(klog_root).create("wide", partitions)
    log = klog_root.log_to_write("wide")
    state = log.load()
    segments = [
        build_segment_entry(
            file=str(SegmentPath("wide", number, 0, state.version, f"{number:08x}")),
            partition=number,
            base_offset=0,
            next_offset=1000,
            size_bytes=1 << 20,
            crc32c=0,
            record_count=1000,
            batch_count=10,
            min_timestamp_ms=0,
            max_timestamp_ms=0,
            leader_epoch=0,
            codec="zstd",
            producer_ids=(),
            origin="append",
        )
        for number in range(partitions)
    ]
    staged = append_commit.StagedSegments(state.topic_id, state.version, segments)
    commit_info = CommitInfo(random_uuid(), "append", "benchmark")
    log.commit(state, append_commit.append(staged), commit_info)


def _plan(root: Path, partitions: int, rounds: int) -> Iterator[Result]:
    write_wide_topic(root, partitions)

    def plan() -> int:
        snapshot = open_root([str(root)]).snapshot()
        return len(scan_planner.plan_snapshot(snapshot, parse_read_options(_SUBSCRIPTION)))

    clocks: dict[str, Callable[[], float]] = {
        "CPU time": time.process_time,
        "wall time": time.perf_counter,
    }
    for name, clock in clocks.items():
        times = interleaved({"plan": plan}, rounds, clock)
        of = f"{partitions:,} partitions, the load of the topic included"
        yield Result(f"plan, s: {name}", of, str(Spread.of(times.seconds["plan"])), "2")


def _options(root: Path, **options: str) -> ReadOptions:
    return parse_read_options({**_SUBSCRIPTION, "path": str(root), **options})
