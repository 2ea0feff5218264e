"""Avro schemas as Arrow types, and as the schemas that fastavro reads quickest.

    Avro                              Arrow                       Spark
    null                              null                        void
    boolean int long float double     bool int32 int64 float double   the same
    string, enum, uuid                string                      string
    bytes, fixed, duration            binary                      binary
    decimal(p, s) of bytes or fixed   decimal128(p, s)            decimal(p, s), p at most 38
    date                              date32                      date
    time-millis, time-micros          time64[us]                  time(6)
    timestamp-millis, -micros         timestamp[us, UTC]          timestamp
    local-timestamp-millis, -micros   timestamp[us]               timestamp_ntz
    record                            struct                      struct
    array, map                        list, map<string, T>        array, map
    union of null and T               T, nullable                 T, nullable
    union of int and long             int64                       bigint
    union of float and double         float64                     double
    other unions                      struct<member0, ...>        struct, as from_avro's

Other logical types, such as timestamp-nanos, are their underlying type, as Avro's specification
says. The rule: nothing that a datum can say makes the reader allocate more than the datum's size
times a constant. So recursive schemas are refused, and arrays whose items may have no bytes.

fastavro writes by a rewritten schema: each branch of a true union becomes a record with one field,
which has the same bytes, so that a row says the branch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from klog.errors import SchemaError
from klog.values.avro_defaults import default_value
from klog.values.avro_nodes import (
    branch_name,
    invalid_schemas,
    is_true_union,
    unique_name,
    widened_union,
)
from klog.values.optional_libraries import import_library
from klog.values.type_limits import check_type_size

MAX_DECIMAL_PRECISION = 38
_UTC_MS, _UTC_US = pa.timestamp("ms", tz="UTC"), pa.timestamp("us", tz="UTC")
PRIMITIVES: dict[str, tuple[pa.DataType, int]] = {
    "null": (pa.null(), 0),
    "boolean": (pa.bool_(), 1),
    "int": (pa.int32(), 1),
    "long": (pa.int64(), 1),
    "float": (pa.float32(), 4),
    "double": (pa.float64(), 8),
    "bytes": (pa.binary(), 1),
    "string": (pa.string(), 1),
}
"""The type, and the least number of bytes of a datum."""
LOGICAL_TYPES: dict[tuple[str, str], tuple[pa.DataType, pa.DataType]] = {
    ("int", "date"): (pa.date32(), pa.date32()),
    ("int", "time-millis"): (pa.time32("ms"), pa.time64("us")),
    ("long", "time-micros"): (pa.int64(), pa.time64("us")),
    ("long", "timestamp-millis"): (_UTC_MS, _UTC_US),
    ("long", "timestamp-micros"): (_UTC_US, _UTC_US),
    ("long", "local-timestamp-millis"): (pa.timestamp("ms"), pa.timestamp("us")),
    ("long", "local-timestamp-micros"): (pa.timestamp("us"), pa.timestamp("us")),
}
"""The type that Arrow makes of the number, and the type that it is cast to."""


@dataclass(frozen=True, slots=True)
class AvroType:
    """A type: as fastavro writes it, as Arrow builds and klog returns it, and its fewest bytes."""

    schema: Any
    built: pa.DataType
    final: pa.DataType
    min_bytes: int


def load_avro_schema(schema: Any, references: Mapping[str, str] | None = None) -> LoadedSchema:
    """Parse a schema.

    Args:
        schema: JSON as text or decoded.
        references: The texts of schemas that it uses, in the order of their use.

    Raises:
        SchemaError: It is not a schema of Avro.
    """
    parse_schema = import_library("fastavro.schema").parse_schema
    named: dict[str, Any] = {}
    with invalid_schemas():
        for text in (references or {}).values():
            parse_schema(_decoded(text), named_schemas=named)
        return LoadedSchema(parse_schema(_decoded(schema), named_schemas=named), named)


@dataclass(frozen=True, slots=True)
class LoadedSchema:
    """A schema that fastavro has parsed, with its named types."""

    root: Any
    named: dict[str, Any]

    def types(self) -> AvroType:
        """Return its types, and the schema that fastavro writes, with logical types.

        Raises:
            SchemaError: A type has none in Arrow, or may need unbounded memory.
        """
        with invalid_schemas():
            result = _Rewriter(self.named).rewrite(self.root, ())
            check_type_size(result.final, "avro")
            return result

    def defaults(self) -> dict[tuple[str, str], Any]:
        """Return the defaults of fields, by record and field.

        Raises:
            SchemaError: One is not of the type of its field.
        """
        with invalid_schemas():
            return {
                (name, each["name"]): default_value(
                    each["type"], each["default"], self.named, f"{name}.{each['name']}"
                )
                for name, node in self.named.items()
                for each in node.get("fields", ())
                if "default" in each
            }


def _decoded(schema: Any) -> Any:
    if not isinstance(schema, str) or schema.strip() in PRIMITIVES:
        return schema
    try:
        return json.loads(schema)
    except (ValueError, RecursionError) as exc:
        raise SchemaError(f"avro: the schema is not JSON: {exc}") from exc


@dataclass(slots=True)
class _Rewriter:
    """Walks a schema; `path` says the field for names and errors."""

    named: dict[str, Any]
    finished: dict[str, AvroType] = field(default_factory=dict)
    unfinished: set[str] = field(default_factory=set)
    taken: set[str] = field(init=False)
    """The names of the types, without their namespaces, and of the records for branches."""

    def __post_init__(self) -> None:
        self.taken = {name.rpartition(".")[2] for name in self.named}

    def rewrite(self, node: Any, path: tuple[str, ...]) -> AvroType:
        if isinstance(node, str):
            return self._by_name(node, path)
        if isinstance(node, list):
            return self._union(node, path)
        kind = node["type"]
        if not isinstance(kind, str):
            return self.rewrite(kind, path)
        if kind in ("record", "error"):
            return self._named(node, path, self._record)
        if kind == "enum":
            return self._named(node, path, self._enum)
        if kind == "fixed":
            return self._named(node, path, self._fixed)
        if kind == "array":
            return self._array(node, path)
        if kind == "map":
            values = self.rewrite(node["values"], (*path, "values"))
            return AvroType(
                {"type": "map", "values": values.schema},
                pa.map_(pa.string(), values.built),
                pa.map_(pa.string(), values.final),
                1,
            )
        return self._primitive(node, kind, path)

    def _by_name(self, name: str, path: tuple[str, ...]) -> AvroType:
        if name in PRIMITIVES:
            arrow_type, min_bytes = PRIMITIVES[name]
            return AvroType(name, arrow_type, arrow_type, min_bytes)
        if name not in self.named:
            raise SchemaError(f"avro: {_shown(path)}: type {name} is not defined")
        return self.rewrite(self.named[name], path)

    def _named(self, node: Any, path: tuple[str, ...], define: Any) -> AvroType:
        """Define a named type where it is used first; later only its name is written."""
        name = node["name"]
        if name in self.unfinished:
            raise SchemaError(
                f"avro: {_shown(path)}: {name} contains itself. Recursive types have no columns"
            )
        if name in self.finished:
            known = self.finished[name]
            return AvroType(name, known.built, known.final, known.min_bytes)
        self.unfinished.add(name)
        result: AvroType = define(node, path)
        self.unfinished.remove(name)
        self.finished[name] = result
        return result

    def _record(self, node: Any, _: tuple[str, ...]) -> AvroType:
        fields, built, final, min_bytes = [], [], [], 0
        for each in node["fields"]:
            path = (node["name"], each["name"])
            avro_type = self.rewrite(each["type"], path)
            fields.append({"name": each["name"], "type": avro_type.schema})
            built.append(pa.field(each["name"], avro_type.built))
            final.append(pa.field(each["name"], avro_type.final))
            min_bytes += avro_type.min_bytes
        schema = {"type": "record", "name": node["name"], "fields": fields}
        check_type_size(pa.struct(final), "avro")
        return AvroType(schema, pa.struct(built), pa.struct(final), min_bytes)

    def _enum(self, node: Any, _: tuple[str, ...]) -> AvroType:
        schema = {"type": "enum", "name": node["name"], "symbols": node["symbols"]}
        return AvroType(schema, pa.string(), pa.string(), 1)

    def _fixed(self, node: Any, path: tuple[str, ...]) -> AvroType:
        schema = {"type": "fixed", "name": node["name"], "size": node["size"]}
        arrow_type = pa.binary()
        if node.get("logicalType") == "decimal":
            arrow_type = self._decimal(node, schema, path)
        return AvroType(schema, arrow_type, arrow_type, int(node["size"]))

    def _array(self, node: Any, path: tuple[str, ...]) -> AvroType:
        items = self.rewrite(node["items"], (*path, "items"))
        if items.min_bytes == 0:
            raise SchemaError(
                f"avro: {_shown(path)}: items without bytes are not read: a few bytes could say "
                "billions of them"
            )
        schema = {"type": "array", "items": items.schema}
        return AvroType(schema, pa.list_(items.built), pa.list_(items.final), 1)

    def _primitive(self, node: Any, kind: str, path: tuple[str, ...]) -> AvroType:
        logical = node.get("logicalType")
        if kind not in PRIMITIVES:
            return self._by_name(kind, path)
        if kind == "bytes" and logical == "decimal":
            schema = {"type": "bytes"}
            arrow_type = self._decimal(node, schema, path)
            return AvroType(schema, arrow_type, arrow_type, 1)
        arrow_type, min_bytes = PRIMITIVES[kind]
        built, final = LOGICAL_TYPES.get((kind, logical), (arrow_type, arrow_type))
        is_kept = (kind, logical) in LOGICAL_TYPES
        return AvroType(
            {"type": kind, "logicalType": logical} if is_kept else kind, built, final, min_bytes
        )

    def _decimal(self, node: Any, schema: dict[str, Any], path: tuple[str, ...]) -> pa.DataType:
        precision, scale = node.get("precision"), node.get("scale", 0)
        if not (isinstance(precision, int) and 0 < precision <= MAX_DECIMAL_PRECISION):
            raise SchemaError(
                f"avro: {_shown(path)}: decimal with precision {precision}: Arrow and Spark have "
                f"1 to {MAX_DECIMAL_PRECISION}"
            )
        if not (isinstance(scale, int) and 0 <= scale <= precision):
            raise SchemaError(f"avro: {_shown(path)}: decimal with scale {scale}")
        schema |= {"logicalType": "decimal", "precision": precision, "scale": scale}
        return pa.decimal128(precision, scale)

    def _union(self, node: list[Any], path: tuple[str, ...]) -> AvroType:
        kinds = [branch_name(branch) for branch in node]
        if len(set(kinds)) < len(kinds):
            raise SchemaError(f"avro: {_shown(path)}: a union has the same type twice")
        widened = widened_union(node)
        if widened is not None:
            arrow_type = PRIMITIVES[widened][0]
            return AvroType(kinds, arrow_type, arrow_type, 1)
        types = [
            self.rewrite(branch, (*path, kind)) for branch, kind in zip(node, kinds, strict=True)
        ]
        if not is_true_union(node):
            built, final = next(
                ((each.built, each.final) for each in types if each.schema != "null"),
                (pa.null(), pa.null()),
            )
            return AvroType([each.schema for each in types], built, final, 1)
        schemas: list[Any] = []
        members: list[pa.Field] = []
        finals: list[pa.Field] = []
        for kind, each in zip(kinds, types, strict=True):
            if kind == "null":
                schemas.append("null")
                continue
            member = f"member{len(members)}"
            name = unique_name(re.sub(r"\W", "_", "_".join(("klog", *path, kind))), self.taken)
            fields = [{"name": member, "type": each.schema}]
            schemas.append({"type": "record", "name": name, "fields": fields})
            members.append(pa.field(member, each.built))
            finals.append(pa.field(member, each.final))
        return AvroType(schemas, pa.struct(members), pa.struct(finals), 1)


def _shown(path: tuple[str, ...]) -> str:
    return ".".join(path) or "the schema"
