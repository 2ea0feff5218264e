"""Messages of Kafka's protocol as schemas, decoded and encoded by one pair of functions.

The rule (Kafka's message generator): a field has the versions it is in, whether it is nullable, and
if it is tagged, its tag and the default, which is not written. From its first flexible version on,
a message has compact lengths, and a buffer of tagged fields at the end of itself and of each
structure in it. Unknown tags are skipped, so that a newer writer is understood. A nullable
structure has a prefix: a byte, below zero for null; in a tagged field an unsigned varint, zero for
null.

A message is a dict with Kafka's names, in the order of the schema, of int, str, bytes, None, lists
and dicts. A tagged field that has its default is left out, as in Kafka's own JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from klog.errors import CorruptRecordError
from klog.logformat.protocol import primitive_types

Fields: TypeAlias = dict[str, Any]
NO_LAST_VERSION = 1 << 15
"""Above any version."""


@dataclass(frozen=True, slots=True)
class Array:
    """The type of an array: of a primitive type, of arrays, or of structures."""

    element: Type


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a schema, in the versions from `since` to before `until`."""

    name: str
    type: Type
    since: int = 0
    until: int = NO_LAST_VERSION
    nullable: bool = False
    tag: int | None = None
    default: Any = None


Type: TypeAlias = "str | Array | tuple[Field, ...]"


@dataclass(frozen=True, slots=True)
class Schema:
    """A message of versions `first` to `last`, which are flexible from `flexible` on."""

    name: str
    first: int
    last: int
    fields: tuple[Field, ...]
    flexible: int = NO_LAST_VERSION

    def has_version(self, version: int) -> bool:
        """Return whether the message has a version.

        Args:
            version: A version.
        """
        return self.first <= version <= self.last


def decode_message(schema: Schema, version: int, reader: primitive_types.Reader) -> Fields:
    """Decode a message; bytes after it are not read.

    Args:
        schema: The schema of the message.
        version: The version of the message.
        reader: At its first byte.

    Raises:
        CorruptRecordError: For a malformed message.
        ValueError: For a version that the schema does not have.
    """
    _check_version(schema, version)
    return _decode_fields(schema.fields, version, version >= schema.flexible, reader)


def encode_message(schema: Schema, version: int, fields: Fields) -> bytes:
    """Encode a message.

    Args:
        schema: The schema of the message.
        version: The version of the message.
        fields: As `decode_message` returns them.

    Raises:
        ValueError: For a version or a value that the schema does not allow.
    """
    _check_version(schema, version)
    return _encode_fields(schema.fields, version, version >= schema.flexible, fields)


def _check_version(schema: Schema, version: int) -> None:
    if not schema.has_version(version):
        raise ValueError(
            f"{schema.name} has versions {schema.first} to {schema.last}, not {version}"
        )


def _fields_in(fields: tuple[Field, ...], version: int, tagged: bool) -> list[Field]:
    return [
        field
        for field in fields
        if field.since <= version < field.until and (field.tag is not None) == tagged
    ]


def _decode_fields(
    fields: tuple[Field, ...], version: int, flexible: bool, reader: primitive_types.Reader
) -> Fields:
    values = {
        field.name: _decode_field(field, version, flexible, reader)
        for field in _fields_in(fields, version, tagged=False)
    }
    if flexible:
        tags = reader.tags()
        for field in _fields_in(fields, version, tagged=True):
            if field.tag in tags:
                tag_reader = primitive_types.Reader(tags[field.tag])
                value = _decode_field(field, version, flexible, tag_reader)
                if value != field.default:
                    values[field.name] = value
    return {field.name: values[field.name] for field in fields if field.name in values}


def _decode_field(
    field: Field, version: int, flexible: bool, reader: primitive_types.Reader
) -> Any:
    if field.nullable and isinstance(field.type, tuple):
        is_tagged = field.tag is not None
        is_null = reader.unsigned_varint() == 0 if is_tagged else reader.integer("int8") < 0
        if is_null:
            return None
    return _decode_value(field.type, field.nullable, version, flexible, reader)


def _decode_value(
    kind: Type, nullable: bool, version: int, flexible: bool, reader: primitive_types.Reader
) -> Any:
    start = reader.position
    value: Any
    if isinstance(kind, tuple):
        return _decode_fields(kind, version, flexible, reader)
    if isinstance(kind, Array):
        count = reader.count(flexible)
        element = kind.element
        value = (
            None
            if count is None
            else [_decode_value(element, False, version, flexible, reader) for _ in range(count)]
        )
    elif kind in primitive_types.INTEGERS:
        return reader.integer(kind)
    else:
        value = _DECODERS[kind](reader, flexible)
    if value is None and not nullable:
        raise CorruptRecordError("a field that cannot be null is null", start)
    return value


def _encode_fields(
    fields: tuple[Field, ...], version: int, flexible: bool, values: Fields
) -> bytes:
    plain = _fields_in(fields, version, tagged=False)
    tagged = _fields_in(fields, version, tagged=True)
    unknown = values.keys() - {field.name for field in [*plain, *tagged]}
    if unknown:
        raise ValueError(f"version {version} has no {', '.join(sorted(unknown))}")
    chunks = []
    for field in plain:
        if field.name not in values:
            raise ValueError(f"{field.name} is missing")
        chunks.append(_encode_field(field, version, flexible, values[field.name]))
    if flexible:
        tags = {
            field.tag: _encode_field(field, version, flexible, values[field.name])
            for field in tagged
            if field.tag is not None and values.get(field.name, field.default) != field.default
        }
        chunks.append(primitive_types.tags(tags))
    return b"".join(chunks)


def _encode_field(field: Field, version: int, flexible: bool, value: Any) -> bytes:
    prefix = b""
    if field.nullable and isinstance(field.type, tuple):
        if field.tag is not None:
            prefix = primitive_types.unsigned_varint(0 if value is None else 1)
        else:
            prefix = primitive_types.integer("int8", -1 if value is None else 1)
        if value is None:
            return prefix
    return prefix + _encode_value(field, field.type, field.nullable, version, flexible, value)


def _encode_value(
    field: Field, kind: Type, nullable: bool, version: int, flexible: bool, value: Any
) -> bytes:
    if value is None and not nullable:
        raise ValueError(f"{field.name} must not be null")
    if isinstance(kind, tuple):
        return _encode_fields(kind, version, flexible, value)
    if isinstance(kind, Array):
        count = primitive_types.count(None if value is None else len(value), flexible)
        return count + b"".join(
            _encode_value(field, kind.element, False, version, flexible, element)
            for element in value or ()
        )
    if kind in primitive_types.INTEGERS:
        return primitive_types.integer(kind, value)
    return _ENCODERS[kind](value, flexible)


_DECODERS: dict[str, Callable[[primitive_types.Reader, bool], Any]] = {
    "string": primitive_types.Reader.string,
    "bytes": primitive_types.Reader.sized_bytes,
    "uuid": lambda reader, flexible: reader.uuid(),
}
_ENCODERS: dict[str, Callable[[Any, bool], bytes]] = {
    "string": primitive_types.string,
    "bytes": primitive_types.nullable_bytes,
    "uuid": lambda value, flexible: primitive_types.uuid(value),
}
