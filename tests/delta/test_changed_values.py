"""to-delta when the type of values changes: a row is stored unchanged, or the run fails."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from klog.connector.embedded import Log
from klog.errors import OptionError, SchemaError
from klog.jobs.to_delta import run
from tests.delta.copied_rows import TOPIC, append, new_log

pytestmark = [pytest.mark.delta, pytest.mark.full]


def json_of(schema: str) -> dict[str, Any]:
    return {"key": "string", "value": "json", "value_schema": schema}


def avro_of(*fields: tuple[str, Any]) -> dict[str, Any]:
    columns = [{"name": name, "type": kind} for name, kind in fields]
    schema = {"type": "record", "name": "Order", "fields": columns}
    return {"key": "string", "value": "avro", "value_schema": json.dumps(schema)}


def append_avro(log: Log, decode: dict[str, Any], **value: Any) -> None:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, json.loads(decode["value_schema"]), value)
    log.append(TOPIC, pa.table({"key": [b"k"], "value": [data.getvalue()]}))


def values_of(spark: SparkSession, table: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = spark.sql(f"SELECT {', '.join(columns)} FROM {table} ORDER BY offset")
    return [tuple(row) for row in rows.collect()]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return new_log(str(tmp_path / "root"), 1)


TABLES = pytest.mark.parametrize(
    ("kind", "mode"),
    [("a path", "append"), ("a path", "upsert"), ("a name", "append"), ("a name", "upsert")],
)
"""Delta writes a table by its path in another way than one by its name."""


def table_of(kind: str, spark: SparkSession, folder: Path) -> str:
    """Return the name of a table that does not exist."""
    if kind == "a path":
        return f"delta.`{folder}/table`"
    spark.sql("DROP TABLE IF EXISTS changed")
    return "changed"


@TABLES
def test_a_type_that_the_column_cannot_hold(
    delta_spark: SparkSession, tmp_path: Path, log: Log, kind: str, mode: str
) -> None:
    root, table = str(tmp_path / "root"), table_of(kind, delta_spark, tmp_path)
    first, second = avro_of(("amount", "int")), avro_of(("amount", "double"))
    append_avro(log, first, amount=1)
    run(delta_spark, root, TOPIC, table, mode=mode, decode=first)
    append_avro(log, second, amount=1.9)
    with pytest.raises(SchemaError, match=r"value\.amount is int, and double in the rows"):
        run(delta_spark, root, TOPIC, table, mode=mode, decode=second)
    assert values_of(delta_spark, table, "value.amount") == [(1,)]


@TABLES
def test_a_type_that_the_column_can_hold(
    delta_spark: SparkSession, tmp_path: Path, log: Log, kind: str, mode: str
) -> None:
    root, table = str(tmp_path / "root"), table_of(kind, delta_spark, tmp_path)
    first, second = avro_of(("amount", "long")), avro_of(("amount", "int"))
    append_avro(log, first, amount=2**40)
    run(delta_spark, root, TOPIC, table, mode=mode, decode=first)
    append_avro(log, second, amount=7)
    run(delta_spark, root, TOPIC, table, mode=mode, decode=second)
    amounts = [amount for (amount,) in values_of(delta_spark, table, "value.amount")]
    assert amounts == ([2**40, 7] if mode == "append" else [7])


@pytest.mark.parametrize("mode", ["append", "upsert"])
@pytest.mark.parametrize("merge_schema", [False, True])
def test_a_field_that_is_no_longer_there_is_null(
    delta_spark: SparkSession, tmp_path: Path, log: Log, mode: str, merge_schema: bool
) -> None:
    root, table = str(tmp_path / "root"), f"delta.`{tmp_path}/table`"
    nested = "id int, note string, sizes array<struct<x int, y int>>"
    append(log, [("k", '{"id": 1, "note": "a", "sizes": [{"x": 1, "y": 2}]}')])
    run(delta_spark, root, TOPIC, table, mode=mode, decode=json_of(nested))
    append(log, [("k", '{"id": 2, "sizes": [{"x": 3}]}')])
    smaller = json_of("id int, sizes array<struct<x int>>")
    run(delta_spark, root, TOPIC, table, mode=mode, decode=smaller, merge_schema=merge_schema)
    rows = values_of(delta_spark, table, "value.id", "value.note", "value.sizes.y")
    assert rows[-1] == (2, None, [None])


def test_an_upsert_adds_fields(delta_spark: SparkSession, tmp_path: Path, log: Log) -> None:
    root, table = str(tmp_path / "root"), f"delta.`{tmp_path}/table`"
    append(log, [("a", '{"id": 1}'), ("b", '{"id": 2}')])
    run(delta_spark, root, TOPIC, table, mode="upsert", decode=json_of("id int"))
    append(log, [("b", '{"id": 3, "city": "Bonn"}')])
    larger = json_of("city string, id int")
    run(delta_spark, root, TOPIC, table, mode="upsert", decode=larger, merge_schema=True)
    rows = values_of(delta_spark, table, "key", "value.id", "value.city")
    assert rows == [("a", 1, None), ("b", 3, "Bonn")]
    names = delta_spark.sql(f"SELECT * FROM {table}").columns
    assert names == ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]


def test_a_map_with_a_key_twice(delta_spark: SparkSession, tmp_path: Path, log: Log) -> None:
    root, table = str(tmp_path / "root"), f"delta.`{tmp_path}/table`"
    for key in ("a", "b"):
        append(log, [(key, '{"m": {"x": 1, "x": 2}}')])
        run(delta_spark, root, TOPIC, table, decode=json_of("m map<string, int>"))
    assert values_of(delta_spark, table, "cardinality(value.m)") == [(2,), (2,)]


def test_names_that_differ_by_case(delta_spark: SparkSession, tmp_path: Path, log: Log) -> None:
    """Delta tells names apart without case, whatever Spark does."""
    root, table = str(tmp_path / "root"), f"delta.`{tmp_path}/table`"
    append(log, [("k", '{"Id": 1}')])
    run(delta_spark, root, TOPIC, table, decode=json_of("Id int, note string"))
    append(log, [("k", '{"id": 2}')])
    delta_spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        run(delta_spark, root, TOPIC, table, mode="append", decode=json_of("id int"))
    finally:
        delta_spark.conf.unset("spark.sql.caseSensitive")
    assert values_of(delta_spark, table, "value.Id") == [(1,), (2,)]


def test_an_upsert_adds_a_column(delta_spark: SparkSession, tmp_path: Path, log: Log) -> None:
    root, table = str(tmp_path / "root"), f"delta.`{tmp_path}/table`"
    append(log, [("a", '{"id": 1}')])
    decode = json_of("id int")
    run(delta_spark, root, TOPIC, table, mode="upsert", decode=decode)
    append(log, [("a", "bad"), ("b", '{"id": 2}')])
    arguments: dict[str, Any] = {"mode": "upsert", "decode": decode, "on_error": "null"}
    with pytest.raises(OptionError, match=r"it has no key_error, value_error\. Give"):
        run(delta_spark, root, TOPIC, table, **arguments)
    run(delta_spark, root, TOPIC, table, merge_schema=True, **arguments)
    rows = values_of(delta_spark, table, "key", "value.id", "value_error IS NULL")
    assert rows == [("a", None, False), ("b", 2, True)]


def test_the_reason_of_an_older_record_is_not_kept(
    delta_spark: SparkSession, tmp_path: Path, log: Log
) -> None:
    root, table = str(tmp_path / "root"), f"delta.`{tmp_path}/table`"
    append(log, [("k", "bad")])
    decode = json_of("id int")
    run(delta_spark, root, TOPIC, table, mode="upsert", decode=decode, on_error="null")
    append(log, [("k", '{"id": 1}')])
    run(delta_spark, root, TOPIC, table, mode="upsert", decode=decode)
    assert values_of(delta_spark, table, "value.id", "value_error") == [(1, None)]


@pytest.mark.parametrize("on_error", ["fail", "null", "dead-letters"])
def test_null_in_json_is_no_tombstone(
    delta_spark: SparkSession, tmp_path: Path, log: Log, on_error: str
) -> None:
    root, table = str(tmp_path / "root"), f"delta.`{tmp_path}/table`"
    dead = f"{tmp_path}/dead" if on_error == "dead-letters" else None
    append(log, [("a", '{"id": 1}'), ("b", '{"id": 2}')])
    append(log, [("a", "null"), ("b", None), ("c", "null"), ("d", None)])
    for _ in range(2):
        run(
            delta_spark, root, TOPIC, table, mode="upsert", decode=json_of("id int"),
            on_error=on_error, dead_letter_table=dead, options={"maxOffsetsPerTrigger": "2"},
        )  # fmt: skip
    assert values_of(delta_spark, table, "key", "value.id") == [("a", None), ("c", None)]


def test_a_type_that_delta_does_not_have(
    delta_spark: SparkSession, tmp_path: Path, log: Log
) -> None:
    decode = avro_of(("at", {"type": "int", "logicalType": "time-millis"}))
    append(log, [("k", "\x02")])
    with pytest.raises(SchemaError, match=r"value\.at is time\(6\), and Delta has no such type"):
        run(delta_spark, str(tmp_path / "root"), TOPIC, str(tmp_path / "table"), decode=decode)
