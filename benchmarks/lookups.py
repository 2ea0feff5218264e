"""Look up little in much through Spark: one offset, one second, and a skewed topic.

The rule: wall time and CPU of a whole query to its rows, on local[2], in turns with a Python data
source that returns one ready row, as Spark's way to Python is most of it. The topic is of a klog
root on local disk and has one partition of very many small segments. A skewed topic has nine of ten
records in one of ten partitions, a balanced one the same records in ten equal ones.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import klog
from benchmarks import ceiling
from benchmarks.cpu import with_cpu
from benchmarks.logs import FIRST_TIMESTAMP_MS, TOPIC
from benchmarks.records import as_table, records
from benchmarks.spark_read import to_noop
from benchmarks.spark_write import OLD_RECORDS, Result, session
from benchmarks.timing import Spread, Work, interleaved

SEGMENTS, TINY_SEGMENTS = 10_000, 50
SEGMENT_BYTES = 16_384
RECORDS_A_SEGMENT = 120
"""Of 100 bytes and uncompressed, a little less than fill a segment."""
INTERVAL_MS = 10
READY, ONE_OFFSET, ONE_SECOND = "a ready row", "one offset", "one second"
BALANCED, SKEWED = "balanced", "skewed"
PARTITIONS = 10
LARGE_SHARE = 0.9


def run(segments: int, scanned: int, rounds: int) -> Iterator[Result]:
    """Measure look-ups in so many segments, then scans of so many records."""
    spark = session()
    spark.dataSource.register(ceiling.ReadyBatches)
    try:
        with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as folder:
            yield from _lookups(spark, Path(folder, "many"), segments, rounds)
            yield from _scans(spark, Path(folder), scanned, rounds)
    finally:
        spark.stop()


def write_many_segments(root: Path, segments: int) -> int:
    """Make a topic of one partition with about so many segments; return its records."""
    config = {
        "segment.bytes": str(SEGMENT_BYTES), "compression.type": "uncompressed",
        **OLD_RECORDS,
    }  # fmt: skip
    log = klog.open(root)
    log.create_topic(TOPIC, 1, config)
    count = segments * RECORDS_A_SEGMENT
    first = 0
    for rows in records(count, 100):
        times_ms = FIRST_TIMESTAMP_MS + INTERVAL_MS * np.arange(first, first + len(rows))
        table = as_table(rows).append_column(
            "timestamp", pa.array(times_ms, pa.timestamp("ms", "UTC"))
        )
        log.append(TOPIC, table)
        first += len(rows)
    return count


def _lookups(spark: SparkSession, root: Path, segments: int, rounds: int) -> Iterator[Result]:
    count = write_many_segments(root, segments)
    written = len(list(root.rglob("*.log")))
    middle = count // 2
    start_ms = FIRST_TIMESTAMP_MS + INTERVAL_MS * middle
    frames: dict[str, Callable[[], DataFrame]] = {
        READY: lambda: _ready_row(spark),
        ONE_OFFSET: lambda: _read(
            spark, root, startingOffsets=_at(middle), endingOffsets=_at(middle + 1)
        ),
        ONE_SECOND: lambda: _read(
            spark, root, startingTimestamp=str(start_ms), endingTimestamp=str(start_ms + 1000)
        ),
    }
    expected = {READY: 1, ONE_OFFSET: 1, ONE_SECOND: 1000 // INTERVAL_MS}
    of = f"{written:,} segments, a klog root on local disk"
    yield from _compared(frames, expected, READY, rounds, of, "at most 1.3")


def _scans(spark: SparkSession, folder: Path, count: int, rounds: int) -> Iterator[Result]:
    large = int(count * LARGE_SHARE)
    small = (count - large) // (PARTITIONS - 1)
    sizes = {
        SKEWED: [large, *[small] * (PARTITIONS - 1)],
        BALANCED: [(large + small * (PARTITIONS - 1)) // PARTITIONS] * PARTITIONS,
    }
    for name, partitions in sizes.items():
        _write_partitions(folder / name, partitions)
    works: dict[str, Work] = {
        name: to_noop(lambda name=name: _read(spark, folder / name), sum(sizes[name]))  # type: ignore[misc]
        for name in sizes
    }
    times = interleaved(works, rounds, time.perf_counter)
    of = f"{sum(sizes[SKEWED]):,} records of 100 B, {PARTITIONS} partitions, to noop"
    for name in sizes:
        yield Result(f"{name}: rows", of, f"{times.rate(name) / 1e6:.2f} M a second")
    yield Result(
        "90 % in one partition / balanced: throughput",
        of,
        str(times.ratio(SKEWED, BALANCED)),
        "at least 0.8",
    )


def _write_partitions(root: Path, sizes: list[int]) -> None:
    log = klog.open(root)
    log.create_topic(TOPIC, len(sizes), OLD_RECORDS)
    for partition, size in enumerate(sizes):
        for rows in records(size, 100, seed=partition + 1):
            numbers = pa.array(np.full(len(rows), partition, np.int32))
            log.append(TOPIC, as_table(rows).append_column("partition", numbers))


def _compared(
    frames: dict[str, Callable[[], DataFrame]],
    expected: dict[str, int],
    base: str,
    rounds: int,
    of: str,
    target: str,
) -> Iterator[Result]:
    cpu: dict[str, list[float]] = {name: [] for name in frames}

    def work(name: str) -> Work:
        def collect() -> int:
            seen = len(frames[name]().collect())
            if seen != expected[name]:
                raise RuntimeError(f"{name}: {seen} rows instead of {expected[name]}")
            return 1

        return with_cpu(collect, cpu[name])

    works = {name: work(name) for name in frames}
    times = interleaved(works, rounds, time.perf_counter)
    for name in frames:
        yield Result(f"{name}: wall time", of, f"{1000 * times.median_seconds(name):.0f} ms")
    for name in frames:
        if name != base:
            yield Result(f"{name} / {base}: wall time", of, str(times.ratio(base, name)), target)
            ratios = [
                mine / ready for mine, ready in zip(cpu[name][1:], cpu[base][1:], strict=True)
            ]
            yield Result(f"{name} / {base}: CPU", of, str(Spread.of(ratios)), "")


def _read(spark: SparkSession, root: Path, **options: str) -> DataFrame:
    return spark.read.format("klog").option("subscribe", TOPIC).options(**options).load(str(root))


def _ready_row(spark: SparkSession) -> DataFrame:
    reader = spark.read.format(ceiling.NAME).option("shapes", json.dumps([[1]]))
    return reader.option("valueBytes", "100").load()


def _at(offset: int) -> str:
    return json.dumps({TOPIC: {"0": offset}})
