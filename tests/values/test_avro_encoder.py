"""Arrow to Avro: what fastavro writes of the same values, and what is refused."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from klog.errors import SchemaError
from klog.values.avro_decoder import AvroDecoder
from klog.values.avro_derived_schema import derived_avro_schema
from klog.values.avro_encoder import AvroEncoder
from klog.values.avro_schema import load_avro_schema
from tests.values.avro_rows import decoded, encoded, record
from tests.values.test_avro_decoder import TYPES


@pytest.mark.parametrize(("schema", "value", "arrow_type", "expected"), TYPES)
def test_a_type_is_encoded(schema: Any, value: Any, arrow_type: pa.DataType, expected: Any) -> None:
    inside = record(("f", schema))
    rows = encoded(inside, {"f": value})
    values = decoded(inside, [*rows, None]).values
    data = AvroEncoder(load_avro_schema(inside), b"prefix").encode_array(values)
    assert data.to_pylist() == [b"prefix" + rows[0], None]


ALL = record(
    ("i", ["null", "int"]), ("f", ["null", "float"]), ("l", ["null", "double"]),
    ("d", ["null", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}]),
    ("t", ["null", {"type": "long", "logicalType": "timestamp-micros"}]),
    ("day", ["null", {"type": "int", "logicalType": "date"}]), ("b", ["null", "boolean"]),
    ("e", ["null", {"type": "enum", "name": "E", "symbols": ["A"]}]),
    ("x", ["null", {"type": "fixed", "name": "F", "size": 2}]),
    ("u", ["null", "int", "string"]),
    ("r", ["null", {"type": "array", "items": record(("n", "int"), name="N")}]),
    ("m", ["null", {"type": "map", "values": "int"}]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("i", pa.array([2**40]), "i: a value of int64 does not fit int32"),
        ("i", pa.array(["5"]), "i: string does not fit int32. Cast the column"),
        ("i", pa.array([1.5]), "i: a value of double does not fit int32"),
        ("i", pa.array([True]), "i: bool does not fit int32"),
        ("f", pa.array([1e300]), "f: a value of double does not fit float"),
        ("f", pa.array([Decimal("0.1")]), "f: decimal128(1, 1) does not fit float. Cast"),
        ("l", pa.array([2**60 + 1]), "l: a value of int64 does not fit double"),
        ("d", pa.array([1.255]), "d: double does not fit decimal128(5, 2)"),
        ("d", pa.array([Decimal("1.255")]), "d: a value of decimal128(4, 3) does not fit"),
        ("d", pa.array([1000]), "d: a value of decimal256(76, 2) does not fit decimal128(5, 2)"),
        ("t", pa.array([5]), "t: int64 does not fit timestamp[us, tz=UTC]"),
        ("t", pa.array([5], pa.timestamp("us")), "t: timestamp[us] does not fit"),
        ("t", pa.array([5], pa.timestamp("ns", "UTC")), "t: a value of timestamp[ns, tz=UTC]"),
        ("day", pa.array([5], pa.timestamp("us")), "day: timestamp[us] does not fit date32"),
        ("b", pa.array([5]), "b: int64 does not fit bool"),
        ("e", pa.array(["SECRET"]), "R.e does not fit enum"),
        ("x", pa.array([b"SECRET"]), "R.x does not fit fixed"),
        ("u", pa.array([{"member0": None}], pa.struct([("member0", pa.int32())])), "R.u"),
        ("r", pa.array([[{"n": 2**40}]]), "r[].n: a value of int64 does not fit int32"),
        ("r", pa.array([[{"n": 1, "q": 2}]]), "r[]: the schema has no field q. It has n"),
        ("r", pa.array([[{"n": None}]], pa.list_(pa.struct([("n", pa.int32())]))), "R.r.N.n"),
        ("m", pa.array([[("SECRET", 2**40)]], pa.map_(pa.string(), pa.int64())), "m{}: a value"),
        ("zz", pa.array([1]), "the schema has no field zz. It has i, f, "),
    ],
)
def test_what_does_not_fit_is_an_error(field: str, values: pa.Array, message: str) -> None:
    struct = pa.StructArray.from_arrays([values], [field])
    with pytest.raises(SchemaError) as caught:
        AvroEncoder(load_avro_schema(ALL)).encode_array(struct)
    assert str(caught.value).startswith(f"avro: {message}")
    assert "SECRET" not in str(caught.value)


def test_a_column_of_other_types_that_fit() -> None:
    values = pa.array(
        [
            {"i": 5, "d": 5, "r": [{"n": 1}], "m": [("k", 1)], "t": 5000, "f": 0.1},
            {"i": None, "d": None, "r": None, "m": None, "t": None, "f": None},
        ],
        pa.struct(
            [
                ("i", pa.int64()), ("d", pa.int64()),
                ("r", pa.large_list(pa.struct({"n": pa.int64()}))),
                ("m", pa.map_(pa.large_string(), pa.int64())), ("t", pa.timestamp("ns", "UTC")),
                ("f", pa.float64()),
            ]
        ),
    )  # fmt: skip
    for sliced in (values, values[1:]):
        data = AvroEncoder(load_avro_schema(ALL)).encode_array(sliced)
        rows = decoded(ALL, data.to_pylist()).values.to_pylist()
        assert [row["i"] for row in rows] == [5, None][-len(rows) :]
        assert [row["r"] for row in rows] == [[{"n": 1}], None][-len(rows) :]
        assert [row["m"] for row in rows] == [[("k", 1)], None][-len(rows) :]
        assert [row["d"] for row in rows] == [Decimal("5.00"), None][-len(rows) :]


def test_a_field_with_a_default_is_left_out() -> None:
    schema = record(("a", "int"), {"name": "b", "type": "string", "default": "d"})
    data = AvroEncoder(load_avro_schema(schema)).encode_array(pa.array([{"a": 1}]))
    assert data.to_pylist() == encoded(schema, {"a": 1, "b": "d"})


def test_a_default_of_each_kind_is_written() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    fields = [
        ("b", "bytes", "\u00ff", b"\xff"), ("d", decimal, "\u0001", Decimal("0.01")),
        ("u", ["int", "string"], 5, {"member0": 5, "member1": None}),
    ]  # fmt: skip
    schema = record(
        ("a", "int"), *({"name": n, "type": kind, "default": json} for n, kind, json, _ in fields)
    )
    data = AvroEncoder(load_avro_schema(schema)).encode_array(pa.array([{"a": 1}]))
    (row,) = decoded(schema, data.to_pylist()).values.to_pylist()
    assert row == {"a": 1, **{name: value for name, _, _, value in fields}}


def test_a_derived_schema_has_the_type_of_the_column() -> None:
    arrow_type = pa.struct(
        [
            ("b", pa.bool_()), ("i", pa.int32()), ("l", pa.int64()), ("f", pa.float32()),
            ("d", pa.float64()), ("s", pa.string()), ("r", pa.binary()), ("day", pa.date32()),
            ("t", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us")), ("at", pa.time64("us")),
            ("x", pa.decimal128(9, 2)), ("m", pa.map_(pa.string(), pa.int64())),
            ("a", pa.list_(pa.struct([("s", pa.struct([("q", pa.string())]))]))),
        ]
    )  # fmt: skip
    schema = load_avro_schema(derived_avro_schema(arrow_type))
    assert AvroDecoder(schema).arrow_type == arrow_type
    values = pa.array([{"a": [{"s": {"q": "x"}}, None]}, {}, None], arrow_type)
    data = AvroEncoder(schema).encode_array(values)
    assert AvroDecoder(schema).decode_array(data).values.equals(values)


def _struct(*fields: tuple[str, pa.DataType]) -> pa.DataType:
    return pa.struct(list(fields))


_X = _struct(("x", pa.int64()))


@pytest.mark.parametrize(
    ("arrow_type", "names"),
    [
        (_struct(("a", _struct(("b", _X))), ("c_d", _X)), ["_a", "_a_b", "_c_d"]),
        (_struct(("a_b", _X), ("a", _struct(("b", _X)))), ["_a_b", "_a", "_a_b_2"]),
        (_struct(("a", _struct(("b", _X))), ("a_b", _X)), ["_a", "_a_b", "_a_b_2"]),
        (_struct(("a", pa.list_(_X)), ("a_element", _X)), ["_a_element", "_a_element_2"]),
        (
            _struct(("m", pa.map_(pa.string(), _X)), ("m_value_2", _X), ("m_value", _X)),
            ["_m_value", "_m_value_2", "_m_value_3"],
        ),
        (
            _struct(("a_b", _struct(("c", _X))), ("a", _struct(("b", _struct(("c", _X)))))),
            ["_a_b", "_a_b_c", "_a", "_a_b_2", "_a_b_2_c"],
        ),
    ],
)
def test_the_names_of_a_derived_schema_are_unique(
    arrow_type: pa.DataType, names: list[str]
) -> None:
    text = derived_avro_schema(arrow_type)
    assert re.findall(r'"name": "topLevelRecord(_\w+)"', text) == names
    schema = load_avro_schema(text)
    assert AvroDecoder(schema).arrow_type == arrow_type
    values = pa.nulls(1, arrow_type)
    assert AvroDecoder(schema).decode_array(AvroEncoder(schema).encode_array(values)).values == (
        values
    )


def test_the_names_of_unions_are_unique() -> None:
    """fastavro writes a branch of a union as a record, whose name must not be another one's."""
    union = ["int", "string"]
    schema = record(
        ("a_b", union), ("x", record(("b", union), name="R_a")),
        ("f", {"type": "map", "values": union}), ("f_values", union),
        ("y", record(("n", "int"), name="klog_R_f_values_int")),
    )  # fmt: skip
    row = {"a_b": 1, "x": {"b": "t"}, "f": {"k": 2}, "f_values": "u", "y": {"n": 3}}
    data = encoded(schema, row)
    values = decoded(schema, data).values
    assert AvroEncoder(load_avro_schema(schema)).encode_array(values).to_pylist() == data


@pytest.mark.parametrize(
    "arrow_type", [pa.struct([("a-b", pa.int32())]), pa.duration("us"), pa.list_(pa.uint64())]
)
def test_a_type_without_a_schema(arrow_type: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"no type of Avro|not a name of Avro"):
        derived_avro_schema(arrow_type)


def test_items_of_rows_that_are_not_encoded() -> None:
    """A slice has the items of all rows below it."""
    schema = load_avro_schema(record(("r", {"type": "array", "items": "int"})))
    rows = pa.StructArray.from_arrays([pa.array([[1], [2**40]])], names=["r"])
    encoder = AvroEncoder(schema)
    assert encoder.encode_array(rows[:1]) == encoder.encode_array(pa.array([{"r": [1]}]))


def test_null_is_not_the_type_that_does_not_fit() -> None:
    kind = {"type": "enum", "name": "E", "symbols": ["A"]}
    encoder = AvroEncoder(load_avro_schema(record(("e", [kind, "null"]))))
    with pytest.raises(SchemaError, match=r"R\.e does not fit enum"):
        encoder.encode_array(pa.array([{"e": "B"}]))
