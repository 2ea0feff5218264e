"""Messages of Kafka's protocol as tables of fields, which one pair of functions reads and writes.

A field has the versions it is in, whether it may be null, and for a tagged one its tag and the
value that is not written. From its first flexible version on, a message has compact lengths and a
buffer of tagged fields at the end of itself and of each structure in it; tags that a table does not
name are stepped over, so that a newer writer is understood (Kafka's message generator). Whether a
structure that may be null is there is told in front of it: by a byte, below zero for null; in a
tagged field by an unsigned varint, zero for null.

A message is a dict by Kafka's names, in the order of the table: int, str, bytes, None, lists and
dicts of them. A tagged field that holds its default is left out, as Kafka's own JSON leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from klog.errors import CorruptRecordError
from klog.logformat import wire

Fields: TypeAlias = dict[str, Any]
LAST = 1 << 15
"""Later than any version."""


@dataclass(frozen=True, slots=True)
class Array:
    """The type of an array; of what, by the name of a type or as a table of fields."""

    element: Type


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a table: its type, and the versions from `since` to before `until`."""

    name: str
    type: Type
    since: int = 0
    until: int = LAST
    nullable: bool = False
    tag: int | None = None
    default: Any = None


Type: TypeAlias = "str | Array | tuple[Field, ...]"


@dataclass(frozen=True, slots=True)
class Schema:
    """A message: versions `first` to `last`, flexible ones from `flexible` on."""

    name: str
    first: int
    last: int
    fields: tuple[Field, ...]
    flexible: int = LAST

    def has(self, version: int) -> bool:
        """Tell whether a version is one of this table."""
        return self.first <= version <= self.last


def read(schema: Schema, version: int, reader: wire.Reader) -> Fields:
    """Decode a message of one version; what follows it stays unread.

    Raises `CorruptRecordError`, and `ValueError` for a version that the table does not have.
    """
    _check_version(schema, version)
    return _read_fields(schema.fields, version, version >= schema.flexible, reader)


def write(schema: Schema, version: int, fields: Fields) -> bytes:
    """Encode a message; raises `ValueError` for a version or a value that the table forbids."""
    _check_version(schema, version)
    return _write_fields(schema.fields, version, version >= schema.flexible, fields)


def _check_version(schema: Schema, version: int) -> None:
    if not schema.has(version):
        raise ValueError(f"{schema.name} has versions {schema.first} to {schema.last}: {version}")


def _in_version(fields: tuple[Field, ...], version: int, tagged: bool) -> list[Field]:
    return [
        one
        for one in fields
        if one.since <= version < one.until and (one.tag is not None) == tagged
    ]


def _read_fields(
    fields: tuple[Field, ...], version: int, flexible: bool, reader: wire.Reader
) -> Fields:
    found = {
        one.name: _read_field(one, version, flexible, reader)
        for one in _in_version(fields, version, tagged=False)
    }
    if flexible:
        tags = reader.tags()
        for one in _in_version(fields, version, tagged=True):
            if one.tag in tags:
                value = _read_field(one, version, flexible, wire.Reader(tags[one.tag]))
                if value != one.default:
                    found[one.name] = value
    return {one.name: found[one.name] for one in fields if one.name in found}


def _read_field(field: Field, version: int, flexible: bool, reader: wire.Reader) -> Any:
    if field.nullable and isinstance(field.type, tuple):
        tagged = field.tag is not None
        there = reader.unsigned_varint() > 0 if tagged else reader.integer("int8") >= 0
        if not there:
            return None
    return _read_value(field.type, field.nullable, version, flexible, reader)


def _read_value(
    kind: Type, nullable: bool, version: int, flexible: bool, reader: wire.Reader
) -> Any:
    begin = reader.position
    value: Any
    if isinstance(kind, tuple):
        return _read_fields(kind, version, flexible, reader)
    if isinstance(kind, Array):
        count = reader.count(flexible)
        element = kind.element
        value = (
            None
            if count is None
            else [_read_value(element, False, version, flexible, reader) for _ in range(count)]
        )
    elif kind in wire.INTEGERS:
        return reader.integer(kind)
    else:
        value = _READ[kind](reader, flexible)
    if value is None and not nullable:
        raise CorruptRecordError("null where a value must be", begin)
    return value


def _write_fields(fields: tuple[Field, ...], version: int, flexible: bool, given: Fields) -> bytes:
    plain = _in_version(fields, version, tagged=False)
    tagged = _in_version(fields, version, tagged=True)
    unknown = given.keys() - {one.name for one in [*plain, *tagged]}
    if unknown:
        raise ValueError(f"version {version} has no {', '.join(sorted(unknown))}")
    out = []
    for one in plain:
        if one.name not in given:
            raise ValueError(f"{one.name} is missing")
        out.append(_write_field(one, version, flexible, given[one.name]))
    if flexible:
        out.append(
            wire.tags(
                {
                    one.tag: _write_field(one, version, flexible, given[one.name])
                    for one in tagged
                    if one.tag is not None and given.get(one.name, one.default) != one.default
                }
            )
        )
    return b"".join(out)


def _write_field(field: Field, version: int, flexible: bool, value: Any) -> bytes:
    there = b""
    if field.nullable and isinstance(field.type, tuple):
        tagged = field.tag is not None
        if value is None:
            return wire.unsigned_varint(0) if tagged else wire.integer("int8", -1)
        there = wire.unsigned_varint(1) if tagged else wire.integer("int8", 1)
    return there + _write_value(field, field.type, field.nullable, version, flexible, value)


def _write_value(
    field: Field, kind: Type, nullable: bool, version: int, flexible: bool, value: Any
) -> bytes:
    if value is None and not nullable:
        raise ValueError(f"{field.name} must not be null")
    if isinstance(kind, tuple):
        return _write_fields(kind, version, flexible, value)
    if isinstance(kind, Array):
        element = kind.element
        return wire.count(None if value is None else len(value), flexible) + b"".join(
            _write_value(field, element, False, version, flexible, one) for one in value or ()
        )
    if kind in wire.INTEGERS:
        return wire.integer(kind, value)
    return _WRITE[kind](value, flexible)


_READ: dict[str, Callable[[wire.Reader, bool], Any]] = {
    "string": wire.Reader.string,
    "bytes": wire.Reader.sized_bytes,
    "uuid": lambda reader, flexible: reader.uuid(),
}
_WRITE: dict[str, Callable[[Any, bool], bytes]] = {
    "string": wire.string,
    "bytes": wire.nullable_bytes,
    "uuid": lambda value, flexible: wire.uuid(value),
}
