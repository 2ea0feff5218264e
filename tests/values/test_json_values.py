"""JSON to Arrow: by a type, by a JSON Schema, and by what a sample of rows has."""

from __future__ import annotations

import datetime
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import OptionError, SchemaError
from klog.values.column_format import ColumnFormat, make_decoder
from klog.values.confluent_framing import prefix
from klog.values.json_decoder import JsonDecoder, json_rows
from klog.values.json_inference import MAX_FIELDS, inferred_type
from klog.values.json_schema import json_schema_type
from klog.values.registry_settings import Registry
from tests.support.schema_registry import SchemaRegistry
from tests.values.json_cases import BAD, JSON_CASES, TYPES

TYPE = pa.struct(
    [
        ("i", pa.int64()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.bool_()),
        ("t", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("d", pa.decimal128(9, 2)),
        ("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.float64())),
        ("r", pa.struct([("x", pa.int64())])),
    ]
)  # fmt: skip
FULL = (
    b'{"i": 1, "f": 2, "s": "Zo\xc3\xab", "b": true, "t": "2026-01-02T03:04:05.5+01:00",'
    b' "day": "1969-12-31", "d": 1.25, "m": {"k": 1},'
    b' "l": [1, null], "r": {"x": 5, "y": 6}, "other": [{}]}'
)
NOTHING = dict.fromkeys(TYPE.names)


def values_of(*rows: bytes | None, arrow_type: pa.DataType = TYPE) -> tuple[list[Any], list[Any]]:
    decoder = pickle.loads(pickle.dumps(JsonDecoder(arrow_type)))
    result = decoder.decode_array(pa.array(rows, pa.binary()))
    result.values.validate(full=True)
    return result.values.to_pylist(), result.reasons.to_pylist()


def test_every_type() -> None:
    values, reasons = values_of(FULL, b"{}", None, b"null", b"  {} \n")
    assert reasons == [None] * 5
    assert values == [
        {"i": 1, "f": 2.0, "s": "Zoë", "b": True, "day": datetime.date(1969, 12, 31),
         "t": datetime.datetime(2026, 1, 2, 2, 4, 5, 500000, datetime.timezone.utc),
         "d": Decimal("1.25"), "l": [1, None], "m": [("k", 1.0)], "r": {"x": 5}},
        NOTHING, None, None, NOTHING,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [
        b"", b"{", b"{}{}", b"{} x", b"[1]", b"5", b'{"i": "1"}', b'{"i": 1.5}', b'{"b": 1}',
        b'{"i": 9223372036854775808}', b'{"f": NaN}', b'{"f": -Infinity}', b'{"t": "yesterday"}',
        b'{"t": 5}', b'{"d": 1.255}', b'{"s": "\xff"}', b'{"s": "\\ud800"}', b"{'i': 1}",
        b'{"l": {}}', b'{"m": [1]}', b'{"r": []}', b"[" * 100_000, b'{"i":' + b"9" * 5000 + b"}",
        b"\xff\xfe{\0}\0", b"\xef\xbb\xbf{}",
    ],
)  # fmt: skip
def test_a_bad_row_is_null_with_a_reason(row: bytes) -> None:
    values, reasons = values_of(b'{"i": 1}', row, b'{"i": 2}')
    assert values == [{**NOTHING, "i": 1}, None, {**NOTHING, "i": 2}]
    assert reasons[0] is reasons[2] is None
    assert reasons[1]


@pytest.mark.parametrize("type_name", TYPES)
def test_each_text_and_type(type_name: str) -> None:
    cases = [case for case in JSON_CASES if case.type_name == type_name]
    expected = [(None, True) if case.value == BAD else (case.value, False) for case in cases]
    for rows, arrow_type in (
        ([f'{{"f": {case.text}}}' for case in cases], pa.struct([("f", TYPES[type_name])])),
        ([case.text for case in cases], TYPES[type_name]),
    ):
        values, reasons = values_of(*map(str.encode, rows), arrow_type=arrow_type)
        if pa.types.is_struct(arrow_type) and rows[0] != cases[0].text:
            values = [value and value["f"] for value in values]
        assert [
            (value, reason is not None) for value, reason in zip(values, reasons, strict=True)
        ] == expected


def test_a_reason_names_the_field_and_no_value() -> None:
    rows = (
        b'{"l": [1, true]}', b'{"m": {"k": "secret"}}', b'{"r": {"x": 1.5}}', b'{"t": "secret"}',
        b'{"r": [1]}', b'{"i": 9223372036854775808}', b"5", b'{"s": "\\ud800"}', b'{"f": true}',
    )  # fmt: skip
    assert values_of(*rows)[1] == [
        "json: l[]: is a boolean, not an integer",
        "json: m{}: is a string, not a number",
        "json: r.x: is a number with a fraction, not an integer",
        "json: t: does not fit timestamp[us, tz=UTC]",
        "json: r: is an array, not an object",
        "json: i: does not fit int64",
        "json: is a number, not an object",
        "json: s: does not fit string",
        "json: f: is a boolean, not a number",
    ]


@pytest.mark.parametrize(
    "arrow_type", [pa.binary(), pa.map_(pa.int64(), pa.int64()), pa.time64("us"), pa.duration("us")]
)
def test_a_type_that_json_does_not_have(arrow_type: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"json: "):
        JsonDecoder(pa.struct([("f", arrow_type)]))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=30) | st.from_regex(rb'\{"[ifs]": *[0-9"]{0,9}\}')))
