"""`klog.values` on DataFrames: values as in Arrow, places in errors, no secret in a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException, SparkRuntimeException
from pyspark.sql import types as t

import klog
from klog import values
from klog.errors import OptionError, SchemaError
from tests.support.schema_registry import running_registry
from tests.values.avro_rows import decoded, encoded, record
from tests.values.make_vectors import FOLDER
from tests.values.test_avro_decoder import TYPES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

POINT = record(("x", "int"), ("label", ["null", "string"]))
JSON_ROWS = [
    b'{"a": 1, "s": "Zo\xc3\xab", "l": [{"x": 1}]}', b"{}", None, b"null", b'{"s": 5, "more": {}}',
    b"", b"  ", b"{", b"[1]", b"5", b'{"a": "1"}', b'{"a": 1.5}', b'{"a": 9223372036854775808}',
    b'{"s": "\xff"}', b"{'a': 1}", b'{"l": [{"x": "y"}]}', b'{"l": {}}', b"\xff\xfe",
]  # fmt: skip
JSON_DDL = "a bigint, s string, l array<struct<x int>>"
JSON_TYPE = pa.struct(
    [("a", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.struct([("x", pa.int32())])))]
)


def frame(spark: SparkSession, rows: list[bytes | None], key: bytes = b"\0\0\0\1") -> DataFrame:
    """Return rows with the columns of `format("klog")`, in one partition."""
    schema = "topic string, partition int, offset bigint, key binary, value binary"
    records = [("t", 3, 10 + place, key, value) for place, value in enumerate(rows)]
    return spark.createDataFrame(records, schema).coalesce(1)


def plain(row: Any) -> Any:
    """Return a value of `collect` as pyarrow's `to_pylist` has it."""
    if isinstance(row, t.Row):
        return {name: plain(each) for name, each in row.asDict().items()}
    if isinstance(row, dict):
        return [(name, plain(each)) for name, each in row.items()]
    if isinstance(row, list):
        return [plain(each) for each in row]
    return bytes(row) if isinstance(row, bytearray) else row


def collected(df: DataFrame, *names: str) -> list[Any]:
    return [tuple(plain(row[name]) for name in names) for row in df.collect()]


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"value": "json", "value_schema": JSON_DDL}, "t-3 offset 15: the value"),
        ({"value": "string"}, "t-3 offset 23: the value"),
        ({"key": "long"}, "t-3 offset 10: the key"),
        ({"value": "avro", "value_schema": POINT}, "t-3 offset 10: the value"),
    ],
)
def test_an_error_names_the_offset(
    spark: SparkSession, arguments: dict[str, Any], place: str
) -> None:
    df = values.decode(frame(spark, JSON_ROWS), **arguments)
    with pytest.raises((PythonException, SparkRuntimeException)) as caught:
        df.collect()
    assert f"{place} cannot be decoded: " in str(caught.value)
    assert 'use on_error="null"' in str(caught.value)
    assert klog.error_class_of(caught.value) is klog.UndecodableError


def test_every_type_of_avro(spark: SparkSession) -> None:
    fields: list[Any] = []
    value: dict[str, Any] = {}
    names: set[str | None] = set()
    for place, (schema, datum, _, _) in enumerate(TYPES):
        name = schema.get("name") if isinstance(schema, dict) else None
        if schema != "null" and name not in names - {None} and "Item" not in json.dumps(schema):
            names.add(name)
            fields.append((f"f{place}", schema))
            value[f"f{place}"] = datum
    schema = record(*fields)
    rows = [*encoded(schema, value), None, b"\1"]
    df = values.decode(frame(spark, rows), value="avro", value_schema=schema, on_error="null")
    arrow = df.select("value").toArrow()["value"]
    assert arrow.to_pylist() == decoded(schema, rows).values.to_pylist()
    good = df.where("value_error is null").select("value")
    back = values.encode(good, value="avro", value_schema=schema).collect()
    assert [plain(row["value"]) for row in back] == rows[:2]


def test_every_type_of_protobuf(spark: SparkSession) -> None:
    from tests.values.make_vectors import shop_messages
    from tests.values.test_protobuf_values import RICH, UNSET, rich_order

    order = rich_order(shop_messages())
    order.ClearField("empty")
    rows = [order.SerializeToString(deterministic=True), b"", None, b"\xff"]
    arguments: dict[str, Any] = {
        "value": "protobuf",
        "value_schema": FOLDER / "shop.proto",
        "value_message": "shop.Order",
    }
    df = values.decode(frame(spark, rows), **arguments, on_error="null")
    arrow = df.select("value").toArrow()["value"]
    assert arrow.to_pylist() == [RICH, UNSET, None, None]
    good = df.where("value_error is null").select("value")
    back = values.encode(good, **arguments).collect()
    assert [plain(row["value"]) for row in back] == rows[:3]


def test_keys_and_values_in_one_pass(spark: SparkSession) -> None:
    rows = encoded(POINT, {"x": 1, "label": "p"})
    df = values.decode(frame(spark, [*rows]), key="integer", value="avro", value_schema=POINT)
    assert collected(df, "key", "value") == [(1, {"x": 1, "label": "p"})]
    assert df.schema["key"].dataType == t.IntegerType()
    back = values.encode(df, key="integer", value="avro", value_schema=POINT)
    assert back.columns == df.columns
    assert collected(back, "key", "value") == [(b"\0\0\0\1", rows[0])]


