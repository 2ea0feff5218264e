"""Protobuf to Arrow and back, from descriptors, .proto text and registries of both kinds."""

from __future__ import annotations

import base64
import datetime
import math
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import OptionError, SchemaError
from klog.values.column_encoder import make_encoder
from klog.values.column_format import ColumnFormat, make_decoder
from klog.values.confluent_framing import message_index_bytes, prefix, read_message_indexes
from klog.values.protobuf_decoder import ProtobufDecoder
from klog.values.protobuf_encoder import ProtobufEncoder
from klog.values.protobuf_schema import load_protobuf_schema
from klog.values.registry_settings import Registry
from tests.support.schema_registry import SchemaRegistry, descriptor
from tests.values.make_vectors import FOLDER, shop_messages

SCHEMA = load_protobuf_schema(FOLDER / "shop.proto")
DECODER = ProtobufDecoder(SCHEMA, "shop.Order")


@pytest.fixture(scope="module")
def messages() -> Any:
    return shop_messages()


def rich_order(messages: Any) -> Any:
    order = messages["Order"](
        id=-7, customer="Zoë", amount=0.5, large=2**64 - 1, unsigned=2**32 - 1, signed=-3,
        fixed=2**63, paid=True, note="", status=1, tags=[1, -1], counts={"a": 2**40}, phone=0,
        raw=b"\xff",
    )  # fmt: skip
    order.created.FromJsonString("1969-12-31T23:59:59.5Z")
    order.took.FromJsonString("-1.5s")
    order.wrapped.value = 0
    order.extra["k"] = [1, "x"]
    order.items.add(sku="s", price=1.5)
    order.items.add()
    order.by_number[4].sku = "t"
    order.first.SetInParent()
    order.empty.SetInParent()
    return order


RICH = {
    "id": -7, "customer": "Zoë", "amount": 0.5, "large": Decimal(2**64 - 1),
    "unsigned": 2**32 - 1, "signed": -3, "fixed": Decimal(2**63), "paid": True, "note": "",
    "status": "PAID", "tags": [1, -1], "counts": [("a", 2**40)],
    "created": datetime.datetime(1969, 12, 31, 23, 59, 59, 500000, datetime.timezone.utc),
    "took": datetime.timedelta(seconds=-1.5), "wrapped": 0, "extra": '{"k": [1.0, "x"]}',
    "mail": None, "phone": 0, "items": [{"sku": "s", "price": 1.5}, {"sku": "", "price": None}],
    "by_number": [(4, {"sku": "t", "price": None})], "raw": b"\xff",
    "first": {"sku": "", "price": None},
}  # fmt: skip
UNSET = {
    "id": 0, "customer": "", "amount": 0.0, "large": 0, "unsigned": 0, "signed": 0, "fixed": 0,
    "paid": False, "note": None, "status": "NEW", "tags": [], "counts": [], "created": None,
    "took": None, "wrapped": None, "extra": None, "mail": None, "phone": None, "items": [],
    "by_number": [], "raw": b"", "first": None,
}  # fmt: skip


def test_every_kind_of_field(messages: Any) -> None:
    data = rich_order(messages).SerializeToString()
    result = DECODER.decode_array(pa.array([data, None, b"", b"\xff\xff"]))
    assert result.values.to_pylist() == [RICH, None, UNSET, None]
    assert result.reasons.to_pylist()[:3] == [None] * 3
    assert "Error parsing message" in result.reasons[3].as_py()
    assert "empty" not in result.values.type.names


def test_what_was_decoded_is_encoded(messages: Any) -> None:
    order = rich_order(messages)
    order.ClearField("empty")
    rows = pa.array([order.SerializeToString(deterministic=True), b"", None])
    values = DECODER.decode_array(rows).values
    encoder = pickle.loads(pickle.dumps(ProtobufEncoder(SCHEMA, "shop.Order")))
    assert encoder.encode_array(values).equals(rows)


def test_a_value_beyond_its_type_is_a_reason(messages: Any) -> None:
    late = messages["Order"]()
    late.created.seconds = 2**62
    result = DECODER.decode_array(pa.array([late.SerializeToString(), b""]))
    assert result.values.to_pylist() == [None, UNSET]
    assert result.reasons[0].is_valid


