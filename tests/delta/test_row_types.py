"""Which tables can hold which rows."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from klog.errors import OptionError, SchemaError
from klog.jobs.copying_to_delta.batch_writer import BatchWriter
from klog.jobs.copying_to_delta.row_types import changed_types, missing_fields, unsupported_types

pytestmark = [pytest.mark.delta, pytest.mark.usefixtures("delta_spark")]
"""The session parses the types."""

HELD = [
    ("v int", "v int"),
    ("v tinyint", "v bigint"),
    ("v int", "v double"),
    ("v smallint", "v float"),
    ("v float", "v double"),
    ("v bigint", "v decimal(19,0)"),
    ("v int", "v decimal(12,2)"),
    ("v decimal(9,2)", "v decimal(11,3)"),
    ("v void", "v date"),
    ("V struct<A: int>", "v struct<a: bigint, b: string>"),
    ("v array<struct<a: int>>", "v array<struct<a: bigint>>"),
    ("v map<int, float>", "v map<bigint, double>"),
]
CHANGED = [
    ("v bigint", "v int", "v is int, and bigint in the rows"),
    ("v double", "v int", "v is int, and double in the rows"),
    ("v double", "v float", "v is float, and double in the rows"),
    ("v bigint", "v double", "v is double, and bigint in the rows"),
    ("v int", "v float", "v is float, and int in the rows"),
    ("v bigint", "v decimal(18,0)", "v is decimal(18,0), and bigint in the rows"),
    ("v int", "v decimal(10,1)", "v is decimal(10,1), and int in the rows"),
    ("v decimal(9,3)", "v decimal(11,2)", "v is decimal(11,2), and decimal(9,3) in the rows"),
    ("v decimal(11,2)", "v decimal(11,3)", "v is decimal(11,3), and decimal(11,2) in the rows"),
    ("v double", "v decimal(38,9)", "v is decimal(38,9), and double in the rows"),
    ("v int", "v string", "v is string, and int in the rows"),
    ("v date", "v timestamp", "v is timestamp, and date in the rows"),
    ("v timestamp_ntz", "v timestamp", "v is timestamp, and timestamp_ntz in the rows"),
    ("v struct<a: int>", "v int", "v is int, and struct<a:int> in the rows"),
    ("v struct<A: double>", "v struct<a: int>", "v.A is int, and double in the rows"),
    ("v array<double>", "v array<int>", "v.element is int, and double in the rows"),
    ("v map<string, double>", "v map<string, int>", "v.value is int, and double in the rows"),
    ("v map<string, int>", "v map<int, int>", "v.key is int, and string in the rows"),
]


def columns(ddl: str) -> StructType:
    parsed = StructType.fromDDL(ddl)
    assert isinstance(parsed, StructType)
    return parsed


def test_each_reason_to_refuse_a_table() -> None:
    """One test, so that CI runs them all."""
    keyed = "topic string, partition int, offset bigint, timestamp timestamp, key string"
    for rows, table, mode, error, message in [
        ("v interval year", "v string", "append", SchemaError, "Delta has no such type"),
        ("v string", "v int", "append", SchemaError, "its v is int, and string in the rows"),
        (keyed, keyed[:-12], "upsert", OptionError, "upsert needs its column key"),
        (f"{keyed}, v int", keyed, "upsert", OptionError, "it has no v. Give --merge-schema"),
    ]:
        writer = BatchWriter("lake.orders", mode, merge_schema=False)
        with pytest.raises(error, match=f"table lake.orders: .*{message}"):
            writer.check_columns(columns(rows), columns(table))
    adding = BatchWriter("lake.orders", "append", merge_schema=True)
    adding.check_columns(columns("v int, w int"), columns("v int"))


@pytest.mark.parametrize(("rows", "table"), HELD)
def test_types_that_a_table_holds(rows: str, table: str) -> None:
    assert list(changed_types(StructType.fromDDL(rows), StructType.fromDDL(table))) == []


@pytest.mark.parametrize(("rows", "table", "message"), CHANGED)
def test_types_that_a_table_does_not_hold(rows: str, table: str, message: str) -> None:
    changed = changed_types(StructType.fromDDL(rows), StructType.fromDDL(table))
    assert list(changed) == [message]


def test_fields_that_a_table_does_not_have() -> None:
    rows = StructType.fromDDL(
        "a int, new int, s struct<a: int, new: int>, l array<struct<new: int>>, "
        "m map<string, struct<new: int>>"
    )
    table = StructType.fromDDL(
        "A int, S struct<A: int, old: int>, l array<struct<a: int>>, m map<string, struct<a: int>>"
    )
    missing = ["new", "s.new", "l.element.new", "m.value.new"]
    assert list(missing_fields(rows, table)) == missing


def test_types_that_delta_does_not_have() -> None:
    rows = StructType.fromDDL(
        "a int, t time(6), s struct<i: interval day to second>, l array<interval year to month>"
    )
    assert list(unsupported_types(rows)) == [
        "t is time(6)",
        "s.i is interval day to second",
        "l.element is interval year to month",
    ]
