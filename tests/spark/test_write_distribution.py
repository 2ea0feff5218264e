"""A write of the JVM leaves one file for each partition and roll, with the rows in the same order.

The option `distributionMode=none` is the oracle: each task writes its own files.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, functions

import klog
from klog.cli import main
from klog.logformat.batches.scan_batches import scan_batches
from tests.spark.last_query import plan_of_last_query

pytestmark = pytest.mark.spark

PARTITIONS, TASKS, ROWS = 3, 4, 1000
KEY = "if(id % 5 = 0, null, cast(id % 50 as string)) AS key"
VALUE = "cast(id as string) AS value"


def rows(spark: SparkSession, *columns: str, tasks: int = TASKS) -> DataFrame:
    return spark.range(0, ROWS, 1, tasks).selectExpr(VALUE, *columns)


def write(df: DataFrame, root: Path, **options: Any) -> int:
    """Write rows to a new topic; returns the number of its segments."""
    klog.open(root).create_topic("t", PARTITIONS)
    return append(df, root, **options)


def append(df: DataFrame, root: Path, **options: Any) -> int:
    writer = df.write.format("klog").mode("append").option("topic", "t").option("engine", "jvm")
    writer.options(**options).save(str(root))
    return segments(root)


def segments(root: Path) -> int:
    return len(list(root.glob("t-*/*.log")))


def written(root: Path) -> dict[int, list[tuple[bytes | None, int]]]:
    """Return the keys and values of each partition, in the order of the log."""
    table = klog.open(root).scan("t").read_all()
    records = defaultdict(list)
    for row in table.select(["partition", "key", "value"]).to_pylist():
        records[row["partition"]].append((row["key"], int(row["value"])))
    return records


def assert_same_log(df: DataFrame, tmp_path: Path, files: int, **options: Any) -> None:
    """Assert that a write leaves so many files, and what each task would have written."""
    (tmp_path / "hash").mkdir()
    (tmp_path / "none").mkdir()
    assert write(df, tmp_path / "hash", **options) == files
    write(df, tmp_path / "none", distributionMode="none", **options)
    assert written(tmp_path / "hash") == written(tmp_path / "none")
    assert main(["verify", "--root", str(tmp_path / "hash")]) == 0
    assert sum(map(len, written(tmp_path / "hash").values())) == ROWS


def test_each_partition_has_one_file(spark: SparkSession, tmp_path: Path) -> None:
    assert_same_log(rows(spark, KEY), tmp_path, PARTITIONS)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_rows_keep_their_order_in_batches_of_all_sizes(
    spark: SparkSession, tmp_path: Path, codec: str
) -> None:
    options = {"batch.size": 700, "compression.type": codec}
    assert_same_log(rows(spark, KEY), tmp_path, PARTITIONS, **options)


def test_rows_keep_their_order_without_memory(spark: SparkSession, tmp_path: Path) -> None:
    assert_same_log(rows(spark, KEY), tmp_path, PARTITIONS, **{"buffer.memory": 1})


def test_small_batches_of_tasks_become_one(spark: SparkSession, tmp_path: Path) -> None:
    write(rows(spark, "'one' AS key", tasks=50), tmp_path, **{"compression.type": "zstd"})
    (log,) = tmp_path.glob("t-*/*.log")
    data = log.read_bytes()
    assert len(scan_batches(data, 0, len(data))) == 1


def test_tasks_with_more_than_is_sorted_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """Keys of 40 KB: a partition has 13 MB; 4 MiB are read and sorted together."""
    key = "array_join(transform(sequence(1, 625), x -> sha2(concat(id, '-', x), 256)), '') AS key"
    assert_same_log(rows(spark, key, tasks=9), tmp_path, PARTITIONS)


def test_more_partitions_than_spark_opens_files_for(spark: SparkSession, tmp_path: Path) -> None:
    """From 201 on Spark sorts the batches of a task by partition, in memory."""
    df = rows(spark, "cast(id as string) AS key", "cast(id % 201 as int) AS partition", tasks=2)
    klog.open(tmp_path).create_topic("t", 201)
    assert append(df, tmp_path) == 201
    for partition, records in written(tmp_path).items():
        assert [value for _, value in records] == list(range(partition, ROWS, 201))


def test_segments_roll(spark: SparkSession, tmp_path: Path) -> None:
    options = {"segment.bytes": 4096, "batch.size": 1000, "compression.type": "none"}
    files = write(rows(spark, "'one' AS key", tasks=50), tmp_path, **options)
    sizes = [log.stat().st_size for log in tmp_path.glob("t-*/*.log")]
    assert files == len(sizes) == -(-sum(sizes) // 4096)


def test_tasks_write_their_rows_if_the_option_says_so(spark: SparkSession, tmp_path: Path) -> None:
    assert write(rows(spark, KEY), tmp_path, distributionMode="none") == PARTITIONS * TASKS


def test_the_column_partition_decides(spark: SparkSession, tmp_path: Path) -> None:
    partition = f"if(id % 10 < 8, cast(id % {PARTITIONS} as bigint), null) AS partition"
    assert_same_log(rows(spark, KEY, partition), tmp_path, PARTITIONS)


@pytest.mark.parametrize("partition", [-1, PARTITIONS, 1 << 40])
def test_a_partition_that_is_not_there_is_named(
    spark: SparkSession, tmp_path: Path, partition: int
) -> None:
    column = f"cast({partition} as bigint) AS partition"
    with pytest.raises(Exception, match=f"partition {partition}"):
        write(rows(spark, KEY, column), tmp_path)


@pytest.mark.parametrize("tasks", [PARTITIONS, 2 * PARTITIONS])
def test_rows_without_a_key_leave_no_more_files(
    spark: SparkSession, tmp_path: Path, tasks: int
) -> None:
    assert_same_log(rows(spark, tasks=tasks), tmp_path, PARTITIONS)


def test_rows_with_a_partition_alone(spark: SparkSession, tmp_path: Path) -> None:
    df = rows(spark, f"cast(id % {PARTITIONS} as smallint) AS Partition")
    assert_same_log(df, tmp_path, PARTITIONS)


@pytest.mark.parametrize("partitioner", ["sticky", "round-robin"])
def test_other_partitioners(spark: SparkSession, tmp_path: Path, partitioner: str) -> None:
    assert_same_log(rows(spark, KEY), tmp_path, PARTITIONS, partitioner=partitioner)


def test_sorted_rows_stay_sorted(spark: SparkSession, tmp_path: Path) -> None:
    assert write(rows(spark, KEY).orderBy("value"), tmp_path) == PARTITIONS
    for part in written(tmp_path).values():
        texts = [str(value) for _, value in part]
        assert texts == sorted(texts)


def test_dead_letters_lie_in_one_file_a_partition(spark: SparkSession, tmp_path: Path) -> None:
    klog.open(tmp_path).create_topic("dead", 2)
    partition = f"if(id % 10 = 0, {PARTITIONS}, null) AS partition"
    write(rows(spark, KEY, partition), tmp_path, deadLetterTopic="dead")
    dead = klog.open(tmp_path).scan("dead").read_all()
    assert sorted(map(int, dead["value"].to_pylist())) == list(range(0, ROWS, 10))
    assert segments(tmp_path) == PARTITIONS
    assert len(list(tmp_path.glob("dead-*/*.log"))) <= 2
    assert sum(map(len, written(tmp_path).values())) == ROWS - ROWS // 10


def test_rows_that_are_all_rejected(spark: SparkSession, tmp_path: Path) -> None:
    klog.open(tmp_path).create_topic("dead", 1)
    write(rows(spark, KEY, "-1 AS partition"), tmp_path, deadLetterTopic="dead")
    assert klog.open(tmp_path).scan("dead").read_all().num_rows == ROWS
    assert not written(tmp_path)


def exchanges(spark: SparkSession, df: DataFrame, root: Path) -> int:
    """Return how many shuffles of rows or of batches a write has."""
    df.createOrReplaceTempView("distributed_rows")
    spark.sql(
        "CREATE TABLE distributed (key BINARY, value BINARY, partition INT) USING klog "
        f"OPTIONS (topic 't', engine 'jvm') LOCATION '{root}'"
    )
    try:
        statement = "INSERT INTO distributed (key, value, partition) SELECT key, value, partition"
        plan = spark.sql(f"EXPLAIN {statement} FROM distributed_rows").collect()[0][0]
    finally:
        spark.sql("DROP TABLE distributed")
    return int(plan.count("Exchange ") + plan.count("KlogBatchShuffle "))


def test_rows_in_their_places_are_not_shuffled_again(spark: SparkSession, tmp_path: Path) -> None:
    klog.open(tmp_path).create_topic("t", PARTITIONS)
    key = "cast(cast(id as string) as binary) AS key"
    value = "cast(cast(id as string) as binary) AS value"
    partition = f"coalesce(cast(id % {PARTITIONS} as int), 0) AS partition"
    df = spark.range(0, ROWS, 1, TASKS).selectExpr(key, value, partition)
    assert exchanges(spark, df, tmp_path) == 1
    repartitioned = klog.repartition(df, tmp_path, "t")
    assert exchanges(spark, repartitioned, tmp_path) == 1
    assert exchanges(spark, repartitioned.sortWithinPartitions("value"), tmp_path) == 1
    assert exchanges(spark, df.repartition("partition"), tmp_path) == 1
    assert exchanges(spark, df.repartition(8, "partition"), tmp_path) == 1
    assert exchanges(spark, df.repartition("key"), tmp_path) == 2
    assert exchanges(spark, df.repartition(8, "partition", "key"), tmp_path) == 2
    assert exchanges(spark, df.repartition(8, df["partition"], functions.rand()), tmp_path) == 2
    # A row without a partition goes where its key says.
    nullable = df.withColumn("partition", functions.expr("nullif(partition, 1)"))
    assert exchanges(spark, nullable.repartition("partition"), tmp_path) == 2
    assert exchanges(spark, klog.repartition(nullable, tmp_path, "t"), tmp_path) == 1


@pytest.mark.parametrize("is_adaptive", ["true", "false"])
def test_rows_that_spark_has_brought_together(
    spark: SparkSession, tmp_path: Path, is_adaptive: str
) -> None:
    """One file a partition; from a cache, after a sort, a filter and a join, too."""
    partition = f"coalesce(cast(id % {PARTITIONS} as int), 0) AS partition"
    df = rows(spark, KEY, partition)
    spark.conf.set("spark.sql.adaptive.enabled", is_adaptive)
    try:
        klog.open(tmp_path).create_topic("t", PARTITIONS)
        repartitioned = klog.repartition(df, tmp_path, "t").cache()
        assert append(repartitioned.sortWithinPartitions("value"), tmp_path) == PARTITIONS
        assert "KlogRowsInPlace" in plan_of_last_query(spark)
        nullable = df.withColumn("partition", functions.expr("nullif(partition, 1)"))
        assert append(nullable.repartition(8, "partition"), tmp_path) == 2 * PARTITIONS
        assert "KlogBatchShuffle" in plan_of_last_query(spark)
        names = spark.range(PARTITIONS).selectExpr("coalesce(int(id), 0) AS partition")
        joined = df.join(names.hint("merge"), "partition").where("value % 2 = 0")
        assert append(joined, tmp_path) == 3 * PARTITIONS
        assert "KlogRowsInPlace" in plan_of_last_query(spark)
        assert append(df.repartitionByRange(8, "partition"), tmp_path) == 4 * PARTITIONS
        assert "KlogRowsInPlace" in plan_of_last_query(spark)
        assert append(df.coalesce(1), tmp_path) == 5 * PARTITIONS
        assert "KlogRowsInPlace" in plan_of_last_query(spark)
        repartitioned.unpersist()
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert main(["verify", "--root", str(tmp_path)]) == 0
    assert sum(map(len, written(tmp_path).values())) == 4 * ROWS + ROWS // 2


def test_streams_have_one_file_a_partition_and_batch(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    rows(spark, "cast(id % 50 as string) AS key").write.parquet(str(folder))
    klog.open(tmp_path / "out").create_topic("t", PARTITIONS)
    source = spark.readStream.schema("value string, key string").parquet(str(folder))
    writer = source.writeStream.format("klog").option("topic", "t").option("engine", "jvm")
    writer = writer.options(checkpointLocation=str(tmp_path / "state"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
    assert query.awaitTermination(120)
    (progress,) = query.recentProgress
    sink = progress["sink"]
    assert (sink["numOutputRows"], sink["metrics"]["records"]) == (ROWS, str(ROWS))
    assert sink["metrics"]["deadLetters"] == "0"
    assert segments(tmp_path / "out") == PARTITIONS
    assert sum(map(len, written(tmp_path / "out").values())) == ROWS
