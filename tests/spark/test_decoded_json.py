"""JSON of DataFrames: each type as without Spark, and encoded without a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as t

from klog import values
from klog.values.json_decoder import JsonDecoder
from tests.spark.test_decoded_columns import (
    JSON_DDL,
    JSON_ROWS,
    JSON_TYPE,
    collected,
    frame,
    plain,
)
from tests.values.json_cases import BAD, JSON_CASES, ROOT_TYPES, TYPES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_json_is_what_the_arrow_decoder_reads(spark: SparkSession) -> None:
    df = values.decode(
        frame(spark, JSON_ROWS), value="json", value_schema=JSON_DDL, on_error="null"
    )
    assert df.columns == ["topic", "partition", "offset", "key", "value", "value_error"]
    result = JsonDecoder(JSON_TYPE).decode_array(pa.array(JSON_ROWS))
    rows = collected(df, "value", "value_error")
    assert [value for value, _ in rows] == result.values.to_pylist()
    has_reason = result.reasons.is_valid().to_pylist()
    assert [reason is not None for _, reason in rows] == has_reason
    assert [row["offset"] for row in df.collect()] == list(range(10, 10 + len(JSON_ROWS)))


def test_each_json_text_and_type(spark: SparkSession) -> None:
    """One column for all cases, each row in the field of its type."""
    names = {name: f"f{place}" for place, name in enumerate(TYPES)}
    ddl = ", ".join(f"{field} {name}" for name, field in names.items())
    rows: list[bytes | None] = [
        f'{{"{names[case.type_name]}": {case.text}}}'.encode() for case in JSON_CASES
    ]
    df = values.decode(frame(spark, rows), value="json", value_schema=ddl, on_error="null")
    decoded = df.select("value", "value_error").toArrow().to_pylist()
    for case, row in zip(JSON_CASES, decoded, strict=True):
        assert (row["value_error"] is not None) == (case.spark_value == BAD), case
        if row["value"] is not None:
            assert row["value"][names[case.type_name]] == case.spark_value, case
        else:
            assert case.spark_value == BAD, case


def test_a_json_value_that_is_no_struct(spark: SparkSession) -> None:
    cases = [case for case in JSON_CASES if case.type_name in ROOT_TYPES]
    rows: list[bytes | None] = [case.text.encode() for case in cases]
    more: list[bytes | None] = [b"\n null\t", b"", b"{", b"[1] x", None]
    for name in ROOT_TYPES:
        places = [place for place, case in enumerate(cases) if case.type_name == name]
        places += range(len(rows), len(rows) + len(more))
        df = frame(spark, rows + more).where(F.col("offset").isin([10 + each for each in places]))
        schema: Any = t.StructType.fromDDL(f"f {name}")
        df = values.decode(df, value="json", value_schema=schema[0].dataType, on_error="null")
        decoded = df.select("value", "value_error").toArrow().to_pylist()
        expected = [case.spark_value for case in cases if case.type_name == name]
        expected += [None, BAD, BAD, BAD, None]
        assert [BAD if row["value_error"] else row["value"] for row in decoded] == expected, name


@pytest.mark.parametrize("schema", [JSON_TYPE, pa.schema(JSON_TYPE), "type", "json schema"])
def test_schemas_of_json(spark: SparkSession, schema: Any) -> None:
    if schema == "type":
        schema = t.StructType().add("a", t.LongType())
    if schema == "json schema":
        schema = '{"properties": {"a": {"type": "integer"}}}'
    df = values.decode(frame(spark, JSON_ROWS[:4]), value="json", value_schema=schema)
    assert [row["value"] and row["value"]["a"] for row in df.collect()] == [1, None, None, None]


def test_json_keeps_microseconds_and_nulls(spark: SparkSession) -> None:
    df = spark.sql(
        "select named_struct('t', timestamp'2026-01-02T03:04:05.678901+01:00', 'n', "
        "timestamp_ntz'2026-01-02T03:04:05.000001', 'gone', cast(null as int), "
        "'r', named_struct('gone', cast(null as string))) value"
    )
    df = values.encode(df, value="json").union(spark.sql("select cast(null as binary)"))
    assert [row["value"] and plain(row["value"]).decode() for row in df.collect()] == [
        '{"t":"2026-01-02T02:04:05.678901Z","n":"2026-01-02T03:04:05.000001","gone":null,'
        '"r":{"gone":null}}',
        None,
    ]
