"""Compact a topic: klog's job, a broker's log cleaner, and Spark doing the same to Parquet.

The rule: the same records, a tenth as many keys as records, none of them cleaned before. klog's job
runs in a Spark session on two cores and cleans a copy of the topic (linked files: it writes none of
them again); Spark groups the same rows, offset, key and value, in whichever form takes it less CPU,
and writes Parquet; wall time and CPU of Spark and its Python workers. The broker's cleaner has as
many threads as Spark has cores, and is given klog's own segments, a partition a thread, all at
once. All of them in turns; the first round only warms Java up.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import klog
from benchmarks.broker_cleaner import Cleaning, CleaningBroker, cleaning_broker
from benchmarks.cpu import with_cpu
from benchmarks.logs import PARTITIONS
from benchmarks.records import as_table, records
from benchmarks.spark_write import Result, session
from benchmarks.timing import Spread, Times, interleaved
from klog.jobs import compact

TOPIC = "compacted"
VALUE_BYTES = 100
RECORDS_A_KEY = 10
CORES = 2
BROKER_TARGET, PARQUET_TARGET = 1.5, 4
KLOG, STRUCT, SEMI_JOIN = "klog", "Parquet, max of a struct", "Parquet, max and semi-join"


def run(count: int, rounds: int) -> Iterator[Result]:
    """Measure all three; `count` is of records."""
    with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path:
        folder = Path(path)
        make(folder, count)
        logs = broker_logs(folder / "root", rounds + 1)
        with cleaning_broker(folder / "broker", CORES, {**ChainMap(*logs)}) as broker:
            spark = session()
            try:
                yield from compared(spark, folder, count, rounds, broker, map(list, logs))
            finally:
                spark.stop()


def make(folder: Path, count: int) -> None:
    """Write the records to a topic, and to Parquet with the offsets that they have there."""
    log = klog.open(folder / "root")
    log.create_topic(TOPIC, PARTITIONS, {"cleanup.policy": "compact", "compression.type": "lz4"})
    (folder / "rows").mkdir()
    done = 0
    for rows in records(count, VALUE_BYTES, unique_keys=count // RECORDS_A_KEY):
        table = as_table(rows)
        log.append(TOPIC, table)
        offset = pa.array(range(done, done + len(rows)), pa.int64())
        done += len(rows)
        table = table.add_column(0, "offset", offset)
        pq.write_table(table, folder / "rows" / f"{done:012}.parquet")


def broker_logs(root: Path, rounds: int) -> list[dict[str, Mapping[int, Path]]]:
    """Return for each round the logs that a broker cleans at once: partitions with new names."""
    empty = root.with_name("empty")
    empty.touch()
    partitions = klog.open(root).describe(TOPIC).partitions[:CORES]
    logs: list[Mapping[int, Path]] = []
    for partition in partitions:
        files = sorted((root / f"{TOPIC}-{partition.partition}").glob("*.log"))
        logs.append({int(file.name[:20]): file for file in files} | {partition.log_end: empty})
    return [
        {f"round{number}.{index}": log for index, log in enumerate(logs)}
        for number in range(rounds)
    ]


def compared(
    spark: SparkSession,
    folder: Path,
    count: int,
    rounds: int,
    broker: CleaningBroker,
    topics: Iterator[list[str]],
) -> Iterator[Result]:
    """Compact in turns; `topics` has the broker's topics of each turn."""
    rows = spark.read.parquet(str(folder / "rows"))
    cpu: dict[str, list[float]] = {KLOG: [], STRUCT: [], SEMI_JOIN: []}
    works: dict[str, Callable[[], int]] = {
        KLOG: lambda: by_klog(spark, folder),
        STRUCT: lambda: by_parquet(of_struct(rows), folder),
        SEMI_JOIN: lambda: by_parquet(of_semi_join(rows), folder),
    }
    cleanings: list[Cleaning] = []
    left: dict[str, int] = {}

    def timed(name: str) -> Callable[[], int]:
        def work() -> int:
            left[name] = works[name]()
            return count

        return with_cpu(work, cpu[name])

    def by_broker() -> int:
        cleanings.append(broker.clean(next(topics)))
        return cleanings[-1].records

    turns = {"broker": by_broker, **{name: timed(name) for name in works}}
    times = interleaved(turns, rounds, time.perf_counter)
    if len(set(left.values())) != 1:
        raise RuntimeError(f"not the same number of records is left: {left}")
    yield from figures(times, cpu, count, left[KLOG], cleanings[1:])


def figures(
    times: Times,
    cpu: dict[str, list[float]],
    count: int,
    left: int,
    cleanings: list[Cleaning],
) -> Iterator[Result]:
    """Yield the figures; the first round, which is not counted, warmed Java up."""
    of = f"{count:,} records of {VALUE_BYTES} B, {left:,} keys, lz4"
    broker = [cleaning.records_a_second for cleaning in cleanings]
    rates = [count / seconds for seconds in times.seconds[KLOG]]
    ratios = [mine / theirs for mine, theirs in zip(rates, broker, strict=True)]
    yield Result(
        "klog / broker's cleaner: throughput",
        f"{of}; {CORES} cores, {CORES} threads",
        str(Spread.of(ratios)),
        f"at least {BROKER_TARGET}",
    )
    best = min((STRUCT, SEMI_JOIN), key=lambda name: median(cpu[name][1:]))
    less = [theirs / mine for mine, theirs in zip(cpu[KLOG][1:], cpu[best][1:], strict=True)]
    yield Result(
        f"{best} / klog: CPU",
        of,
        str(Spread.of(less)),
        f"at least {PARQUET_TARGET}",
    )
    yield Result("klog: records", of, f"{median(rates) / 1e6:.2f} M a second")
    for name, seconds in cpu.items():
        yield Result(f"{name}: CPU", of, f"{median(seconds[1:]) / count * 1e6:.2f} us a record")
    used = median(cleaning.cpu_seconds / cleaning.records for cleaning in cleanings)
    threads = f"a broker's {CORES} threads"
    yield Result(f"{threads}: records", of, f"{median(broker) / 1e6:.2f} M a second")
    yield Result(f"{threads}: CPU", of, f"{used * 1e6:.2f} us a record")


def by_klog(spark: SparkSession, folder: Path) -> int:
    """Compact a copy of the topic; return the records left."""
    shutil.rmtree(folder / "copy", ignore_errors=True)
    shutil.copytree(folder / "root", folder / "copy", copy_function=os.link)
    report = compact.run(spark, str(folder / "copy"), TOPIC)
    return sum(partition.records_after for partition in report.partitions)


def by_parquet(df: DataFrame, folder: Path) -> int:
    """Write the last rows of the keys to Parquet; return their number."""
    df.write.mode("overwrite").parquet(str(folder / "left"))
    files: Any = pq.ParquetDataset(folder / "left").fragments
    return sum(file.metadata.num_rows for file in files)


def of_struct(rows: DataFrame) -> DataFrame:
    """Group by key, and take offset and value of the last one together."""
    last = sql.max(sql.struct("offset", "value")).alias("last")
    return rows.groupBy("key").agg(last).select("key", "last.offset", "last.value")


def of_semi_join(rows: DataFrame) -> DataFrame:
    """Find the last offset of each key by a hash aggregate, and the rows that have one of them."""
    last = rows.groupBy("key").agg(sql.max("offset").alias("offset")).select("offset")
    return rows.join(sql.broadcast(last), "offset", "left_semi")
