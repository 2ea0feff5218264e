"""JSON Schema as Arrow types.

    JSON Schema                                   Arrow
    object with properties                        struct
    object with additionalProperties alone        map<string, T>
    array with items                              list
    string, enum or const of texts                string
    integer, number, boolean                      int64, float64, bool
    ["null", T], oneOf or anyOf [null, T]         T; every field is nullable
    $ref "#/definitions/..." or "#/$defs/..."     what it refers to

Formats such as date-time are not types: the text stays text. A schema that allows several types, or
that contains itself, has no type: give the schema as a type instead.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from klog.errors import SchemaError
from klog.values.type_limits import check_type_size

_SCALARS = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "null": pa.null(),
}


def json_schema_type(text: str) -> pa.DataType:
    """Return the type of the values that a JSON Schema describes.

    Args:
        text: The schema.

    Raises:
        SchemaError: It is not a schema, or has no type in Arrow.
    """
    try:
        root = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise SchemaError(f"json: the schema is not JSON: {exc}") from exc
    try:
        result = _type_of(root, root, "$", ())
    except RecursionError:
        raise SchemaError("json: the schema is nested too deeply") from None
    except (AttributeError, TypeError, UnicodeEncodeError) as exc:
        raise SchemaError(f"json: the schema is not a JSON Schema: {exc}. {_INSTEAD}") from exc
    check_type_size(result, "json")
    return result


def _type_of(root: Any, node: Any, path: str, references: tuple[str, ...]) -> pa.DataType:
    if not isinstance(node, dict):
        raise SchemaError(f"json: {path}: must be an object that describes a type. {_INSTEAD}")
    if "$ref" in node:
        reference = node["$ref"]
        if reference in references:
            raise SchemaError(f"json: {path}: {reference} contains itself. {_INSTEAD}")
        return _type_of(root, _resolved(root, reference, path), path, (*references, reference))
    for word in ("oneOf", "anyOf", "allOf"):
        if word in node and "properties" not in node:
            branches = [each for each in node[word] if not _is_null(each)]
            if len(branches) == 1:
                return _type_of(root, branches[0], path, references)
            raise SchemaError(f"json: {path}: {word} of several types. {_INSTEAD}")
    kind = _kind(node, path)
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind == "array":
        items = _type_of(root, node.get("items"), f"{path}[]", references)
        return pa.list_(items)
    if kind != "object":
        raise SchemaError(f"json: {path}: unknown type {kind!r}")
    return _object(root, node, path, references)


def _is_null(node: Any) -> bool:
    """Return whether a branch is null. Confluent's serializer of Java gives it a title."""
    return isinstance(node, dict) and node.get("type") in ("null", ["null"])


def _object(root: Any, node: Any, path: str, references: tuple[str, ...]) -> pa.DataType:
    properties = node.get("properties")
    if properties:
        members = [
            (name, _type_of(root, each, f"{path}.{name}", references))
            for name, each in properties.items()
        ]
        arrow_type = pa.struct(members)
        check_type_size(arrow_type, "json")
        return arrow_type
    values = _type_of(root, node.get("additionalProperties"), f"{path}.*", references)
    return pa.map_(pa.string(), values)


def _kind(node: dict[str, Any], path: str) -> str:
    """Return the one type of a schema, besides null."""
    kinds = node.get("type")
    if kinds is None:
        if "properties" in node:
            return "object"
        values = node.get("enum", [node["const"]] if "const" in node else [])
        if values and all(isinstance(value, str | None) for value in values):
            return "string"
        raise SchemaError(f"json: {path}: has no type. {_INSTEAD}")
    if isinstance(kinds, str):
        return kinds
    names = [kind for kind in kinds if kind != "null"] or ["null"]
    if sorted(names) == ["integer", "number"]:
        return "number"
    if len(names) > 1:
        raise SchemaError(f"json: {path}: has the types {', '.join(names)}. {_INSTEAD}")
    return str(names[0])


def _resolved(root: Any, reference: Any, path: str) -> Any:
    node = root
    if not (isinstance(reference, str) and reference.startswith("#")):
        raise SchemaError(f"json: {path}: $ref to another schema, {reference!r}. {_INSTEAD}")
    for part in filter(None, reference[1:].split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        if not (isinstance(node, dict) and name in node):
            raise SchemaError(f"json: {path}: $ref {reference} does not exist")
        node = node[name]
    return node


_INSTEAD = "Give the schema of the column as a type"
