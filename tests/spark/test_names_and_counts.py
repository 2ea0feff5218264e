"""A first day with Spark: `~`, columns in any case, and other numbers of partitions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import klog

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("engine")]


def test_home_directory_and_columns_in_any_case(spark: SparkSession) -> None:
    """HOME is that of the JVM and its workers, so the test has a folder of its own there."""
    root = Path("~/.klog-test-of-home").expanduser()
    try:
        rows = spark.sql("SELECT 'k' KEY, 'v' Value, 0 PARTITION, 5L Offset")
        writer = rows.write.format("klog").option("topic", "t").mode("append")
        writer.save("~/.klog-test-of-home")
        assert klog.open(root).topics() == ["t"]
        table = spark.read.format("klog").option("subscribe", "t").option("columns", "VALUE,Key")
        assert [tuple(row) for row in table.load("~/.klog-test-of-home").collect()] == [
            (b"k", b"v")
        ]
    finally:
        shutil.rmtree(root, ignore_errors=True)


def test_rows_copied_with_their_partitions(spark: SparkSession, tmp_path: Path) -> None:
    log = klog.open(tmp_path)
    log.create_topic("source", 4)
    rows = spark.range(8).selectExpr("string(id) value", "cast(id % 4 AS int) partition")
    rows.write.format("klog").option("topic", "source").mode("append").save(str(tmp_path))
    reader = spark.read.format("klog").option("subscribe", "source")
    copied = reader.load(str(tmp_path)).drop("topic")
    writer = copied.write.format("klog").option("topic", "copy").mode("append")
    with pytest.raises(
        PySparkException, match=r"Set numPartitions .* or drop the column partition"
    ):
        writer.save(str(tmp_path))
    copied.drop("partition").write.format("klog").option("topic", "one").mode("append").save(
        str(tmp_path)
    )
    writer.option("numPartitions", "4").save(str(tmp_path))
    assert [len(log.describe(topic).partitions) for topic in ("copy", "one")] == [4, 1]
    with pytest.raises(PySparkException, match="topic copy has 4 partitions, got 2"):
        writer.option("numPartitions", "2").save(str(tmp_path))
