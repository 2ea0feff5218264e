"""Streams into klog with the JVM engine: against Spark's Kafka sink and Parquet files.

The rule: a stream that counts (`rate-micro-batch`, four tasks), one after the other into each sink,
in turns, each with a checkpoint of its own. A micro-batch is Spark's own account
(`triggerExecution`), the first ones left out; the first batch is the time from `start()` to its
end. Keys and values are the number as text. The broker has the same two cores.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count as numbers
from pathlib import Path
from statistics import median
from typing import TypeAlias

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import klog
from benchmarks.engines import session
from benchmarks.logs import PARTITIONS
from benchmarks.spark_write import BROKER, MAX_SECONDS, Result
from benchmarks.stream_to_end import WARM_UP_BATCHES
from benchmarks.timing import Spread
from tests.support.kafka_broker import Broker

SINK, KLOG, PYTHON, PARQUET = "Kafka sink", "klog", "klog, Python", "Parquet files"
POLL_SECONDS = 0.01
Sink: TypeAlias = Callable[[DataStreamWriter, int], StreamingQuery]


def run(sizes: tuple[int, ...], batches: int, rounds: int) -> Iterator[Result]:
    """Measure streams whose micro-batches have so many rows."""
    spark = session()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path,
            Broker(Path(path) / "broker", BROKER) as broker,
        ):
            sinks = _sinks(Path(path), broker.bootstrap)
            for rows in sizes:
                yield from _compared(spark, Path(path), sinks, rows, batches, rounds)
    finally:
        spark.stop()


def _sinks(folder: Path, bootstrap: str) -> dict[str, Sink]:
    def klog_sink(engine: str) -> Sink:
        def start(writer: DataStreamWriter, number: int) -> StreamingQuery:
            root, topic = folder / "root", f"t{number}"
            klog.open(root).create_topic(topic, PARTITIONS)
            return (
                writer.format("klog")
                .option("topic", topic)
                .option("engine", engine)
                .start(str(root))
            )

        return start

    def kafka(writer: DataStreamWriter, number: int) -> StreamingQuery:
        writer = writer.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        return writer.option("kafka.acks", "all").option("topic", f"t{number}").start()

    return {
        SINK: kafka,
        KLOG: klog_sink("jvm"),
        PYTHON: klog_sink("python"),
        PARQUET: lambda writer, number: writer.format("parquet").start(str(folder / f"p{number}")),
    }


def _compared(
    spark: SparkSession,
    folder: Path,
    sinks: Mapping[str, Sink],
    rows: int,
    batches: int,
    rounds: int,
) -> Iterator[Result]:
    first_seconds: dict[str, list[float]] = {name: [] for name in sinks}
    batch_ms: dict[str, list[float]] = {name: [] for name in sinks}
    run_numbers = numbers(rows * 1000)
    for turn in range(rounds + 1):
        for name, sink in sinks.items():
            number = next(run_numbers)
            seconds, milliseconds = _stream(
                spark, sink, number, folder / f"checkpoint-{number}", rows, batches
            )
            if turn:
                first_seconds[name].append(seconds)
                batch_ms[name].append(milliseconds)
    of = f"micro-batches of {rows:,} rows, {batches} of them"
    for name in sinks:
        yield Result(f"{name}: triggerExecution", of, f"{Spread.of(batch_ms[name])} ms")
        yield Result(f"{name}: the first batch", of, f"{Spread.of(first_seconds[name])} s")
    for peer in (SINK, PYTHON, PARQUET):
        ratios = zip(batch_ms[peer], batch_ms[KLOG], strict=True)
        spread = Spread.of([theirs / mine for theirs, mine in ratios])
        yield Result(f"{peer} / {KLOG}: triggerExecution", of, str(spread))
    difference = Spread.of(
        [
            mine - theirs
            for mine, theirs in zip(first_seconds[KLOG], first_seconds[SINK], strict=True)
        ]
    )
    yield Result(f"{KLOG} - {SINK}: the first batch", of, f"{difference} s")


def _stream(
    spark: SparkSession, sink: Sink, number: int, checkpoint: Path, rows: int, batches: int
) -> tuple[float, float]:
    """Run a stream; return the seconds to its first batch, and the median ms of the later ones."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    df = source.option("numPartitions", min(rows, 4)).load()
    writer = df.selectExpr("cast(value as string) key", "cast(value as string) value").writeStream
    started = time.monotonic()
    query = sink(writer.option("checkpointLocation", str(checkpoint)), number)
    first_seconds = 0.0
    milliseconds: dict[int, float] = {}
    try:
        while len(milliseconds) < batches + WARM_UP_BATCHES:
            time.sleep(POLL_SECONDS)
            for progress in query.recentProgress:
                milliseconds[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
            seconds = time.monotonic() - started
            if milliseconds and not first_seconds:
                first_seconds = seconds
            if seconds > MAX_SECONDS or not query.isActive:
                raise RuntimeError(
                    f"a stream has {len(milliseconds)} micro-batches after {seconds:.0f} s: "
                    f"{query.exception()}"
                )
    finally:
        query.stop()
    later = [milliseconds[batch] for batch in sorted(milliseconds)][WARM_UP_BATCHES:]
    return first_seconds, median(later)