def test_an_unknown_enum_is_its_number(messages: Any) -> None:
    order = messages["Order"](status=9)
    values = DECODER.decode_array(pa.array([order.SerializeToString()])).values
    assert values.field("status").to_pylist() == ["9"]
    data = ProtobufEncoder(SCHEMA, "shop.Order").encode_array(values)
    assert messages["Order"].FromString(data[0].as_py()).status == 9


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"idd": 1}, "shop.Order has no field idd"),
        ({"id": "SECRET"}, "shop.Order.id: a value does not fit int64"),
        ({"signed": 2**40}, "shop.Order.signed: a value does not fit sint32"),
        ({"id": 1.5}, "shop.Order.id: a value does not fit int64"),
        ({"items": [{"price": 1e300}]}, "shop.Order.Item.price: a value does not fit float"),
        ({"first": 5}, "shop.Order.Item is a message"),
        ({"status": "SECRET"}, "shop.Order.status: a value does not fit shop."),
    ],
)
def test_what_does_not_fit_is_an_error(value: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        ProtobufEncoder(SCHEMA, "shop.Order").encode_array(pa.array([value]))
    assert "SECRET" not in str(caught.value)


NUMBERS = """
syntax = "proto3"; import "google/protobuf/wrappers.proto"; enum Kind { NONE = 0; SOME = 1; }
message Numbers {
  float single = 1; double number = 2; int64 whole = 3; uint64 large = 4; sint32 small = 5;
  bool yes = 6; Kind kind = 7; string text = 8; repeated double numbers = 9;
  repeated string texts = 10; repeated int32 smalls = 11; map<int64, double> by_number = 12;
  map<bool, bool> by_yes = 13; google.protobuf.DoubleValue wrapped = 14;
  google.protobuf.BoolValue wrapped_yes = 15;
}
"""


@pytest.fixture(scope="module")
def numbers() -> ProtobufEncoder:
    return ProtobufEncoder(load_protobuf_schema(NUMBERS), "Numbers")


def column_of(field: str, values: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([values], [field])


@pytest.mark.parametrize(
    ("field", "values", "type_name"),
    [
        ("number", pa.array([Decimal("12345678901234567.89")]), "double"),
        ("number", pa.array([Decimal("0.12345678901234567")]), "double"),
        ("number", pa.array([Decimal("1234567890123450001")]), "double"),
        ("number", pa.array([2**53 + 1]), "double"),
        ("number", pa.array([2**63 - 1]), "double"),
        ("number", pa.array([True]), "double"),
        ("numbers", pa.array([[2**53 + 1]]), "double"),
        ("wrapped", pa.array([2**53 + 1]), "google.protobuf.DoubleValue"),
        ("single", pa.array([2**24 + 1]), "float"),
        ("single", pa.array([Decimal("16777217")]), "float"),
        ("single", pa.array([Decimal("0.123456789")]), "float"),
        ("single", pa.array([False]), "float"),
        ("whole", pa.array([True]), "int64"),
        ("large", pa.array([False]), "uint64"),
        ("small", pa.array([True]), "sint32"),
        ("small", pa.array([1], pa.date32()), "sint32"),
        ("text", pa.array([5]), "string"),
        ("kind", pa.array([True]), "Kind"),
        ("yes", pa.array([5]), "bool"),
        ("yes", pa.array([0]), "bool"),
        ("yes", pa.array([1.0]), "bool"),
        ("wrapped_yes", pa.array([1]), "google.protobuf.BoolValue"),
        ("by_number", pa.array([[(1, 2**53 + 1)]], pa.map_(pa.int64(), pa.int64())), "Numbers."),
        ("by_number", pa.array([[(True, 1.0)]], pa.map_(pa.bool_(), pa.float64())), "Numbers."),
        ("by_yes", pa.array([[(1, True)]], pa.map_(pa.int64(), pa.bool_())), "Numbers."),
        ("by_yes", pa.array([[(True, 1)]], pa.map_(pa.bool_(), pa.int64())), "Numbers."),
    ],
)
def test_a_value_is_not_changed_in_silence(
    numbers: ProtobufEncoder, field: str, values: pa.Array, type_name: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        numbers.encode_array(column_of(field, values))
    message = f"protobuf: Numbers.{field}: a value does not fit {type_name}"
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith("Correct the value, or use another schema")


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("number", pa.array([2**53, -(2**62), 5]), [2.0**53, -(2.0**62), 5.0]),
        ("number", pa.array([Decimal("0.10"), Decimal("-1.25")]), [0.1, -1.25]),
        ("number", pa.array([Decimal("0.1")], pa.decimal128(38, 18)), [0.1]),
        ("number", pa.array([Decimal("9007199254740.99")]), [9007199254740.99]),
        ("number", pa.array([Decimal(2**100)], pa.decimal128(38, 0)), [2.0**100]),
        ("number", pa.array([0.1], pa.float32()), [0.10000000149011612]),
        ("number", pa.array([math.inf, 5e-324]), [math.inf, 5e-324]),
        ("single", pa.array([0.1]), [0.10000000149011612]),
        ("single", pa.array([-math.inf]), [-math.inf]),
        ("single", pa.array([Decimal("0.10")]), [0.10000000149011612]),
        ("single", pa.array([2**24, -(2**60)]), [2.0**24, -(2.0**60)]),
        ("whole", pa.array([2**63 - 1]), [2**63 - 1]),
        ("whole", pa.array([Decimal("5.00")]), [5]),
        ("whole", pa.array([5.0]), [5]),
        ("text", pa.array([Decimal("12345678901234567.80")]), ["12345678901234567.80"]),
        ("text", pa.array([Decimal("1E-18")], pa.decimal128(38, 18)), ["0.000000000000000001"]),
        ("text", pa.array([19_849], pa.date32()), ["2024-05-06"]),
        ("text", pa.array([-1], pa.timestamp("us")), ["1969-12-31T23:59:59.999999"]),
        ("text", pa.array([0], pa.timestamp("us", "Asia/Tokyo")), ["1970-01-01T00:00:00.000000Z"]),
        ("texts", pa.array([[Decimal("0.10")]]), [["0.10"]]),
        ("yes", pa.array([True, False]), [True, False]),
        ("kind", pa.array([1]), ["SOME"]),
        ("by_number", pa.array([[(1, 5)]], pa.map_(pa.int64(), pa.int64())), [[(1, 5.0)]]),
        ("by_yes", pa.array([[(True, False)]], pa.map_(pa.bool_(), pa.bool_())), [[(True, False)]]),
    ],
)
def test_a_value_of_another_type_that_fits(
    numbers: ProtobufEncoder, field: str, values: pa.Array, expected: list[Any]
) -> None:
    data = numbers.encode_array(column_of(field, values))
    decoder = ProtobufDecoder(load_protobuf_schema(NUMBERS), "Numbers")
    assert decoder.decode_array(data).values.field(field).to_pylist() == expected


@settings(deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**15), max_value=10**15))
def test_a_decimal_of_fifteen_digits_fits_a_double(
    numbers: ProtobufEncoder, number: Decimal
) -> None:
    number = round(number, 15 - max(1, number.adjusted() + 1)) if number else number
    numbers.encode_array(column_of("number", pa.array([number], pa.decimal128(38, 18))))


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("texts", pa.array(["abc"])),
        ("smalls", pa.array([b"abc"])),
        ("texts", pa.array([{"a": "x"}])),
        ("numbers", pa.array([1.0])),
    ],
)
def test_a_repeated_field_takes_an_array_alone(
    numbers: ProtobufEncoder, field: str, values: pa.Array
) -> None:
    """A text is not an array of its characters."""
    with pytest.raises(SchemaError, match=f"protobuf: Numbers.{field} is repeated, got a value"):
        numbers.encode_array(column_of(field, values))


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("google.protobuf.StringValue", 5),
        ("google.protobuf.Timestamp", "SECRET"),
        ("google.protobuf.Struct", "SECRET"),
    ],
)
def test_a_known_message_that_does_not_fit(message: str, value: Any) -> None:
    files = ["struct", "timestamp", "wrappers"]
    text = "".join(f'import "google/protobuf/{name}.proto"; ' for name in files)
    schema = load_protobuf_schema(f'syntax = "proto3"; {text} message A {{ int32 x = 1; }}')
    with pytest.raises(SchemaError, match=f"a value does not fit {message}") as caught:
        ProtobufEncoder(schema, message).encode_array(pa.array([value]))
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("indexes", "data"),
    [((0,), b"\0"), ((1,), b"\x02\x02"), ((1, 0), b"\x04\x02\x00"), ((2, 70), b"\x04\x04\x8c\x01")],
)
def test_message_indexes(indexes: tuple[int, ...], data: bytes) -> None:
    assert message_index_bytes(indexes) == data
    assert read_message_indexes(data + b"rest") == (indexes, len(data))


