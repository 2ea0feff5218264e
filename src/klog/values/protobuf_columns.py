"""Messages of Protobuf as Arrow columns.

    Protobuf                               Arrow                 Spark
    int32 sint32 sfixed32                  int32                 int
    int64 sint64 sfixed64                  int64                 bigint
    uint32 fixed32                         int64                 bigint
    uint64 fixed64                         decimal128(20, 0)     decimal(20, 0)
    float double bool string bytes         the same              the same
    enum                                   string: its name, or its number if it has none here
    message, group                         struct                struct
    repeated, map                          list, map             array, map
    google.protobuf.Timestamp              timestamp[us, UTC]    timestamp
    google.protobuf.Duration               duration[us]          interval day to second
    google.protobuf.Int32Value, ...        the value, nullable   the same
    google.protobuf.Struct, Value, ListValue   string            string with JSON

These are the types of Spark's `from_protobuf`. A field that tracks presence (`optional`, in a
`oneof`, a message, proto2) is null if it is not set; any other field has its default then. A
message without fields is left out, as in Spark. A message that contains itself has no columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, TypeAlias

import pyarrow as pa

from klog.errors import SchemaError
from klog.values.optional_libraries import import_library
from klog.values.type_limits import check_type_size

Values: TypeAlias = Sequence[Any]
_UINT64 = pa.decimal128(20, 0)
SCALARS: dict[str, pa.DataType] = {
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "INT64": pa.int64(),
    "UINT64": _UINT64,
    "INT32": pa.int32(),
    "FIXED64": _UINT64,
    "FIXED32": pa.int64(),
    "BOOL": pa.bool_(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "UINT32": pa.int64(),
    "SFIXED32": pa.int32(),
    "SFIXED64": pa.int64(),
    "SINT32": pa.int32(),
    "SINT64": pa.int64(),
}
WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
JSON_MESSAGES = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
_MICROSECONDS = {TIMESTAMP: pa.timestamp("us", tz="UTC"), DURATION: pa.duration("us")}


@dataclass(frozen=True, slots=True)
class Column:
    """A type, and the function that makes an array of it; None is null."""

    arrow_type: pa.DataType
    build: Callable[[Values], pa.Array]


def message_column(descriptor: Any, path: tuple[str, ...] = ()) -> Column:
    """Return the column of messages.

    Args:
        descriptor: The descriptor of the message.
        path: The full names of the messages around it.

    Raises:
        SchemaError: It contains itself, or has no fields.
    """
    name = descriptor.full_name
    if name in path:
        raise SchemaError(f"protobuf: {name} contains itself. Recursive messages have no columns")
    if name in _MICROSECONDS:
        return _microseconds(_MICROSECONDS[name])
    if name in WRAPPERS:
        inner = _scalar(descriptor.fields_by_name["value"])
        value = attrgetter("value")
        return Column(
            inner.arrow_type,
            lambda messages: inner.build([None if m is None else value(m) for m in messages]),
        )
    if name in JSON_MESSAGES:
        return _json_text()
    members = []
    for field in descriptor.fields:
        column = _field(field, (*path, name))
        if column is not None:
            members.append((field.name, _values_of(field), column))
    if not members:
        raise SchemaError(f"protobuf: {name} has no fields")
    column = _struct(members)
    check_type_size(column.arrow_type, "protobuf")
    return column


def is_repeated(field: Any) -> bool:
    """Return whether a field is repeated or a map.

    Args:
        field: Its descriptor.
    """
    repeated = getattr(field, "is_repeated", None)  # `label` is deprecated where this exists.
    return bool(field.label == field.LABEL_REPEATED if repeated is None else repeated)


def is_map(field: Any) -> bool:
    """Return whether a field is a map.

    Args:
        field: Its descriptor.
    """
    message = field.message_type
    return message is not None and bool(message.GetOptions().map_entry)


def type_name(field: Any) -> str:
    """Return the type of a field, such as `SINT32`.

    Args:
        field: Its descriptor.
    """
    names = import_library("google.protobuf.descriptor_pb2").FieldDescriptorProto.Type
    return str(names.Name(field.type)).removeprefix("TYPE_")


def is_empty(field: Any) -> bool:
    """Return whether a field is a message without fields, which has no column.

    Args:
        field: Its descriptor.
    """
    return field.message_type is not None and not field.message_type.fields


def _field(field: Any, path: tuple[str, ...]) -> Column | None:
    if is_map(field):
        key = field.message_type.fields_by_name["key"]
        value = field.message_type.fields_by_name["value"]
        return None if is_empty(value) else _map(_scalar(key), _single(value, path))
    if is_empty(field):
        return None
    column = _single(field, path)
    return _list(column) if is_repeated(field) else column


def _single(field: Any, path: tuple[str, ...]) -> Column:
    return message_column(field.message_type, path) if field.message_type else _scalar(field)


def _scalar(field: Any) -> Column:
    if field.enum_type is not None:
        names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
        names[None] = None

        def build_names(values: Values) -> pa.Array:
            return pa.array(
                [names.get(n, n) if n in names else str(n) for n in values], pa.string()
            )

        return Column(pa.string(), build_names)
    arrow_type = SCALARS[type_name(field)]
    return Column(arrow_type, lambda values: pa.array(values, arrow_type))


def _values_of(field: Any) -> Callable[[Values], Values]:
    """Return the function that takes a field out of messages."""
    name, value = field.name, attrgetter(field.name)
    if is_repeated(field) or not field.has_presence:
        return lambda messages: list(map(value, messages))
    return lambda messages: [value(m) if m.HasField(name) else None for m in messages]


def _struct(members: list[tuple[str, Callable[[Values], Values], Column]]) -> Column:
    arrow_type = pa.struct([(name, column.arrow_type) for name, _, column in members])

    def build(messages: Values) -> pa.Array:
        present = [message for message in messages if message is not None]
        arrays = [column.build(values_of(present)) for _, values_of, column in members]
        struct = pa.StructArray.from_arrays(arrays, fields=list(arrow_type))
        if len(present) == len(messages):
            return struct
        places = accumulate(message is not None for message in messages)
        indices = [
            None if message is None else place - 1
            for message, place in zip(messages, places, strict=True)
        ]
        return struct.take(pa.array(indices, pa.int64()))

    return Column(arrow_type, build)


def _list(column: Column) -> Column:
    arrow_type = pa.list_(column.arrow_type)

    def build(lists: Values) -> pa.Array:
        items = column.build(list(chain.from_iterable(lists)))
        return pa.ListArray.from_arrays(_offsets(lists), items, type=arrow_type)

    return Column(arrow_type, build)


def _map(key: Column, value: Column) -> Column:
    arrow_type = pa.map_(key.arrow_type, value.arrow_type)

    def build(maps: Values) -> pa.Array:
        keys = key.build(list(chain.from_iterable(maps)))
        values = value.build([each[name] for each in maps for name in each])
        return pa.MapArray.from_arrays(_offsets(maps), keys, values, type=arrow_type)

    return Column(arrow_type, build)


def _offsets(containers: Values) -> pa.Array:
    return pa.array(accumulate(map(len, containers), initial=0), pa.int32())


def _microseconds(arrow_type: pa.DataType) -> Column:
    def build(messages: Values) -> pa.Array:
        numbers = [None if m is None else m.seconds * 1_000_000 + m.nanos // 1000 for m in messages]
        return pa.array(numbers, pa.int64()).cast(arrow_type)

    return Column(arrow_type, build)


def _json_text() -> Column:
    json_format = import_library("google.protobuf.json_format")

    def build(messages: Values) -> pa.Array:
        texts = [None if m is None else json_format.MessageToJson(m, indent=None) for m in messages]
        return pa.array(texts, pa.string())

    return Column(pa.string(), build)
