"""Run streams to `noop`: klog against Spark's Kafka connector, and one row against nothing.

The rule: the same records in the same codec on both sides, each run with a checkpoint of its own,
wall time from `load()` to the end of the query, in turns. klog reads the broker's own log
directory and a klog root; the broker has the same two cores, as its CPU is part of what its reader
costs. A micro-batch of one row is of a klog root, against a Python source that does nothing; its
time is Spark's own account (`triggerExecution`), the first ones left out.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count as numbers
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import klog
from benchmarks import ready_stream
from benchmarks.cpu import with_cpu
from benchmarks.logs import PARTITIONS
from benchmarks.spark_write import (
    BROKER,
    OLD_RECORDS,
    TOPIC,
    Result,
    cached,
    kafka_write,
    klog_write,
    session,
)
from benchmarks.stream_to_end import WARM_UP_BATCHES, micro_batch_ms, row_count, run_to_end
from benchmarks.timing import Spread, Work, interleaved
from tests.support.kafka_broker import Broker

KAFKA, DIRECTORY, ROOT = "Kafka connector", "klog, the broker's directory", "klog, a klog root"
TARGET, MICRO_BATCH_TARGET = 1.5, 1.1
ONE_ROW, READY = "klog, one row a micro-batch", "a source that does nothing"


def run(records: int, batches: int, rounds: int) -> Iterator[Result]:
    """Measure a whole backlog, then so many micro-batches of one row."""
    spark = session()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path,
            Broker(Path(path) / "broker", BROKER) as broker,
        ):
            yield from _available_now(spark, broker, Path(path), records, rounds)
        with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path:
            yield from _micro_batches(spark, Path(path), batches, rounds)
    finally:
        spark.stop()


def _available_now(
    spark: SparkSession, broker: Broker, folder: Path, records: int, rounds: int
) -> Iterator[Result]:
    root = folder / "root"
    klog.open(root).create_topic(TOPIC, PARTITIONS, OLD_RECORDS)
    rows = cached(spark, folder, records)
    kafka_write(rows, broker.bootstrap)
    klog_write(rows, root)
    rows.unpersist()
    sources: dict[str, Callable[[], DataFrame]] = {
        KAFKA: lambda: _stream(spark, "kafka", {"kafka.bootstrap.servers": broker.bootstrap}),
        DIRECTORY: lambda: _stream(spark, "klog", {"path": str(broker.log_dirs[0])}),
        ROOT: lambda: _stream(spark, "klog", {"path": str(root)}),
    }
    numbered = numbers()
    cpu: dict[str, list[float]] = {name: [] for name in sources}

    def work(name: str) -> Work:
        def run_once() -> int:
            checkpoint = folder / f"checkpoint-{next(numbered)}"
            seen = row_count(run_to_end(sources[name](), checkpoint))
            if seen != records:
                raise RuntimeError(f"{name} gives {seen} rows of {records}")
            return records

        return with_cpu(run_once, cpu[name])

    times = interleaved({name: work(name) for name in sources}, rounds, time.perf_counter)
    of = f"{records:,} records of 100 B, lz4, availableNow"
    for name in sources:
        yield Result(f"{name}: wall time", of, f"{Spread.of(times.seconds[name])} s")
        yield Result(f"{name}: CPU", of, f"{Spread.of(cpu[name][1:])} s")
    for name in (DIRECTORY, ROOT):
        yield Result(
            f"{name} / {KAFKA}: throughput", of, str(times.ratio(name, KAFKA)), f"at least {TARGET}"
        )


def _stream(spark: SparkSession, source: str, options: dict[str, str]) -> DataFrame:
    reader = spark.readStream.format(source).options(**options)
    return reader.option("subscribe", TOPIC).option("startingOffsets", "earliest").load()


def _micro_batches(
    spark: SparkSession, folder: Path, batches: int, rounds: int
) -> Iterator[Result]:
    spark.dataSource.register(ready_stream.ReadyStream)
    root = folder / "root"
    log = klog.open(root)
    log.create_topic(TOPIC, 1)
    total = batches + WARM_UP_BATCHES
    log.append(TOPIC, pa.table({"value": [bytes(ready_stream.VALUE_BYTES)] * total}))
    klog_options = {"path": str(root), "maxOffsetsPerTrigger": "1"}
    sources: dict[str, Callable[[], DataFrame]] = {
        ONE_ROW: lambda: _stream(spark, "klog", klog_options),
        READY: lambda: (
            spark.readStream.format(ready_stream.NAME).option("batches", str(total)).load()
        ),
    }
    milliseconds: dict[str, list[float]] = {name: [] for name in sources}
    for turn in range(rounds):
        for name, source in sources.items():
            checkpoint = folder / f"checkpoint-{turn}-{name == READY}"
            milliseconds[name].append(micro_batch_ms(run_to_end(source(), checkpoint)))
    of = f"{batches} micro-batches of a row, availableNow"
    for name, values in milliseconds.items():
        yield Result(f"{name}: median micro-batch, ms", of, str(Spread.of(values)))
    ratios = [
        mine / theirs
        for mine, theirs in zip(milliseconds[ONE_ROW], milliseconds[READY], strict=True)
    ]
    yield Result(
        f"{ONE_ROW} / {READY}", of, str(Spread.of(ratios)), f"at most {MICRO_BATCH_TARGET}"
    )
