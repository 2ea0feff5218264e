"""to-delta into tables that others have made or changed, and what Delta refuses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from klog.connector.embedded import Log
from klog.errors import OptionError, SchemaError
from klog.jobs.shared.delta.delta_target import DeltaTarget
from klog.jobs.to_delta import run
from tests.delta.copied_rows import TOPIC, append, new_log, numbered, rows_of_table, rows_of_topic

pytestmark = [pytest.mark.delta, pytest.mark.full]

COLUMNS = (
    "Topic string, PARTITION int, `Offset` bigint, timestamp timestamp, Key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = new_log(str(tmp_path / "root"), 1)
    append(log, numbered(0, 10))
    return log


class Table:
    """A table that a user has made, and copies into it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.root, self.path = spark, str(folder / "root"), str(folder / "table")

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.format(table=f"delta.`{self.path}`"))

    def copied(self, **arguments: Any) -> tuple[int, int]:
        """Copy, and return the rows that were inserted and updated."""
        rows = run(self.spark, self.root, TOPIC, self.path, **arguments).rows
        return rows.inserted, rows.updated


@pytest.fixture
def table(delta_spark: SparkSession, tmp_path: Path) -> Table:
    return Table(delta_spark, tmp_path)


def test_names_of_columns_have_no_case(table: Table, log: Log) -> None:
    """A clone asks the rows, and so the statistics of the columns."""
    table.sql(f"CREATE TABLE {{table}} ({COLUMNS}) USING delta")
    assert table.copied() == (10, 0)
    clone = f"{table.path}-clone"
    table.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE {{table}}")
    append(log, numbered(10, 20))
    table.path = clone
    assert table.copied() == (10, 0)
    assert rows_of_table(table.spark, table.path) == rows_of_topic(log)


def test_an_upsert_leaves_columns_of_others(table: Table, log: Log) -> None:
    assert table.copied(mode="upsert") == (7, 0)
    table.sql("ALTER TABLE {table} ADD COLUMNS (note string)")
    table.sql("UPDATE {table} SET note = 'mine'")
    append(log, [*numbered(10, 14), ("new", "v")])
    assert table.copied(mode="upsert") == (1, 4)
    rows = table.spark.read.format("delta").load(table.path).groupBy("note").count().collect()
    assert {row["note"]: row["count"] for row in rows} == {"mine": 7, None: 1}


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        (
            "n int",
            {},
            "it has no topic, partition, offset, timestamp, key, value, headers. Give --merge",
        ),
        ("n int", {"mode": "upsert", "merge_schema": True}, "--mode upsert needs its column topic"),
        (
            COLUMNS.replace("value binary, h", "value struct<a: int>, h"),
            {"decode": {"value": "json", "value_schema": "a int, b int"}},
            "it has no value.b",
        ),
    ],
)
def test_columns_that_are_missing(
    table: Table, log: Log, columns: str, arguments: dict[str, Any], message: str
) -> None:
    table.sql(f"CREATE TABLE {{table}} ({columns}) USING delta")
    with pytest.raises(OptionError) as exc:
        table.copied(**arguments)
    assert f"table {table.path}: {message}" in str(exc.value)


def test_a_column_of_another_type(table: Table, log: Log) -> None:
    table.sql(
        f"CREATE TABLE {{table}} ({COLUMNS.replace('value binary, h', 'value int, h')}) USING delta"
    )
    with pytest.raises(SchemaError, match=r"its value is int, and binary in the rows"):
        table.copied(mode="upsert")


def test_zorder_comes_once_at_the_end(table: Table, log: Log) -> None:
    limits = {"maxOffsetsPerTrigger": "5"}
    assert table.copied(options=limits, zorder_by=["key"]) == (10, 0)
    commits = DeltaTarget(table.spark, table.path).commits(100)
    assert [commit.operation for commit in commits] == [
        "OPTIMIZE",
        "WRITE",
        "WRITE",
        "CREATE TABLE",
    ]
    append(log, numbered(10, 20))
    report = run(table.spark, table.root, TOPIC, table.path, zorder_by=["nope"])
    assert (report.rows.inserted, report.exit_code) == (10, 1)
    (failed,) = report.failed
    assert "its rows are copied, but OPTIMIZE failed: " in failed.failure.reason
    assert failed.failure.next_step == "run OPTIMIZE ... ZORDER BY (nope) by itself"
    assert table.copied() == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cluster_by": ["topic"]}, "--zorder-by, --cluster-by: Delta orders rows by only one"),
        ({"continuous": True}, "--zorder-by: it comes at the end of a run, and --continuous has"),
    ],
)
def test_zorder_is_refused(table: Table, log: Log, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as exc:
        table.copied(zorder_by=["key"], **arguments)
    assert message in str(exc.value)


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_note_is_written_again_before_delta_expires_it(table: Table, log: Log, mode: str) -> None:
    """Half of no time has always passed; half of thirty days has not."""
    names = ("logRetentionDuration", "deletedFileRetentionDuration")
    properties = {f"delta.{name}": "interval 0 seconds" for name in names}
    table.copied(mode=mode, table_properties=properties)
    target = DeltaTarget(table.spark, table.path)
    version = target.snapshot().version
    assert table.copied(mode=mode) == (0, 0)
    assert target.snapshot().version == version + 1
    table.sql("ALTER TABLE {table} SET TBLPROPERTIES ('delta.logRetentionDuration' = '30 days')")
    assert table.copied(mode=mode) == (0, 0)
    assert target.snapshot().version == version + 2


def test_a_relative_path_is_below_the_working_directory(
    delta_spark: SparkSession, log: Log, tmp_path: Path
) -> None:
    """The JVM has the directory in which it was started."""
    name = os.path.relpath(tmp_path / "table")
    assert "/" in name
    for inserted in (10, 0):
        report = run(delta_spark, str(tmp_path / "root"), TOPIC, name)
        assert (report.rows.inserted, report.partitions[0].table) == (inserted, name)
    assert rows_of_table(delta_spark, str(tmp_path / "table")) == rows_of_topic(log)