def test_a_registry_both_ways_and_no_secret_in_a_plan(spark: SparkSession) -> None:
    with running_registry(users={"ann": "s3cr3t"}) as server:
        registry = values.Registry(server.url, user="ann", password="s3cr3t")
        df = spark.sql("select named_struct('x', 1, 'label', 'p') value")
        rows = values.encode(df, value="avro", registry=registry, topic="t")
        df = values.decode(rows, value="avro", registry=registry, topic="t")
        assert collected(df, "value") == [({"x": 1, "label": "p"},)]
        rows = values.encode(
            df, value="json", registry=registry, topic="j", value_schema='{"type": "object"}'
        )
        assert plain(rows.first()["value"]).startswith(b"\0\0\0\0\2{")  # type: ignore[index]
        again = values.decode(rows, value="json", registry=registry, value_schema="x int")
        assert collected(again, "value") == [({"x": 1},)]
        plan = df._jdf.queryExecution().toString()
        assert "decode_avro" in plan
        assert "s3cr3t" not in plan
        assert "ann" not in plan


def test_a_registry_is_asked_once_in_a_process(spark: SparkSession) -> None:
    with running_registry() as server:
        df = spark.range(0, 1000, 1, 2).selectExpr("named_struct('x', id) value")
        rows = values.encode(df, value="avro", registry=server.url, topic="t")
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
        try:
            df = values.decode(rows, value="avro", registry=server.url, topic="t")
            assert df.selectExpr("sum(value.x)").first()[0] == 499500  # type: ignore[index]
        finally:
            spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
        count = server.requests.count("GET /schemas/ids/1")
        assert 1 <= count <= 5, "the driver's, and those of a few workers"


def test_a_stream_is_decoded(spark: SparkSession, tmp_path: Path) -> None:
    log = klog.open(tmp_path / "root")
    log.create_topic("t")
    log.append("t", pa.table({"value": encoded(POINT, {"x": 1, "label": None})}))
    stream = spark.readStream.format("klog").option("subscribe", "t")
    df = stream.option("startingOffsets", "earliest").load(str(tmp_path / "root"))
    decoded_stream = values.decode(df, value="avro", value_schema=POINT)
    query = (
        decoded_stream.select("value.x", "offset").writeStream.format("memory")
        .queryName("decoded_points").trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    assert [tuple(row) for row in spark.table("decoded_points").collect()] == [(1, 0)]
    with pytest.raises(OptionError, match="a stream has no sample"):
        values.infer_schema(df, value="json")


def test_a_schema_is_inferred_and_evolves(spark: SparkSession) -> None:
    known = values.infer_schema(frame(spark, JSON_ROWS[:1]), value="json")
    assert known.simpleString() == "struct<a:bigint,l:array<struct<x:bigint>>,s:string>"
    rows: list[bytes | None] = [b'{"a": null, "l": [{"y": 0.5}], "new": true}', b"[1]", b"x"]
    new = values.infer_schema(frame(spark, rows), value="json")
    merged = values.merge_schemas(known, new)
    assert merged.simpleString() == (
        "struct<a:bigint,l:array<struct<x:bigint,y:double>>,s:string,new:boolean>"
    )
    df = values.decode(frame(spark, rows[:1]), value="json", value_schema=merged)
    assert collected(df, "value") == [
        ({"a": None, "l": [{"x": None, "y": 0.5}], "s": None, "new": True},)
    ]


@pytest.mark.parametrize(
    ("known", "new", "merged"),
    [
        ("a int", "a bigint", "struct<a:int>"),
        ("a double", "a bigint", "struct<a:double>"),
        ("a decimal(9,2)", "a double", "struct<a:decimal(9,2)>"),
        ("a date", "a string", "struct<a:date>"),
        ("m map<string,int>", "m struct<k:bigint>", "struct<m:map<string,int>>"),
        ("a int", "b string", "struct<a:int,b:string>"),
        ("a bigint", "a double", "field a: its type was bigint, and is now double"),
        ("a string", "a bigint", "struct<a:string>"),
        ("r struct<x:int>", "r struct<x:string>", "field r.x: its type was int"),
        ("l array<int>", "l array<string>", r"field l\[\]: its type was int"),
    ],
)
def test_schemas_are_merged(spark: SparkSession, known: str, new: str, merged: str) -> None:
    types: Any = t.StructType.fromDDL(known), t.StructType.fromDDL(new)
    if merged.startswith("struct"):
        assert values.merge_schemas(*types).simpleString() == merged
    else:
        with pytest.raises(SchemaError, match=merged):
            values.merge_schemas(*types)
        assert values.merge_schemas(*types, on_change="keep") == types[0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"value": "jsn"}, OptionError, "Did you mean json"),
        ({}, OptionError, "set the format of one of them"),
        ({"value": "json"}, OptionError, "json needs a schema"),
        ({"value": "json", "value_schema": "a ??"}, SchemaError, "neither DDL nor a JSON Schema"),
        ({"value": "long", "on_error": "drop"}, OptionError, "on_error: must be fail or null"),
        ({"key": "avro", "registry": "http://h"}, OptionError, "key_subject: is missing"),
    ],
)
def test_wrong_arguments(
    spark: SparkSession, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        values.decode(frame(spark, [b"x"]), **arguments)


def test_wrong_columns(spark: SparkSession) -> None:
    df = spark.sql("select 1 value, 2 value_error")
    with pytest.raises(OptionError, match="key: there is no such column"):
        values.decode(df, key="long")
    with pytest.raises(OptionError, match="value_error: the rows have such a column"):
        values.decode(df, value="bytes", on_error="null")
    with pytest.raises(OptionError, match="json encodes a struct"):
        values.encode(df, value="json")
