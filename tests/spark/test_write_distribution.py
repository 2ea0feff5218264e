"""With `distributionMode=hash` a write of the JVM leaves one file for each partition and roll."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import klog
from klog.logformat.partitioner import key_partitions

pytestmark = pytest.mark.spark

PARTITIONS, TASKS, ROWS = 3, 4, 1000
KEY = "if(id % 5 = 0, null, cast(id % 50 as string)) AS key"
VALUE = "cast(id as string) AS value"


def rows(spark: SparkSession, *columns: str) -> DataFrame:
    return spark.range(0, ROWS, 1, TASKS).selectExpr(VALUE, *columns)


def write(df: DataFrame, root: Path, **options: Any) -> int:
    """Write rows to a new topic; returns the number of its segments."""
    klog.open(root).create_topic("t", PARTITIONS)
    writer = df.write.format("klog").mode("append").option("topic", "t").option("engine", "jvm")
    writer.options(**{"distributionMode": "hash", **options}).save(str(root))
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


def test_each_partition_has_one_file(spark: SparkSession, tmp_path: Path) -> None:
    assert write(rows(spark, KEY), tmp_path) == PARTITIONS
    records = written(tmp_path)
    assert sorted(value for part in records.values() for _, value in part) == list(range(ROWS))
    for number, part in records.items():
        keys = [key for key, _ in part if key is not None]
        assert set(key_partitions(pa.array(keys), PARTITIONS).to_pylist()) == {number}


def test_rows_of_a_task_keep_their_order(spark: SparkSession, tmp_path: Path) -> None:
    write(rows(spark, KEY), tmp_path)
    of_task = ROWS // TASKS
    for part in written(tmp_path).values():
        for task in range(TASKS):
            numbers = [value for _, value in part if value // of_task == task]
            assert numbers == sorted(numbers)


def test_tasks_write_their_rows_if_the_option_says_so(spark: SparkSession, tmp_path: Path) -> None:
    assert write(rows(spark, KEY), tmp_path, distributionMode="none") == PARTITIONS * TASKS


def test_the_column_partition_decides(spark: SparkSession, tmp_path: Path) -> None:
    partition = f"if(id % 10 < 8, cast(id % {PARTITIONS} as bigint), null) AS partition"
    assert write(rows(spark, KEY, partition), tmp_path) == PARTITIONS
    for number, part in written(tmp_path).items():
        assert {value % PARTITIONS for _, value in part if value % 10 < 8} == {number}


@pytest.mark.parametrize("partition", [-1, PARTITIONS, 1 << 40])
def test_a_partition_that_is_not_there_is_named(
    spark: SparkSession, tmp_path: Path, partition: int
) -> None:
    column = f"cast({partition} as bigint) AS partition"
    with pytest.raises(Exception, match=f"partition {partition}"):
        write(rows(spark, KEY, column), tmp_path)


def test_rows_without_a_key_are_not_shuffled(spark: SparkSession, tmp_path: Path) -> None:
    assert write(rows(spark), tmp_path) == TASKS


def test_rows_with_a_partition_alone_are_shuffled(spark: SparkSession, tmp_path: Path) -> None:
    df = rows(spark, f"cast(id % {PARTITIONS} as smallint) AS Partition")
    assert write(df, tmp_path) == PARTITIONS


@pytest.mark.parametrize("partitioner", ["sticky", "round-robin"])
def test_other_partitioners_are_not_shuffled(
    spark: SparkSession, tmp_path: Path, partitioner: str
) -> None:
    files = write(rows(spark, KEY), tmp_path, partitioner=partitioner)
    assert files == (TASKS if partitioner == "sticky" else PARTITIONS * TASKS)


def test_sorted_rows_stay_sorted(spark: SparkSession, tmp_path: Path) -> None:
    write(rows(spark, KEY).orderBy("value"), tmp_path)
    for part in written(tmp_path).values():
        texts = [str(value) for _, value in part]
        assert texts == sorted(texts)


def test_rows_sorted_by_what_is_not_written_stay_sorted(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(rows(spark, KEY, "id").orderBy("id").select("key", "value"), tmp_path)
    for part in written(tmp_path).values():
        values = [value for _, value in part]
        assert values == sorted(values)


def exchanges(spark: SparkSession, df: DataFrame, root: Path) -> int:
    """Return how many shuffles a write has."""
    df.createOrReplaceTempView("distributed_rows")
    spark.sql(
        "CREATE TABLE distributed (key BINARY, value BINARY, partition INT) USING klog "
        f"OPTIONS (topic 't', engine 'jvm', distributionMode 'hash') LOCATION '{root}'"
    )
    try:
        statement = "INSERT INTO distributed (key, value, partition) SELECT key, value, partition"
        plan = spark.sql(f"EXPLAIN {statement} FROM distributed_rows").collect()[0][0]
    finally:
        spark.sql("DROP TABLE distributed")
    return int(plan.count("Exchange "))


def test_rows_in_their_places_are_not_shuffled_again(spark: SparkSession, tmp_path: Path) -> None:
    klog.open(tmp_path).create_topic("t", PARTITIONS)
    key = "cast(cast(id as string) as binary) AS key"
    value = "cast(cast(id as string) as binary) AS value"
    df = spark.range(0, ROWS, 1, TASKS).selectExpr(key, value, "cast(null as int) AS partition")
    assert exchanges(spark, df, tmp_path) == 1
    assert exchanges(spark, klog.repartition(df, tmp_path, "t"), tmp_path) == 1
    assert exchanges(spark, df.repartition("partition"), tmp_path) == 1
    assert exchanges(spark, df.coalesce(1), tmp_path) == 0
    assert exchanges(spark, df.repartition("key"), tmp_path) == 2


def test_streams_have_one_file_a_partition_and_batch(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    rows(spark, "cast(id % 50 as string) AS key").write.parquet(str(folder))
    klog.open(tmp_path / "out").create_topic("t", PARTITIONS)
    source = spark.readStream.schema("value string, key string").parquet(str(folder))
    writer = source.writeStream.format("klog").option("topic", "t").option("engine", "jvm")
    writer = writer.options(distributionMode="hash", checkpointLocation=str(tmp_path / "state"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
    assert query.awaitTermination(120)
    assert segments(tmp_path / "out") == PARTITIONS
    assert sum(map(len, written(tmp_path / "out").values())) == ROWS