def test_any_bytes_decode_or_have_a_reason(rows: list[bytes | None]) -> None:
    values, reasons = values_of(*rows)
    for row, value, reason in zip(rows, values, reasons, strict=True):
        is_null = row is None or row.strip() == b"null"
        assert (value is None) == (is_null or reason is not None)


def doubling_objects(levels: int) -> dict[str, Any]:
    """Return a small schema of objects that each have the next one twice."""
    objects: dict[str, Any] = {
        f"o{level}": {"properties": {n: {"$ref": f"#/$defs/o{level + 1}"} for n in "ab"}}
        for level in range(levels)
    }
    return {"$ref": "#/$defs/o0", "$defs": {**objects, f"o{levels}": {"type": "integer"}}}


JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": ["null", "number"]},
        "either": {"type": ["integer", "number"]},
        "name": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]},
        "title": {"oneOf": [{"type": "null", "title": "Not included"}, {"type": "string"}]},
        "kind": {"enum": ["a", "b", None]},
        "always": {"const": "x"},
        "paid": {"type": "boolean"},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag~1a"}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "inner": {"properties": {"x": {"type": "number"}}},
    },
    "$defs": {"tag/a": {"type": "string"}},
}


def test_a_json_schema_is_a_type() -> None:
    assert json_schema_type(json.dumps(JSON_SCHEMA)) == pa.struct(
        [
            ("id", pa.int64()), ("price", pa.float64()), ("either", pa.float64()),
            ("name", pa.string()), ("title", pa.string()), ("kind", pa.string()),
            ("always", pa.string()), ("paid", pa.bool_()), ("tags", pa.list_(pa.string())),
            ("counts", pa.map_(pa.string(), pa.int64())),
            ("inner", pa.struct([("x", pa.float64())])),
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        ("{}", "has no type"),
        ('{"type": "object"}', "must be an object"),
        ('{"type": "text"}', "unknown type"),
        ('{"type": ["string", "integer"]}', "has the types string, integer"),
        ('{"anyOf": [{"type": "string"}, {"type": "integer"}]}', "anyOf of several types"),
        ('{"$ref": "other.json"}', "another schema"),
        ('{"$ref": "#/$defs/none"}', "does not exist"),
        ('{"$ref": "#"}', "contains itself"),
        ('{"type": 5}', "is not a JSON Schema"),
        ('{"properties": [5]}', "is not a JSON Schema"),
        ('{"oneOf": 5}', "is not a JSON Schema"),
        ('{"type": "array", "items":' * 101 + '{"type": "string"}' + "}" * 101, "100 levels"),
        (json.dumps(doubling_objects(40)), "more than 10000 fields"),
        ('{"type": "array", "items": {"$ref": "#"}}', "contains itself"),
    ],
)
def test_a_json_schema_without_a_type(schema: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        json_schema_type(schema)


@pytest.mark.parametrize(
    ("values", "arrow_type"),
    [
        ([1, None], pa.int64()),
        ([1, 2.5], pa.float64()),
        ([2**63], pa.float64()),
        ([1, "x"], pa.string()),
        ([True, 1], pa.string()),
        ([[], [1]], pa.list_(pa.int64())),
        ([{"b": 1}, {"a": None, "b": 2.5, "c": [], "d": {"e": None}}],
         pa.struct([("b", pa.float64())])),
        ([{"r": {"x": 1}}, {"r": {"y": "s"}}],
         pa.struct([("r", pa.struct([("x", pa.int64()), ("y", pa.string())]))])),
    ],
)  # fmt: skip
def test_a_type_is_inferred(values: list[Any], arrow_type: pa.DataType) -> None:
    assert inferred_type(values) == arrow_type
    assert inferred_type(reversed(values)) == arrow_type
    rows = pa.array([json.dumps(value).encode() for value in values])
    assert not JsonDecoder(arrow_type).decode_array(rows).has_errors


def test_what_no_column_can_have_is_not_inferred() -> None:
    nested = json.loads("[" * 200 + "1" + "]" * 200)
    assert inferred_type([nested, {"\ud800": 1}, [1]]) == pa.list_(pa.int64())


def test_there_is_nothing_to_infer_a_type_from() -> None:
    samples: list[list[Any]] = [[], [None], [[]], [{"a": None, "b": [{}]}]]
    for values in samples:
        with pytest.raises(SchemaError, match="no value to infer"):
            inferred_type(values)
    with pytest.raises(SchemaError, match="more than 2000 fields"):
        inferred_type({str(number): 1} for number in range(MAX_FIELDS + 1))


def test_a_registry_has_the_type(registry: SchemaRegistry) -> None:
    number = registry.register("t-value", json.dumps(JSON_SCHEMA), "JSON")
    column = ColumnFormat("value", "json", topic="t", registry=Registry(registry.url))
    rows = pa.array([prefix(number) + b'{"id": 1}', b'{"id": 1}', None])
    result = make_decoder(column).decode_array(rows)
    assert [row and row["id"] for row in result.values.to_pylist()] == [1, None, None]
    assert "no schema registry's prefix: begins with 0x7b" in result.reasons[1].as_py()
    assert json_rows(rows, has_prefix=True)[0] == [{"id": 1}, None, None]


def test_the_schema_of_a_column(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(JSON_SCHEMA))
    for schema in (
        tmp_path / "a.json",
        json.dumps(JSON_SCHEMA),
        json_schema_type(json.dumps(JSON_SCHEMA)),
    ):
        assert len(make_decoder(ColumnFormat("value", "json", schema)).arrow_type) == 11
    schema = pa.schema([("x", pa.int64())])
    assert make_decoder(ColumnFormat("value", "json", schema)).arrow_type == pa.struct(schema)
    with pytest.raises(SchemaError, match="value_schema: must be a type or schema of Arrow"):
        make_decoder(ColumnFormat("value", "json", "x bigint"))
    with pytest.raises(SchemaError, match="cannot read the schema"):
        make_decoder(ColumnFormat("value", "json", tmp_path / "none"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "avo"}, r"value: must be one of json, avro, .* got 'avo'. Did you mean avro\?"),
        ({"name": "long", "schema": "x"}, "value_schema: long has no schema"),
        ({"name": "avro", "message": "x"}, "value_message: only protobuf"),
        ({"name": "avro"}, "value_schema: avro needs a schema"),
        ({"name": "avro", "registry": Registry("http://h")}, "value_subject: is missing"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_decoder(ColumnFormat(side="value", **arguments))


def test_a_subject_of_another_format(registry: SchemaRegistry) -> None:
    registry.register("mine", '"int"')
    column = ColumnFormat("value", "json", subject="mine", registry=Registry(registry.url))
    with pytest.raises(SchemaError, match="mine: the registry has a schema of type AVRO, not JSON"):
        make_decoder(column)


@pytest.mark.parametrize("number", ["1e-9999999", "0e-9999999", "1e-77", "1e77", "1e9999999"])
def test_exponents_that_no_decimal_has(number: str) -> None:
    """Arrow ends the process for the smallest of them."""
    decoder = JsonDecoder(pa.struct([("a", pa.decimal128(10, 2))]), has_prefix=False)
    decoded = decoder.decode_array(pa.array([f'{{"a": {number}}}'.encode(), b'{"a": 1.5}']))
    assert decoded.values.to_pylist() == [None, {"a": Decimal("1.50")}]
    assert decoded.reasons.is_valid().to_pylist() == [True, False]


TINY = ["1e-40", "0.0e-9999999", "1e-99999999999999999999", "1." + "0" * 50, "1e39"]


@pytest.mark.parametrize("number", TINY)
@pytest.mark.parametrize("text", ["{}", "[{}]", '{{"x": {}}}'])
def test_a_field_that_is_ignored_has_any_number(number: str, text: str) -> None:
    row = f'{{"d": 1.25, "other": {text.format(number)}, "r": {{"x": 5, "y": {number}}}}}'
    values, reasons = values_of(row.encode())
    assert reasons == [None]
    assert values == [{**NOTHING, "d": Decimal("1.25"), "r": {"x": 5}}]


@pytest.mark.parametrize("number", [*TINY, "1e400", "-1e-400", "0.1"])
def test_a_number_is_the_same_next_to_a_decimal(number: str) -> None:
    fields = [("f", pa.float64()), ("g", pa.float32()), ("s", pa.string())]
    row = f'{{"f": {number}, "g": {number}, "s": {number}, "d": 1.5}}'.encode()
    values, reasons = values_of(row, arrow_type=pa.struct([*fields, ("d", pa.decimal128(9, 2))]))
    alone = values_of(row, arrow_type=pa.struct(fields))
    assert reasons == alone[1] == [None]
    assert values == [{**alone[0][0], "d": Decimal("1.50")}]
    assert values[0]["f"] == float(number)


@pytest.mark.parametrize("number", [*TINY, "1.255", "12345678", "1e400"])
def test_a_decimal_takes_what_it_can_hold(number: str) -> None:
    rows = [f'{{"r": {{"d": {number}}}}}'.encode(), b'{"r": {"d": 1.25}}']
    arrow_type = pa.struct([("r", pa.struct([("d", pa.decimal128(9, 2))]))])
    values, reasons = values_of(*rows, arrow_type=arrow_type)
    assert values == [None, {"r": {"d": Decimal("1.25")}}]
    assert reasons == ["json: r.d: does not fit decimal128(9, 2)", None]


LONG = "9" * 5000
"""More digits than Python makes an integer of."""


@pytest.mark.parametrize("number", [LONG, f"-{LONG}", f"[{LONG}]"])
def test_a_field_that_is_ignored_has_any_integer(number: str) -> None:
    row = f'{{"i": 1, "other": {number}, "r": {{"x": 5, "y": {number}}}}}'.encode()
    for arrow_type in (TYPE, pa.struct([("i", pa.int64()), ("r", pa.struct({"x": pa.int64()}))])):
        values, reasons = values_of(row, arrow_type=arrow_type)
        assert reasons == [None]
        assert (values[0]["i"], values[0]["r"]) == (1, {"x": 5})
    assert json_rows(pa.array([row]))[1] == {}
    assert inferred_type(json_rows(pa.array([row]))[0]) == pa.struct(
        [("i", pa.int64()), ("r", pa.struct([("x", pa.int64())]))]
    )


@pytest.mark.parametrize("name", ["i", "f", "s", "d", "b", "day", "l", "r"])
@pytest.mark.parametrize("text", ["{}", '{{"x": {}}}', "[{}]"])
def test_no_field_holds_an_integer_of_any_length(name: str, text: str) -> None:
    values, reasons = values_of(f'{{"{name}": {text.format(LONG)}}}'.encode(), b"{}")
    assert values == [None, NOTHING]
    assert reasons[0].startswith(f"json: {name}")
