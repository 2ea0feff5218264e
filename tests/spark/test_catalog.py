"""Tables of Spark's catalog: one error that names what to use instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

import klog

pytestmark = pytest.mark.spark


@pytest.fixture
def root(tmp_path: Path) -> str:
    log = klog.open(tmp_path / "root")
    log.create_topic("t")
    log.append("t", pa.table({"value": ["x"]}))
    return str(tmp_path / "root")


CREATIONS: list[Callable[[SparkSession, str], object]] = [
    lambda spark, root: spark.catalog.createTable("c", source="klog", path=root, subscribe="t"),
    lambda spark, root: spark.catalog.createTable("c", source="klog", subscribe="t"),
    lambda spark, root: spark.sql(
        f"CREATE TABLE c USING klog OPTIONS (path '{root}', subscribe 't') COMMENT 'c' "
        "TBLPROPERTIES ('a'='b')"
    ),
    lambda spark, root: spark.sql(
        f"CREATE EXTERNAL TABLE c USING klog OPTIONS (subscribe 't') LOCATION '{root}'"
    ),
]


@pytest.mark.parametrize("create", CREATIONS, ids=["path", "no path", "properties", "location"])
def test_creating_one_names_the_view_to_use(
    spark: SparkSession, root: str, create: Callable[[SparkSession, str], object]
) -> None:
    with pytest.raises(AnalysisException, match="CREATE TEMPORARY VIEW") as caught:
        create(spark, root)
    assert not spark.catalog.tableExists("c")
    (statement,) = re.findall(
        r"CREATE TEMPORARY VIEW t USING klog OPTIONS \([^)]*\)", str(caught.value)
    )
    spark.sql(statement.replace("/data/klog", root).replace("orders", "t"))
    try:
        assert spark.table("t").count() == 1
    finally:
        spark.catalog.dropTempView("t")


def test_using_one_that_has_columns_of_its_own(
    spark: SparkSession, root: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE d (value binary) USING klog OPTIONS (path '{root}', subscribe 't')")
    try:
        with pytest.raises(AnalysisException, match="CREATE TEMPORARY VIEW"):
            spark.table("d").collect()
        with pytest.raises(AnalysisException, match=r"df\.write\.format"):
            spark.sql("INSERT INTO d SELECT binary('y')")
        with pytest.raises(AnalysisException, match=r"df\.write\.format"):
            spark.sql(f"CREATE TABLE e USING klog OPTIONS (path '{root}') AS SELECT 'y' value")
        stream = spark.readStream.table("d").writeStream.format("noop")
        with pytest.raises(StreamingQueryException, match="CREATE TEMPORARY VIEW"):
            stream.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()
    finally:
        spark.sql("DROP TABLE d")
