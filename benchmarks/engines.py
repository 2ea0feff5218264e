"""Scan a broker's topic with the JVM engine: against Spark's Kafka connector, and Parquet.

The rule: the same records, produced by Spark's Kafka sink in a producer's default batches; klog
reads the broker's own log directory, the connector the broker, which has the same two cores.
Parquet has the rows that klog reads, in the codec of the topic (snappy for lz4). Wall time and CPU
of whole queries with their planning, in turns, warm and from the page cache. CPU is that of Spark,
its Python workers and the broker.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import klog
from benchmarks.cpu import with_cpu
from benchmarks.spark_write import BROKER, Result, kafka_write, session_builder, written
from benchmarks.timing import Spread, Work, interleaved
from tests.support.kafka_broker import Broker
from tests.support.waiting import wait_until

KAFKA, KLOG, PARQUET = "Kafka connector", "klog", "Parquet"
PARQUET_CODECS = {"none": "uncompressed", "lz4": "snappy", "zstd": "zstd"}
QUERIES: dict[str, Callable[[DataFrame], object]] = {
    "scan to noop": lambda df: df.write.format("noop").mode("overwrite").save(),
    "sum(length(value))": lambda df: df.selectExpr("sum(length(value))").collect(),
    "count(*)": lambda df: df.count(),
}
WAIT_SECONDS = 60


def session() -> SparkSession:
    """Return a session with klog's jar and Spark's Kafka connector."""
    return klog.configure(session_builder()).getOrCreate()


def run(count: int, codecs: Sequence[str], rounds: int) -> Iterator[Result]:
    """Measure each query on a topic of each codec."""
    spark = session()
    try:
        for codec in codecs:
            with (
                tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path,
                Broker(Path(path) / "broker", BROKER) as broker,
            ):
                yield from _queries(spark, broker, Path(path), codec, count, rounds)
    finally:
        spark.stop()


def _queries(
    spark: SparkSession, broker: Broker, folder: Path, codec: str, count: int, rounds: int
) -> Iterator[Result]:
    kafka_write(written(spark, folder, count), broker.bootstrap, codec, codec)
    log_dir = str(broker.log_dirs[0])

    def topic(source: str, options: dict[str, str]) -> DataFrame:
        return spark.read.format(source).options(**options).option("subscribe", codec).load()

    readers: dict[str, Callable[[], DataFrame]] = {
        KAFKA: lambda: topic("kafka", {"kafka.bootstrap.servers": broker.bootstrap}),
        KLOG: lambda: topic("klog", {"path": log_dir, "engine": "jvm"}),
        PARQUET: lambda: spark.read.parquet(str(folder / "parquet")),
    }
    # A broker says only now and then how far consumers may read.
    wait_until(lambda: readers[KLOG]().count() == count, "the high watermark", WAIT_SECONDS)
    writer = readers[KLOG]().write.option("compression", PARQUET_CODECS[codec])
    writer.parquet(str(folder / "parquet"))
    for query, action in QUERIES.items():
        cpu: dict[str, list[float]] = {name: [] for name in readers}
        works = {
            name: with_cpu(_work(action, read, count), cpu[name]) for name, read in readers.items()
        }
        times = interleaved(works, rounds, time.perf_counter)
        of = f"{query}, {count:,} records of 100 B, {codec}"
        yield Result(f"{KLOG}: rows", of, f"{times.rate(KLOG) / 1e6:.2f} M a second")
        for peer in (KAFKA, PARQUET):
            yield Result(f"{KLOG} / {peer}: throughput", of, str(times.ratio(KLOG, peer)))
            shares = [
                mine / theirs for mine, theirs in zip(cpu[KLOG][1:], cpu[peer][1:], strict=True)
            ]
            yield Result(f"{KLOG} / {peer}: CPU", of, str(Spread.of(shares)))


def _work(action: Callable[[DataFrame], object], read: Callable[[], DataFrame], count: int) -> Work:
    def work() -> int:
        action(read())
        return count

    return work
