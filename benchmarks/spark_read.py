"""Read logs through Spark to `noop`: klog, Parquet of the same rows, and the ceiling.

The rule: the same columns and rows for all three, two cores, wall time of the whole query with its
planning. Parquet is as Spark writes it (snappy); the ceiling has klog's tasks and batches, row for
row (`ceiling.py`). What a query costs whatever it reads is timed too, by one record a partition: it
flatters a ratio of short queries.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks import ceiling
from benchmarks.logs import (
    PARTITIONS,
    SMALL_BATCHES,
    TOPIC,
    Shape,
    shape_records,
    write_log_directory,
)
from benchmarks.timing import Times, Work, interleaved
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.task_reader import make_reader
from tools.java_home import java_home

KLOG, PARQUET, CEILING, FIXED = "klog", "Parquet", "ceiling", "fixed"
CEILING_TARGET = 0.55
MASTER = "local[2]"


@dataclass(frozen=True, slots=True)
class Result:
    """One log and how fast Spark reads it in each form."""

    shape: Shape
    times: Times


def session() -> SparkSession:
    """Return the Spark session, an existing one if there is one."""
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: SparkSession.Builder = SparkSession.builder.master(MASTER).appName("benchmarks")
    return (
        builder.config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def run(
    spark: SparkSession, sizes: Sequence[tuple[int, int]], codecs: Sequence[str], rounds: int
) -> Iterator[Result]:
    """Measure every codec for each (value bytes, records), in a producer's default batches."""
    spark.dataSource.register(ceiling.ReadyBatches)
    for value_bytes, count in sizes:
        rows = shape_records(Shape("none", SMALL_BATCHES, value_bytes, count))
        for codec in codecs:
            shape = Shape(codec, SMALL_BATCHES, value_bytes, count)
            with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as folder:
                log_directory, parquet = Path(folder, "log"), Path(folder, "parquet")
                write_log_directory(log_directory, shape, rows)
                yield Result(shape, measure(spark, shape, str(log_directory), str(parquet), rounds))


def measure(
    spark: SparkSession, shape: Shape, log_directory: str, parquet: str, rounds: int
) -> Times:
    """Write the Parquet, then time the reads; the Parquet's count proves klog's."""
    frames: dict[str, Callable[[], DataFrame]] = {
        KLOG: lambda: klog_frame(spark, log_directory),
        PARQUET: lambda: spark.read.parquet(parquet),
        CEILING: ceiling_frames(spark, log_directory, shape.value_bytes),
    }
    frames[KLOG]().write.parquet(parquet)
    if (seen := frames[PARQUET]().count()) != shape.records:
        raise RuntimeError(f"klog gives {seen} rows of {shape.records}")
    works = {name: to_noop(frame, shape.records) for name, frame in frames.items()}
    firsts = json.dumps({TOPIC: dict.fromkeys(map(str, range(PARTITIONS)), 1)})
    works[FIXED] = to_noop(lambda: klog_frame(spark, log_directory, firsts), PARTITIONS)
    return interleaved(works, rounds, time.perf_counter)


def klog_frame(spark: SparkSession, log_directory: str, ending: str = "latest") -> DataFrame:
    """Load the log as a user would."""
    reader = spark.read.format("klog").option("subscribe", TOPIC)
    reader = reader.option("startingOffsets", "earliest").option("endingOffsets", ending)
    return reader.load(log_directory)


def ceiling_frames(
    spark: SparkSession, log_directory: str, value_bytes: int
) -> Callable[[], DataFrame]:
    """Measure klog's tasks and batches once; return a function that makes a frame of that shape."""
    shapes = json.dumps(task_shapes(log_directory))

    def frame() -> DataFrame:
        reader = spark.read.format(ceiling.NAME).option("shapes", shapes)
        return reader.option("valueBytes", str(value_bytes)).load()

    return frame


def task_shapes(log_directory: str) -> list[list[int]]:
    """List, for each of klog's tasks, how many rows each of its batches has."""
    options = parse_read_options({"subscribe": TOPIC, "startingOffsets": "earliest"})
    root = RawRoot([log_directory])
    reader = make_reader([log_directory], options)
    tasks = scan_planner.plan_snapshot(root.snapshot(), options)
    return [[batch.num_rows for batch in reader.read(task)] for task in tasks]


def to_noop(frame: Callable[[], DataFrame], count: int) -> Work:
    """Return the work of writing a frame of so many rows to `noop`."""

    def work() -> int:
        frame().write.format("noop").mode("overwrite").save()
        return count

    return work
