"""Arrow to Avro: what fastavro writes of the same values, and what is refused."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([{"a": 2**40}]), "does not fit int32"),
        (pa.array([{"a": 1, "c": 2}]), "the schema has no field c. It has a, b"),
        (pa.array([{"a": None}], pa.struct([("a", pa.int32())])), "does not fit the schema"),
        (pa.array([{"b": "x"}]), "does not fit the schema"),
        (pa.array([{"a": "x"}]), "string does not fit int32"),
    ],
)
def test_what_does_not_fit_is_an_error(values: pa.Array, message: str) -> None:
    schema = record(("a", "int"), {"name": "b", "type": "string", "default": "d"})
    with pytest.raises(SchemaError, match=message):
        AvroEncoder(load_avro_schema(schema)).encode_array(values)


def test_a_field_with_a_default_is_left_out() -> None:
    schema = record(("a", "int"), {"name": "b", "type": "string", "default": "d"})
    data = AvroEncoder(load_avro_schema(schema)).encode_array(pa.array([{"a": 1}]))
    assert data.to_pylist() == encoded(schema, {"a": 1, "b": "d"})


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


@pytest.mark.parametrize(
    "arrow_type", [pa.struct([("a-b", pa.int32())]), pa.duration("us"), pa.list_(pa.uint64())]
)
def test_a_type_without_a_schema(arrow_type: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"no type of Avro|not a name of Avro"):
        derived_avro_schema(arrow_type)
