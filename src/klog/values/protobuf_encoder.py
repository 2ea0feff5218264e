"""Arrow to Protobuf messages, with or without a registry's prefix and message indexes.

The rule: a value is encoded as what it is, or is an error. Protobuf itself would make the nearest
double of a long, true of 5, and the number 1 of true. Only a double can become the nearest float.
A decimal, a date and a timestamp fit a `string` as their text in JSON: Protobuf has no types of its
own for decimals, dates and timestamps without a zone.
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from klog.errors import SchemaError
from klog.values.optional_libraries import import_library
from klog.values.protobuf_columns import (
    DURATION,
    JSON_MESSAGES,
    TIMESTAMP,
    WRAPPERS,
    is_map,
    is_repeated,
    type_name,
)
from klog.values.protobuf_schema import ProtobufSchema
from klog.values.python_values import python_values

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_CORRECT = "Correct the value, or use another schema"
_MAX_FLOAT = 3.4028235677973366e38
"""From here on, a double is infinity in 32 bits."""
_MICROSECOND = datetime.timedelta(microseconds=1)
_SINGLE = struct.Struct("f")


class ProtobufEncoder:
    """Encodes structs as messages. Columns have the types of decoding; null is not set."""

    def __init__(self, schema: ProtobufSchema, message: str, prefix: bytes = b"") -> None:
        """Take the schema, the full name of the message, and what is written before each value."""
        self._arguments = schema, message, prefix
        self._prefix = prefix
        self._error = import_library("google.protobuf.message").EncodeError
        factory = import_library("google.protobuf.message_factory")
        self._message = factory.GetMessageClass(schema.descriptor(message))

    def __reduce__(self) -> Any:
        """Pickle by the arguments."""
        return type(self), self._arguments

    def encode_array(self, column: pa.Array) -> pa.Array:
        """Return binary rows; null stays null.

        Args:
            column: The values.

        Raises:
            SchemaError: A value does not fit the schema; the message has its reason.
        """
        encoded: list[bytes | None] = []
        for row in python_values(column):
            if row is None:
                encoded.append(None)
                continue
            message = self._message()
            try:
                _fill(message, row)
                encoded.append(self._prefix + message.SerializeToString(deterministic=True))
            except self._error as exc:  # It names the required fields that are missing.
                raise SchemaError(f"protobuf: {exc}. Set them") from exc
            except _MISFITS as exc:  # Its message has the value.
                name = message.DESCRIPTOR.full_name
                raise SchemaError(f"protobuf: a value does not fit {name}. {_CORRECT}") from exc
        return pa.array(encoded, pa.binary())


def _fill(message: Any, value: Any) -> None:
    name = message.DESCRIPTOR.full_name
    if name == TIMESTAMP:
        _set_microseconds(message, (value - _EPOCH) // _MICROSECOND, is_duration=False)
    elif name == DURATION:
        _set_microseconds(message, value // _MICROSECOND, is_duration=True)
    elif name in WRAPPERS:
        message.value = _scalar(message.DESCRIPTOR.fields_by_name["value"], value)
        message.SetInParent()
    elif name in JSON_MESSAGES:
        _parse_json(message, value)
    else:
        if not isinstance(value, Mapping):
            raise SchemaError(f"protobuf: {name} is a message, got a value {type(value).__name__}")
        message.SetInParent()
        for field_name, each in value.items():
            field = message.DESCRIPTOR.fields_by_name.get(field_name)
            if field is None:
                raise SchemaError(f"protobuf: {name} has no field {field_name}. Leave it out")
            if each is not None:
                try:
                    _set(message, field, each)
                except _MISFITS as exc:  # Its message has the value.
                    kind = field.message_type or field.enum_type
                    type_text = type_name(field).lower() if kind is None else kind.full_name
                    raise SchemaError(
                        f"protobuf: {field.full_name}: a value does not fit {type_text}. {_CORRECT}"
                    ) from exc


def _parse_json(message: Any, text: str) -> None:
    json_format = import_library("google.protobuf.json_format")
    try:
        json_format.Parse(text, message)
    except json_format.ParseError as exc:
        raise ValueError("it is not the JSON of this message") from exc


def _set(message: Any, field: Any, value: Any) -> None:
    if is_map(field):
        _set_map(getattr(message, field.name), field.message_type.fields_by_name, value)
    elif is_repeated(field):
        if not isinstance(value, list):  # Of a text Protobuf would take the characters.
            raise SchemaError(
                f"protobuf: {field.full_name} is repeated, got a value {type(value).__name__}. "
                "Use an array"
            )
        items = getattr(message, field.name)
        for each in value:
            if field.message_type is not None:
                _fill(items.add(), each)
            else:
                items.append(_scalar(field, each))
    elif field.message_type is not None:
        _fill(getattr(message, field.name), value)
    else:
        setattr(message, field.name, _scalar(field, value))


def _set_map(items: Any, fields: Mapping[str, Any], value: Mapping[Any, Any]) -> None:
    key, field = fields["key"], fields["value"]
    for name, each in value.items():
        if field.message_type is not None:
            _fill(items[_scalar(key, name)], each)
        else:
            items[_scalar(key, name)] = _scalar(field, each)


def _scalar(field: Any, value: Any) -> Any:
    """Return what Protobuf takes: an enum's number, and an int where Arrow has a decimal.

    Raises one of `_MISFITS` if the field cannot hold the value.
    """
    kind = field.cpp_type
    if isinstance(value, bool) != (kind == field.CPPTYPE_BOOL):
        raise TypeError
    if field.enum_type is not None and isinstance(value, str):
        known = field.enum_type.values_by_name.get(value)
        return int(value) if known is None else known.number
    if field.type == field.TYPE_STRING and isinstance(value, Decimal | datetime.date):
        return _text(value)
    if kind in (field.CPPTYPE_UINT64, field.CPPTYPE_INT64) and value == int(value):
        return int(value)
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE) and isinstance(value, int | Decimal):
        return _float(value, is_single=kind == field.CPPTYPE_FLOAT)
    if kind == field.CPPTYPE_FLOAT and _MAX_FLOAT < abs(value) < math.inf:
        raise OverflowError
    return value


def _text(value: Decimal | datetime.date) -> str:
    """Return all digits; a date, or a timestamp with microseconds, as in ISO 8601 and in UTC."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    if value.tzinfo is None:
        return value.isoformat(timespec="microseconds")
    utc = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='microseconds')}Z"


def _float(value: int | Decimal, *, is_single: bool) -> float:
    """Return the nearest number of 64 or 32 bits. Raises `ArithmeticError` if it has other digits.

    It is rounded to the decimal places of the value: 0.1 fits, though it is not a binary fraction,
    and 2**53 + 1 does not.
    """
    number = float(value)
    if is_single:
        (number,) = _SINGLE.unpack(_SINGLE.pack(number))
    if number == value:
        return number
    places = len(f"{Decimal(value):f}".partition(".")[2].rstrip("0"))
    if Decimal(f"{number:.{places}f}") != value:
        raise ArithmeticError
    return number


def _set_microseconds(message: Any, microseconds: int, *, is_duration: bool) -> None:
    """Set seconds and nanos. Both have the sign of a duration; a timestamp's nanos are positive."""
    seconds, rest = divmod(microseconds, 1_000_000)
    if is_duration and seconds < 0 and rest:
        seconds, rest = seconds + 1, rest - 1_000_000
    message.seconds, message.nanos = seconds, rest * 1000
    message.SetInParent()