@pytest.mark.parametrize(
    "data", [b"", b"\x01", b"\x02", b"\x02\x01", b"\xff" * 9, b"\x04\x02", b"\xfe\x7f"]
)
def test_damaged_message_indexes(data: bytes) -> None:
    with pytest.raises(ValueError, match="message indexes"):
        read_message_indexes(data)


@pytest.mark.parametrize("kind", ["text", "base64", "text without descriptors"])
def test_a_registry(registry: SchemaRegistry, messages: Any, kind: str) -> None:
    text = (FOLDER / "shop.proto").read_text()
    registry.has_descriptors = kind == "text"
    number = registry.register(
        "t-value", base64.b64encode(descriptor(text)).decode() if kind == "base64" else text,
        "PROTOBUF",
    )  # fmt: skip
    column = ColumnFormat(
        "value", "protobuf", topic="t", registry=Registry(registry.url), message="shop.Order"
    )
    decoder = pickle.loads(pickle.dumps(make_decoder(column)))
    data = rich_order(messages).SerializeToString()
    result = decoder.decode_array(
        pa.array(
            [prefix(number) + b"\x02\x02" + data, prefix(number) + b"\x04\0\0" + data,
             prefix(number) + b"\x02\x12", prefix(99) + b"\0", prefix(number), b"x", None]
        )
    )  # fmt: skip
    assert result.values.to_pylist() == [RICH, *[None] * 6]
    reasons = result.reasons.to_pylist()
    assert reasons[1] == "protobuf: the message is shop.Other.Inner, not shop.Order"
    assert "has no message with the indexes (9,)" in reasons[2]
    assert "schema id 99 is not in the registry" in reasons[3]
    assert "message indexes: cut off" in reasons[4]
    assert "no schema registry's prefix" in reasons[5]


