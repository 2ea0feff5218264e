"""Write a DataFrame through Spark: klog's sink, Spark's Kafka sink into a broker, and Parquet.

The rule: one cached DataFrame, two cores, wall time of the whole write, in turns; the broker runs
on the same cores, as its CPU is part of what its sink costs. Kafka's sink has `acks=all` and the
same codec; Parquet is as Spark writes it (snappy). Each of klog's writes goes to an
existing topic, and its rows are counted at the end.

A micro-batch is of a stream that counts, one small partition each, written to klog, to files (text)
and to a Delta table on local disk; its time is Spark's own account (`triggerExecution`), the first
ones left out.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import klog
from benchmarks.cpu import with_cpu
from benchmarks.logs import PARTITIONS
from benchmarks.records import as_table, records
from benchmarks.timing import Spread, Work, interleaved
from tests.support.kafka_broker import Broker
from tools.jars import jars
from tools.java_home import java_home

KLOG, KAFKA, PARQUET, FILES, DELTA = "klog", "Kafka sink", "Parquet", "files", "Delta"
TASKS = 4
ROWS_A_BATCH = 100
WARM_UP_BATCHES = 10
MAX_SECONDS = 300
THROUGHPUT_TARGETS = {KAFKA: 1.3, PARQUET: 0.6}
TOPIC = "written"
OLD_RECORDS = {"message.timestamp.before.max.ms": str((1 << 63) - 1)}
"""The config of a topic that takes records of any time."""
BROKER = {
    "auto.create.topics.enable": "true",
    "num.partitions": str(PARTITIONS),
    "log.index.size.max.bytes": str(10 << 20),
}


@dataclass(frozen=True, slots=True)
class Result:
    """A figure with its label and size, and the target if there is one."""

    label: str
    of: str
    figure: str
    target: str = ""


def session() -> SparkSession:
    """Return a session that has Spark's Kafka connector and Delta.

    Java takes jars when it starts: parts with another session (`spark_read.session`) need a command
    of their own.
    """
    return session_builder().getOrCreate()


def session_builder(*more_jars: Path) -> SparkSession.Builder:
    """Return the builder of such a session.

    Args:
        more_jars: Jars that it has besides.
    """
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = [path for name in ("spark-kafka", "delta") for path in sorted(jars(name).glob("*.jar"))]
    paths += more_jars
    catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    builder: SparkSession.Builder = SparkSession.builder.master("local[2]").appName("benchmarks")
    return (
        builder.config("spark.jars", ",".join(map(str, paths)))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", catalog)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "3g")
        # Delta replays its log in so many tasks at each commit; the defaults are 50 and 200.
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
    )


def run(count: int, rounds: int, batches: int) -> Iterator[Result]:
    """Measure writes and micro-batches."""
    spark = session()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path,
            Broker(Path(path) / "broker", BROKER) as broker,
        ):
            yield from throughput(spark, broker, Path(path), count, rounds)
        with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path:
            yield from micro_batches(spark, Path(path), batches)
    finally:
        spark.stop()


def throughput(
    spark: SparkSession, broker: Broker, folder: Path, count: int, rounds: int
) -> Iterator[Result]:
    """Write the same rows in turns."""
    df = cached(spark, folder, count)
    log = klog.open(folder / "root")
    log.create_topic(TOPIC, PARTITIONS, OLD_RECORDS)
    cpu: dict[str, list[float]] = {KLOG: [], KAFKA: [], PARQUET: []}
    writes: dict[str, Callable[[], object]] = {
        KLOG: lambda: klog_write(df, folder / "root"),
        KAFKA: lambda: kafka_write(df, broker.bootstrap),
        PARQUET: lambda: df.write.mode("overwrite").parquet(str(folder / "parquet")),
    }

    def work(name: str) -> Work:
        def write() -> int:
            writes[name]()
            return count

        return with_cpu(write, cpu[name])

    times = interleaved({name: work(name) for name in writes}, rounds, time.perf_counter)
    written = (rounds + 1) * count
    table = log.describe(TOPIC).partitions
    if (seen := sum(partition.log_end - partition.log_start for partition in table)) != written:
        raise RuntimeError(f"klog has {seen} rows of {written}")
    of = f"{count:,} rows, lz4"
    for name in writes:
        yield Result(f"{name}: rows", of, f"{times.rate(name) / 1e6:.2f} M a second")
    for name, target in THROUGHPUT_TARGETS.items():
        yield Result(
            f"klog / {name}: throughput", of, str(times.ratio(KLOG, name)), f"at least {target}"
        )
    used = {name: median(seconds[1:]) / count * 1e6 for name, seconds in cpu.items()}
    for name, microseconds in used.items():
        yield Result(f"{name}: CPU, the broker's included", of, f"{microseconds:.2f} us a row")
    ratios = [mine / theirs for mine, theirs in zip(cpu[KLOG][1:], cpu[KAFKA][1:], strict=True)]
    spread = Spread.of(ratios)
    yield Result("klog / Kafka sink: CPU", of, str(spread), "at most 1")


def cached(spark: SparkSession, folder: Path, count: int, value_bytes: int = 100) -> DataFrame:
    """Make the records a DataFrame in memory."""
    df = written(spark, folder, count, value_bytes).cache()
    if df.count() != count:
        raise RuntimeError("records are missing from the DataFrame")
    return df


def written(spark: SparkSession, folder: Path, count: int, value_bytes: int = 100) -> DataFrame:
    """Make the records a DataFrame over Parquet files."""
    path = folder / "records"
    path.mkdir()
    for number, rows in enumerate(records(count, value_bytes)):
        pq.write_table(as_table(rows), path / f"{number:03}.parquet")
    return spark.read.parquet(str(path)).repartition(TASKS)


def klog_write(df: DataFrame, root: Path) -> None:
    """Append as a user would."""
    writer = df.write.format("klog").option("topic", TOPIC).option("compression.type", "lz4")
    writer.mode("append").save(str(root))


def kafka_write(df: DataFrame, bootstrap: str, topic: str = TOPIC, codec: str = "lz4") -> None:
    """Send as a user would."""
    writer = df.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    writer = writer.option("kafka.acks", "all").option("kafka.compression.type", codec)
    writer.option("topic", topic).save()


def micro_batches(spark: SparkSession, folder: Path, batches: int) -> Iterator[Result]:
    """Run a stream into each sink, one after the other, twice, and compare medians."""
    milliseconds: dict[str, list[float]] = {KLOG: [], FILES: [], DELTA: []}
    for turn in range(2):
        for name in milliseconds:
            milliseconds[name] += durations(spark, folder / f"{name}-{turn}", name, batches)
    of = f"{2 * batches} micro-batches of {ROWS_A_BATCH} rows"
    medians = {name: median(values) for name, values in milliseconds.items()}
    for name, value in medians.items():
        yield Result(f"{name}: median micro-batch", of, f"{value:.0f} ms")
    more = medians[KLOG] - medians[FILES]
    yield Result("klog - files: median micro-batch", of, f"{more:.0f} ms", "at most 100")
    ratio = medians[KLOG] / medians[DELTA]
    yield Result("klog / Delta: median micro-batch", of, f"{ratio:.2f}", "below 1")


def durations(spark: SparkSession, folder: Path, name: str, batches: int) -> list[float]:
    """Return the milliseconds of so many micro-batches after the warm-up."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS_A_BATCH)
    rows = source.option("numPartitions", 1).load().selectExpr("cast(value as string) value")
    writer = rows.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    target = str(folder / "target")
    if name == KLOG:
        query = writer.format("klog").option("topic", TOPIC).start(target)
    else:
        query = writer.format("text" if name == FILES else "delta").start(target)
    seen: dict[int, float] = {}
    deadline = time.monotonic() + MAX_SECONDS
    while len(seen) < batches + WARM_UP_BATCHES and time.monotonic() < deadline:
        time.sleep(1)
        for progress in query.recentProgress:
            seen[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
    query.stop()
    return [seen[batch] for batch in sorted(seen)][WARM_UP_BATCHES:]
