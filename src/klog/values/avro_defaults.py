"""Defaults of Avro's fields as values that Arrow takes: in a schema's JSON, bytes are text.

The rule: a default has the type that its field has when it is read, at any depth. A record's
default may leave out fields that have one of their own.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from klog.errors import SchemaError
from klog.values.avro_nodes import definition, is_true_union, kind_of, logical_kind

_NOT_A_NUMBER = ("NaN", "Infinity", "-Infinity")
"""JSON has no such numbers; Avro's Java library writes them as text."""
_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),), "boolean": (bool,), "int": (int,), "long": (int,),
    "float": (int, float), "double": (int, float), "string": (str,), "enum": (str,),
    "bytes": (str,), "fixed": (str,), "array": (list,), "map": (dict,), "record": (dict,),
    "error": (dict,),
}  # fmt: skip


def default_value(node: Any, default: Any, named: dict[str, Any], path: str) -> Any:
    """Return a default.

    Args:
        node: The type of the field.
        default: Its default, as JSON has it.
        named: The named types.
        path: The field, for errors.

    Raises:
        SchemaError: The default is not one of the type.
    """
    node = definition(node, named)
    if isinstance(node, list):
        return _of_union(node, default, named, path)
    kind = kind_of(node)
    if not _fits(kind, default):
        raise SchemaError(f"avro: {path}: its default is not of the type {kind}")
    if kind in ("float", "double"):
        return float(default)
    if kind in ("bytes", "fixed"):
        return _of_bytes(node, default, path)
    if kind == "array":
        return [default_value(node["items"], each, named, path) for each in default]
    if kind == "map":
        return {
            name: default_value(node["values"], each, named, path) for name, each in default.items()
        }
    return _of_record(node, default, named, path) if kind in ("record", "error") else default


def _fits(kind: str, default: Any) -> bool:
    if kind in ("float", "double") and default in _NOT_A_NUMBER:
        return True
    return type(default) in _JSON_TYPES[kind]


def set_defaults(schema: Any, defaults: dict[tuple[str, str], Any]) -> None:
    """Set the defaults of a schema that fastavro has parsed, which would not take them before.

    Args:
        schema: The schema, which is changed.
        defaults: The values, by record and field.
    """
    if isinstance(schema, list):
        for branch in schema:
            set_defaults(branch, defaults)
    elif isinstance(schema, dict):
        for each in schema.get("fields", ()):
            if (schema["name"], each["name"]) in defaults:
                each["default"] = defaults[schema["name"], each["name"]]
            set_defaults(each["type"], defaults)
        for part in ("items", "values"):
            set_defaults(schema.get(part), defaults)


def _of_union(node: list[Any], default: Any, named: dict[str, Any], path: str) -> Any:
    """Return a default of the first branch that it fits; most often that is the first one."""
    member = 0
    for branch in node:
        try:
            value = default_value(branch, default, named, path)
        except SchemaError:
            member += kind_of(branch) != "null"
            continue
        return {f"member{member}": value} if is_true_union(node) and value is not None else value
    raise SchemaError(f"avro: {path}: its default fits no branch of the union")


def _of_bytes(node: Any, default: str, path: str) -> bytes | Decimal:
    try:
        data = default.encode("latin-1")
    except UnicodeEncodeError as exc:
        raise SchemaError(f"avro: {path}: its default has characters beyond U+00FF") from exc
    if logical_kind(node)[1] != "decimal":
        return data
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-node.get("scale", 0))


def _of_record(node: Any, default: dict[str, Any], named: dict[str, Any], path: str) -> Any:
    values = {}
    for each in node["fields"]:
        name = each["name"]
        if name not in default and "default" not in each:
            raise SchemaError(f"avro: {path}: its default has no field {name}")
        values[name] = default_value(
            each["type"], default.get(name, each.get("default")), named, f"{path}.{name}"
        )
    return values