def test_imported_schemas_are_found(registry: SchemaRegistry) -> None:
    item = 'syntax = "proto3"; package shop; message Item { string sku = 1; }'
    order = (
        'syntax = "proto3"; package shop; import "common/item.proto"; '
        "message Order { Item item = 1; }"
    )
    registry.register("item", item, "PROTOBUF")
    reference = {"name": "common/item.proto", "subject": "item", "version": 1}
    for has_descriptors in (True, False):
        registry.has_descriptors = has_descriptors
        text = order + " " * has_descriptors  # Another schema, as klog asks an id only once.
        number = registry.register("t-value", text, "PROTOBUF", [reference])
        column = ColumnFormat("value", "protobuf", topic="t", registry=Registry(registry.url))
        result = make_decoder(column).decode_array(
            pa.array([prefix(number) + b"\0\x0a\x03\x0a\x01s"])
        )
        assert result.values.to_pylist() == [{"item": {"sku": "s"}}]


def test_a_schema_is_registered_by_the_encoder(registry: SchemaRegistry) -> None:
    column = ColumnFormat(
        "value", "protobuf", FOLDER / "shop.proto", "shop.Other.Inner", None,
        Registry(registry.url), "t",
    )  # fmt: skip
    values = pa.array([{"number": 5}])
    data = make_encoder(column, values.type).encode_array(values)
    assert data.to_pylist() == [prefix(1) + b"\x04\0\0\x08\x05"]
    assert (
        make_decoder(column)
        .decode_array(data)
        .values.equals(values.cast(pa.struct([("number", pa.int32())])))
    )


def test_schemas_that_are_refused(tmp_path: Path) -> None:
    recursive = 'syntax = "proto3"; message A { B b = 1; } message B { repeated A a = 1; }'
    with pytest.raises(SchemaError, match="A contains itself"):
        ProtobufDecoder(load_protobuf_schema(recursive), "A")
    doubling = "".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }} " for n in range(20))
    large = load_protobuf_schema(f'syntax = "proto3"; {doubling} message M20 {{ int32 x = 1; }}')
    with pytest.raises(SchemaError, match="more than 10000 fields"):
        ProtobufDecoder(large, "M0")
    with pytest.raises(SchemaError, match=r"has no message shop\.Missing"):
        ProtobufDecoder(SCHEMA, "shop.Missing")
    with pytest.raises(SchemaError, match="does not compile"):
        load_protobuf_schema("message {")
    with pytest.raises(SchemaError, match=r"no file|not a FileDescriptorSet"):
        load_protobuf_schema(b"")
    with pytest.raises(SchemaError, match="cannot read"):
        load_protobuf_schema(tmp_path / "none")
    with pytest.raises(SchemaError, match="must be bytes, a path"):
        load_protobuf_schema(5)
    with pytest.raises(OptionError, match="protobuf needs a schema"):
        make_decoder(ColumnFormat("value", "protobuf"))


def test_a_file_of_descriptors(tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto.FromString(
        descriptor("message A { required int32 x = 1; }")
    )
    (tmp_path / "a.desc").write_bytes(
        descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    )
    column = ColumnFormat("value", "protobuf", tmp_path / "a.desc")
    result = make_decoder(column).decode_array(pa.array([b"\x08\x05", b""]))
    assert result.values.to_pylist() == [{"x": 5}, {"x": None}]
    with pytest.raises(SchemaError, match="A is missing required fields: x"):
        make_encoder(column, result.values.type).encode_array(result.values)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=60), max_size=6))
def test_any_bytes_decode_or_have_a_reason(rows: list[bytes | None]) -> None:
    result = DECODER.decode_array(pa.array(rows, pa.binary()))
    result.values.validate(full=True)
    for row, value, reason in zip(
        rows, result.values.is_valid().to_pylist(), result.reasons.to_pylist(), strict=True
    ):
        assert value == (row is not None and reason is None)
