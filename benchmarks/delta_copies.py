"""Copy a topic into Delta tables: to-delta with each engine, Spark's Kafka stream, a cached frame.

The rule: each run makes a new table and fills it, in turns, wall time of all of it. to-delta reads
the broker's own directory; the stream reads the broker, with a checkpoint, until it has all. The
cached frame has the rows that to-delta writes, so it is what writing alone takes. CPU is that of
Spark, its Python workers and the broker.

An upsert merges a hundredth of the keys, all of them changed, into a table of all of them. By hand
it is a MERGE of the same rows from a cached frame. Before each, the table is restored.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import klog
from benchmarks.compared import KLOG, Action, compared
from benchmarks.free_pages import refill
from benchmarks.logs import PARTITIONS
from benchmarks.same_topic import SameTopic, same_topic
from benchmarks.spark_write import Result, session_builder
from klog.jobs import to_delta
from klog.jobs.copying_to_delta.table_rows import COLUMNS

CACHED, STREAM, BY_HAND = "a cached frame", "Kafka stream", "MERGE by hand"
VALUE_BYTES = 100
CHANGED_SHARE = 100
UPSERT_TIMES = 5
"""The table of the upsert has so many times the records of the other part."""
FREED_BYTES_A_RECORD = 400


def run(records: int, codec: str, rounds: int) -> Iterator[Result]:
    """Measure copies of a topic, and upserts."""
    spark = klog.configure(session_builder()).getOrCreate()
    try:
        with same_topic(spark, codec, records, VALUE_BYTES) as topic:
            yield from _appends(topic, rounds)
        with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path:
            yield from _upserts(spark, Path(path), UPSERT_TIMES * records, rounds)
    finally:
        spark.stop()


def _appends(topic: SameTopic, rounds: int) -> Iterator[Result]:
    reader = topic.spark.read.format("klog").options(**topic.directory_options)
    rows = reader.option("includeHeaders", "true").load().select(*COLUMNS).cache()
    if rows.count() != topic.count:
        raise RuntimeError("records are missing from the cached frame")
    tables = _Tables(topic.spark, topic.folder, topic.count)
    root = str(topic.broker.log_dirs[0])

    def copy(engine: str) -> Action:
        return tables.new(
            lambda table: to_delta.run(
                topic.spark, root, topic.codec, table, options={"engine": engine}
            )
        )

    actions = {
        f"{KLOG} to-delta, JVM": copy("jvm"),
        f"{KLOG} to-delta, Python": copy("python"),
        CACHED: tables.new(lambda table: rows.write.format("delta").save(table)),
        STREAM: tables.new(lambda table: _stream(topic, table)),
    }
    free_pages = refill(topic.count * FREED_BYTES_A_RECORD)
    yield from compared(f"append, {topic.label}", topic.count, actions, rounds, free_pages)
    rows.unpersist(blocking=True)


def _stream(topic: SameTopic, table: str) -> None:
    rows = topic.spark.readStream.format("kafka").options(**topic.kafka_options)
    rows = rows.option("startingOffsets", "earliest").option("includeHeaders", "true")
    writer = rows.load().select(*COLUMNS).writeStream.format("delta")
    writer = writer.option("checkpointLocation", f"{table}-checkpoint")
    writer.trigger(availableNow=True).start(table).awaitTermination()


class _Tables:
    """New tables, each deleted before the next one is made."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self._spark, self._folder, self._rows = spark, folder, rows
        self._numbers = count()

    def new(self, fill: Callable[[str], object]) -> Action:
        """Return the work that makes a table; the count of its rows is checked by its log."""

        def work() -> None:
            for path in self._folder.glob("table-*"):
                shutil.rmtree(path)
            table = str(self._folder / f"table-{next(self._numbers)}")
            fill(table)
            files = self._spark.read.format("delta").load(table)
            if (rows := files.count()) != self._rows:
                raise RuntimeError(f"the table has {rows} rows of {self._rows}")

        return work


def _upserts(spark: SparkSession, folder: Path, keys: int, rounds: int) -> Iterator[Result]:
    root, table = str(folder / "root"), str(folder / "table")
    log = klog.open(root)
    log.create_topic("users", PARTITIONS)
    _write(spark, root, spark.range(keys))
    to_delta.run(spark, root, "users", table, mode="upsert")
    base = DeltaTable.forPath(spark, table).history(1).select("version").collect()[0][0]
    ends = log.offsets("users")
    _write(spark, root, spark.range(0, keys, CHANGED_SHARE))
    target = DeltaTable.forPath(spark, table)
    reader = spark.read.format("klog").option("subscribe", "users").option("includeHeaders", "true")
    reader = reader.option("startingOffsets", json.dumps({"users": ends}))
    changes = reader.load(root).select(*COLUMNS).cache()
    changed = changes.count()

    def restore() -> None:
        spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {base}")
        refill(keys * FREED_BYTES_A_RECORD // 10)()

    def upsert(engine: str) -> Action:
        return lambda: to_delta.run(
            spark, root, "users", table, mode="upsert", options={"engine": engine}
        )

    actions: dict[str, Action] = {
        f"{KLOG} to-delta, JVM": upsert("jvm"),
        f"{KLOG} to-delta, Python": upsert("python"),
        BY_HAND: lambda: _merge(target, changes),
    }
    of = f"upsert of {changed:,} of {keys:,} keys"
    yield from compared(of, changed, actions, rounds, restore)


def _write(spark: SparkSession, root: str, numbers: DataFrame) -> None:
    value = sf.concat("id", sf.lit("-"), sf.repeat(sf.md5(sf.col("id").cast("string")), 3))
    rows = numbers.select(sf.col("id").cast("string").alias("key"), value.alias("value"))
    writer = rows.write.format("klog").option("topic", "users").option("compression.type", "lz4")
    writer.mode("append").save(root)


def _merge(target: DeltaTable, changes: DataFrame) -> None:
    merge = target.alias("t").merge(changes.alias("c"), "t.key = c.key")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
