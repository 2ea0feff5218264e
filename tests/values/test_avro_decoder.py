"""Avro to Arrow: the table of types, what is refused, and that one row never spoils another."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import SchemaError
from klog.values.avro_decoder import AvroDecoder
from klog.values.avro_schema import load_avro_schema
from tests.values.avro_rows import decoded, encoded, record
from tests.values.value_schemas import AVRO

UTC = datetime.timezone.utc
TIME = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001 - local-timestamp
ITEM = record(("sku", "string"), name="Item")
DECIMAL = {"logicalType": "decimal", "precision": 5, "scale": 2}


def logical(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "logicalType": name}


def nested_maps(levels: int) -> Any:
    return {"type": "map", "values": nested_maps(levels - 1)} if levels else "int"


def doubling_records(levels: int) -> Any:
    """Return a small schema of records that each have the one before it twice."""
    schema: Any = "int"
    for level in range(levels):
        named = schema if isinstance(schema, str) else schema["name"]
        schema = record(("a", schema), ("b", named), name=f"L{level}")
    return schema


TYPES: list[tuple[Any, Any, pa.DataType, Any]] = [
    ("null", None, pa.null(), None),
    ("boolean", True, pa.bool_(), True),
    ("int", -5, pa.int32(), -5),
    ("long", 2**62, pa.int64(), 2**62),
    ("float", 1.5, pa.float32(), 1.5),
    ("double", 0.1, pa.float64(), 0.1),
    ("bytes", b"\xff", pa.binary(), b"\xff"),
    ("string", "Zoë", pa.string(), "Zoë"),
    ({"type": "fixed", "name": "F", "size": 2}, b"ab", pa.binary(), b"ab"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", pa.string(), "B"),
    ({"type": "array", "items": "int"}, [1, 2], pa.list_(pa.int32()), [1, 2]),
    ({"type": "map", "values": "int"}, {"a": 1}, pa.map_(pa.string(), pa.int32()), [("a", 1)]),
    (ITEM, {"sku": "s"}, pa.struct([("sku", pa.string())]), {"sku": "s"}),
    (["null", "int"], None, pa.int32(), None),
    (["int", "null"], 5, pa.int32(), 5),
    (["int", "long"], 2**40, pa.int64(), 2**40),
    (["float", "null", "double"], 0.5, pa.float64(), 0.5),
    (["int", "string"], "s", pa.struct([("member0", pa.int32()), ("member1", pa.string())]),
     {"member0": None, "member1": "s"}),
    (["null", "string", ITEM], {"sku": "s"},
     pa.struct([("member0", pa.string()), ("member1", pa.struct([("sku", pa.string())]))]),
     {"member0": None, "member1": {"sku": "s"}}),
    (logical("int", "date"), datetime.date(1969, 12, 31), pa.date32(), datetime.date(1969, 12, 31)),
    (logical("int", "time-millis"), datetime.time(1, 2, 3, 4000), pa.time64("us"),
     datetime.time(1, 2, 3, 4000)),
    (logical("long", "time-micros"), datetime.time(1, 2, 3, 4), pa.time64("us"),
     datetime.time(1, 2, 3, 4)),
    (logical("long", "timestamp-millis"), TIME.replace(tzinfo=UTC), pa.timestamp("us", "UTC"),
     TIME.replace(tzinfo=UTC)),
    (logical("long", "timestamp-micros"), TIME.replace(tzinfo=UTC), pa.timestamp("us", "UTC"),
     TIME.replace(tzinfo=UTC)),
    (logical("long", "local-timestamp-millis"), TIME, pa.timestamp("us"), TIME),
    (logical("long", "local-timestamp-micros"), TIME, pa.timestamp("us"), TIME),
    (logical("long", "timestamp-nanos"), 7, pa.int64(), 7),
    (logical("string", "uuid"), "123e4567-e89b-12d3-a456-426614174000", pa.string(),
     "123e4567-e89b-12d3-a456-426614174000"),
    ({"type": "bytes", **DECIMAL}, Decimal("-1.25"), pa.decimal128(5, 2), Decimal("-1.25")),
    ({"type": "fixed", "name": "D", "size": 4, **DECIMAL}, Decimal("9.99"), pa.decimal128(5, 2),
     Decimal("9.99")),
    ({"type": "fixed", "name": "P", "size": 12, "logicalType": "duration"}, b"x" * 12, pa.binary(),
     b"x" * 12),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "arrow_type", "expected"), TYPES)
def test_a_type(schema: Any, value: Any, arrow_type: pa.DataType, expected: Any) -> None:
    """Decode it as the whole datum, and as a field after which another one comes."""
    rows = encoded(schema, value)
    result = decoded(schema, [rows[0], None])
    assert (result.values.type, result.values.to_pylist()) == (arrow_type, [expected, None])
    assert not result.has_errors
    inside = record(("f", schema), ("after", "long"))
    result = decoded(inside, encoded(inside, {"f": value, "after": 7}, {"f": value, "after": 8}))
    assert result.values.field("f").to_pylist() == [expected] * 2
    assert result.values.field("after").to_pylist() == [7, 8]


def test_a_row_never_spoils_another() -> None:
    schema = record(("name", "string"), ("number", "long"))
    rows = encoded(schema, *({"name": "n" * size, "number": size} for size in range(5)))
    bad = [rows[0], rows[1] + b"\0", rows[2][:-1], b"", None, b"\xff" * 20, rows[4]]
    result = decoded(schema, bad)
    assert result.values.to_pylist() == [
        {"name": "", "number": 0}, None, None, None, None, None, {"name": "nnnn", "number": 4}
    ]  # fmt: skip
    assert [reason is not None for reason in result.reasons.to_pylist()] == [
        False, True, True, True, False, True, False
    ]  # fmt: skip


def test_two_errors_do_not_make_up_for_each_other() -> None:
    """A row too long and one too short have as many bytes together as two good ones."""
    schema = record(("name", "string"))
    first, second = encoded(schema, {"name": "ab"}, {"name": "cd"})
    result = decoded(schema, [first + second[:1], second[1:]])
    assert result.values.to_pylist() == [None, None]
    result = decoded(schema, [first + second, b"", first])
    assert result.values.to_pylist() == [None, None, {"name": "ab"}]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("int", 2**40),
        (logical("long", "timestamp-millis"), 2**62),
        (logical("int", "time-millis"), 86_400_000),
        (logical("long", "time-micros"), 86_400_000_000),
        (logical("long", "time-micros"), -1),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, -1),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, 2),
        (["null", "int"], -2),
        (["null", "int"], 2),
        ({"type": "bytes", **DECIMAL}, 0),
    ],
)
def test_a_value_beyond_its_type_is_a_reason(schema: Any, value: int) -> None:
    is_bytes = isinstance(schema, dict) and schema["type"] == "bytes"
    data = encoded("bytes", b"\x7f" * 8) if is_bytes else encoded("long", value)
    result = decoded(schema, [data[0], None])
    assert result.values.to_pylist() == [None, None]
    assert result.reasons[0].is_valid
    assert not result.reasons[1].is_valid


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (record(("next", ["null", "R"])), r"R\.next\.R: R contains itself"),
        (nested_maps(101), "100 levels"),
        (doubling_records(20), "more than 10000 fields"),
        ({"type": "array", "items": "null"}, "items without bytes"),
        ({"type": "array", "items": record(("f", record(name="Nothing")))}, "items without bytes"),
        ({"type": "bytes", **DECIMAL, "precision": 39}, "decimal with precision 39"),
        ({"type": "bytes", **DECIMAL, "scale": 6}, "scale must be less"),
        ({"type": "record"}, "invalid schema"),
        (record(("f", "Unknown")), "invalid schema"),
        ([["int"]], "union"),
        (7, "invalid schema"),
        (record(("\ud800", "int")), "invalid schema"),
        (record(("f", ["int", "int"])), "R.f: a union has the same type twice"),
        (record(("f", logical("int", {}))), "invalid schema"),  # type: ignore[arg-type]
    ],
)
def test_a_schema_is_refused(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        decoded(schema, [])


def test_a_schema_that_is_not_json() -> None:
    with pytest.raises(SchemaError, match="the schema is not JSON"):
        load_avro_schema("{")
    assert load_avro_schema("string").types().final == pa.string()


def test_a_named_type_is_used_twice() -> None:
    schema = record(("a", ITEM), ("b", "Item"), ("c", {"type": "array", "items": "Item"}))
    value = {"a": {"sku": "1"}, "b": {"sku": "2"}, "c": [{"sku": "3"}]}
    assert decoded(schema, encoded(schema, value)).values.to_pylist() == [value]


VARIED_DECODER = AvroDecoder(load_avro_schema(AVRO))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=60), max_size=6))
def test_any_bytes_decode_or_have_a_reason(rows: list[bytes | None]) -> None:
    result = VARIED_DECODER.decode_array(pa.array(rows, pa.binary()))
    result.values.validate(full=True)
    for row, value, reason in zip(
        rows, result.values.is_valid().to_pylist(), result.reasons.to_pylist(), strict=True
    ):
        assert value == (row is not None and reason is None)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_changed_byte_changes_only_its_row(data: st.DataObject) -> None:
    value = {
        "l": 5, "s": "text", "u": {"sku": "s"}, "b": b"\0\1", "a": [{"k": 1.5, "n": None}],
        "d": Decimal("1.25"), "t": TIME.replace(tzinfo=UTC), "e": "B", "f": 0.5,
        "at": 5, "day": 1, "ok": True,
    }  # fmt: skip
    (row,) = encoded(AVRO, value)
    changed = bytearray(row)
    changed[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.integers(0, 255))
    alone = VARIED_DECODER.decode_array(pa.array([bytes(changed)]))
    result = VARIED_DECODER.decode_array(pa.array([row, bytes(changed), row]))
    good = VARIED_DECODER.decode_array(pa.array([row])).values
    assert result.values[0::2].equals(pa.concat_arrays([good, good]))
    assert result.reasons[1:2].is_valid().equals(alone.reasons.is_valid())
    assert str(result.values[1]) == str(alone.values[0])
