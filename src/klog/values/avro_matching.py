"""Which of Avro's types can be read as another: names, promotions and logical types."""

from __future__ import annotations

from typing import Any

from klog.errors import SchemaError
from klog.values.avro_nodes import kind_of, logical_kind
from klog.values.avro_schema import LOGICAL_TYPES

PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
SAME_VALUES = {("int", "long"), ("float", "double")}
"""Promotions that are none in Python."""
_TIMESTAMPS = (
    {"timestamp-millis", "timestamp-micros"},
    {"local-timestamp-millis", "local-timestamp-micros"},
)
NAMED = ("record", "error", "enum", "fixed")


def chosen_branch(writer: Any, branches: list[Any]) -> int | None:
    """Return the branch that Avro's Java library chooses: of the same type, or a promotion.

    Args:
        writer: The writer's type.
        branches: The branches of the reader's union.

    Returns:
        The place of the branch; None if no branch can be read.
    """
    kind = kind_of(writer)
    same = [place for place, each in enumerate(branches) if kind_of(each) == kind]
    if kind in NAMED:
        for matches in (_has_full_name, _has_alias, _has_short_name):
            for place in same:
                if matches(writer, branches[place]):
                    return place
        return None
    kinds = PROMOTIONS.get(kind, ())
    promoted = [place for place, each in enumerate(branches) if kind_of(each) in kinds]
    return next(iter((*same, *promoted)), None)


def read_primitive(writer: Any, reader: Any, path: str) -> Any:
    """Return a primitive type; with its logical type if that makes other numbers than the reader's.

    Dates and times are numbers until Arrow makes a column of them, by the reader's type.

    Args:
        writer: The writer's type.
        reader: The reader's, the same one or a promotion.
        path: The field, for errors.

    Raises:
        SchemaError: The types are different times.
    """
    kind = kind_of(writer)
    decimal = read_decimal(writer, reader) if kind == "bytes" else {}
    if decimal:
        return {"type": kind, **decimal}
    written, read = logical_kind(writer), logical_kind(reader)
    if written == read or written not in LOGICAL_TYPES or read not in LOGICAL_TYPES:
        return kind
    if {written[1], read[1]} in _TIMESTAMPS:
        return {"type": kind, "logicalType": written[1]}
    raise mismatch(writer, reader, path)


def read_decimal(writer: Any, reader: Any) -> dict[str, Any]:
    """Return the decimal that bytes are: the writer's if it says one, and the reader wants one.

    Args:
        writer: The writer's type, bytes or fixed.
        reader: The reader's.
    """
    if logical_kind(reader)[1] != "decimal":
        return {}
    decimal = writer if logical_kind(writer)[1] == "decimal" else reader
    return {
        name: decimal[name] for name in ("logicalType", "precision", "scale") if name in decimal
    }


def _has_full_name(writer: Any, reader: Any) -> bool:
    return bool(writer["name"] == reader["name"])


def _has_alias(writer: Any, reader: Any) -> bool:
    names = {writer["name"], _short(writer["name"])}
    return not names.isdisjoint(reader.get("aliases", ()))


def _has_short_name(writer: Any, reader: Any) -> bool:
    return _short(writer["name"]) == _short(reader["name"])


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def mismatch(writer: Any, reader: Any, path: str) -> SchemaError:
    """Return the error for a type that cannot be read as another one.

    Args:
        writer: The writer's type.
        reader: The reader's.
        path: The field.
    """
    return SchemaError(f"avro: {path}: {_shown(writer)} cannot be read as {_shown(reader)}")


def _shown(node: Any) -> str:
    if isinstance(node, list):
        return f"a union of {len(node)} types"
    name = node.get("name") if isinstance(node, dict) else None
    return f"{kind_of(node)} {name}" if name else "-".join(filter(None, logical_kind(node)))
