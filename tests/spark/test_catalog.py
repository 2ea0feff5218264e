"""Tables and views of Spark's catalog: what Spark forgets is an error with the statement to use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import klog
from klog.connector.embedded import Log

pytestmark = pytest.mark.spark

Create = Callable[[SparkSession, str], object]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = klog.open(tmp_path / "root")
    log.create_topic("orders")
    log.append("orders", pa.table({"value": ["x"]}))
    return log


@pytest.fixture
def root(log: Log, tmp_path: Path) -> str:
    return str(tmp_path / "root")


@pytest.fixture(autouse=True)
def _drop_table(spark: SparkSession) -> Iterator[None]:
    yield
    spark.sql("DROP TABLE IF EXISTS t")


def rows_of(spark: SparkSession, root: str) -> list[str]:
    table = spark.read.format("klog").option("subscribe", "orders").load(root)
    return sorted(bytes(row.value).decode() for row in table.collect())


def save_as_table(spark: SparkSession, root: str) -> None:
    writer = spark.createDataFrame([("y",)], "value string").write.format("klog")
    writer.mode("append").option("path", root).option("topic", "orders").saveAsTable("t")


def statement(error: pytest.ExceptionInfo[AnalysisException], pattern: str, root: str) -> str:
    """Return the statement that an error names, for this root."""
    match = re.search(pattern, str(error.value))
    assert match is not None, str(error.value)
    return match[0].replace("/data/klog", root)


CREATIONS: dict[str, Create] = {
    "options": lambda spark, root: spark.sql(
        f"CREATE TABLE t USING klog OPTIONS (path '{root}', subscribe 'orders') COMMENT 'c' "
        "TBLPROPERTIES ('a'='b')"
    ),
    "no options": lambda spark, root: spark.sql("CREATE TABLE t USING klog"),
    "location": lambda spark, root: spark.sql(
        f"CREATE TABLE t USING klog OPTIONS (subscribe 'orders') LOCATION '{root}'"
    ),
    "own columns": lambda spark, root: spark.sql("CREATE TABLE t (value binary) USING klog"),
    "createTable": lambda spark, root: spark.catalog.createTable(
        "t", source="klog", path=root, subscribe="orders"
    ),
    "saveAsTable": save_as_table,
}


@pytest.mark.parametrize("create", CREATIONS.values(), ids=CREATIONS)
def test_reading_a_table_names_the_statement_that_works(
    spark: SparkSession, root: str, create: Create
) -> None:
    create(spark, root)
    expected = rows_of(spark, root)
    with pytest.raises(AnalysisException) as error:
        spark.table("t").collect()
    if create is save_as_table:
        for renewal in ("DROP TABLE t", "CREATE TABLE t USING klog"):
            assert renewal in str(error.value)
            spark.sql(renewal)
    rows = spark.sql(statement(error, r"SELECT \* FROM t WITH \(.*?\)", root)).collect()
    assert sorted(bytes(row.value).decode() for row in rows) == expected
    if create is not save_as_table:
        reader = statement(error, r"spark\.read\.option.*\.table\(\"t\"\)", root)
        table: DataFrame = eval(reader, {"spark": spark})
        assert table.count() == len(expected)


def test_writing_a_table_names_the_statement_that_works(spark: SparkSession, root: str) -> None:
    spark.sql("CREATE TABLE t (value binary) USING klog")
    with pytest.raises(AnalysisException) as error:
        spark.sql("INSERT INTO t SELECT binary('y')")
    insert = statement(error, r"INSERT INTO t WITH \(.*?\)", root)
    spark.sql(f"{insert} SELECT binary('y')")
    writer = statement(error, r"df\.writeTo\(.*\.append\(\)", root)
    eval(writer, {"df": spark.sql("SELECT binary('z') value")})
    assert rows_of(spark, root) == ["x", "y", "z"]
    with pytest.raises(AnalysisException, match="INSERT INTO t WITH"):
        spark.sql(f"CREATE TABLE u USING klog OPTIONS (path '{root}') AS SELECT 'y' value")


def test_columns_of_a_table_are_those_that_its_options_select(
    spark: SparkSession, root: str
) -> None:
    spark.sql("CREATE TABLE t USING klog OPTIONS (includeHeaders 'true', columns 'value,headers')")
    assert spark.table("t").columns == ["value", "headers"]
    rows = spark.sql(f"SELECT * FROM t WITH (path = '{root}', subscribe = 'orders')").collect()
    assert [tuple(row) for row in rows] == [(b"x", None)]
    with pytest.raises(AnalysisException, match="there is no column 'valu'"):
        spark.sql("CREATE TABLE u USING klog OPTIONS (columns 'valu')")


def test_streams_of_a_table(spark: SparkSession, root: str, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE t (value binary) USING klog")
    source = spark.readStream.option("path", root).option("subscribe", "orders")
    rows = source.option("startingOffsets", "earliest").table("t")
    writer = rows.writeStream.trigger(availableNow=True).option("path", root)
    checkpoint = str(tmp_path / "c")
    writer = writer.option("topic", "orders").option("checkpointLocation", checkpoint)
    writer.toTable("t").awaitTermination()
    assert rows_of(spark, root) == ["x", "x"]


def test_view_shows_the_log_of_its_creation_and_a_view_of_a_table_that_of_each_query(
    spark: SparkSession, log: Log, root: str
) -> None:
    options = f"OPTIONS (path '{root}', subscribe 'orders')"
    spark.sql(f"CREATE TEMPORARY VIEW of_klog USING klog {options}")
    spark.sql("CREATE TABLE t USING klog")
    spark.sql(
        "CREATE TEMPORARY VIEW of_table AS "
        f"SELECT * FROM t WITH (path = '{root}', subscribe = 'orders')"
    )
    try:
        assert spark.table("of_klog").count() == spark.table("of_table").count() == 1
        log.append("orders", pa.table({"value": ["y"]}))
        spark.sql("REFRESH TABLE of_klog")
        assert spark.table("of_klog").count() == 1
        assert spark.table("of_table").count() == 2
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW of_klog USING klog {options}")
        assert spark.table("of_klog").count() == 2
    finally:
        spark.catalog.dropTempView("of_klog")
        spark.catalog.dropTempView("of_table")
