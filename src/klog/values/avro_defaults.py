"""Defaults of Avro's fields as fastavro returns them: bytes and decimals are text in JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Any


def with_read_defaults(schema: Any, named: dict[str, Any] | None = None) -> Any:
    """Return a parsed schema whose defaults are what fastavro reads; in JSON, bytes are text.

    Args:
        schema: The parsed schema.
        named: The named types so far.
    """
    named = {} if named is None else named
    if isinstance(schema, list):
        return [with_read_defaults(each, named) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "name" in schema:
        named[schema["name"]] = schema
    changed = {
        name: with_read_defaults(each, named)
        if name in ("type", "items", "values", "fields")
        else each
        for name, each in schema.items()
    }
    if "default" in schema and "type" in schema:
        changed["default"] = _read_default(schema["type"], schema["default"], named)
    return changed


def _read_default(node: Any, default: Any, named: dict[str, Any]) -> Any:
    if isinstance(node, str) and node in named:
        node = named[node]
    if isinstance(node, list):
        return _read_default(node[0], default, named)
    kind = node["type"] if isinstance(node, dict) else node
    if kind in ("bytes", "fixed") and isinstance(default, str):
        data = default.encode("latin-1")
        if isinstance(node, dict) and node.get("logicalType") == "decimal":
            unscaled = int.from_bytes(data, "big", signed=True)
            return Decimal(unscaled).scaleb(-node.get("scale", 0))
        return data
    if kind == "record" and isinstance(default, dict):
        types = {each["name"]: each["type"] for each in node["fields"]}
        return {name: _read_default(types[name], each, named) for name, each in default.items()}
    return default
