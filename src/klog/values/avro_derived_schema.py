"""An Avro schema for a type of Arrow, for a topic that has none yet.

Every field is nullable with the default null, so that later schemas can leave it out. Nested
records are named by their path, as Spark's `to_avro` does. If two paths are the same name, such as
`a_b` and `a.b`, the later record has a number at its end.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from klog.errors import SchemaError
from klog.values.avro_nodes import unique_name

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
}


def derived_avro_schema(arrow_type: pa.DataType, name: str = "topLevelRecord") -> str:
    """Return the schema of values of a type.

    Args:
        arrow_type: The type.
        name: The name of the outermost record.

    Raises:
        SchemaError: Avro has no such type, or a name is not one of Avro.
    """
    return json.dumps(_schema_of(arrow_type, name, set()))


def _schema_of(arrow_type: pa.DataType, name: str, taken: set[str]) -> Any:
    if arrow_type in _SCALARS:
        return _SCALARS[arrow_type]
    if pt.is_timestamp(arrow_type):
        kind = "timestamp-micros" if arrow_type.tz else "local-timestamp-micros"
        return {"type": "long", "logicalType": kind}
    if pt.is_time(arrow_type):
        return {"type": "long", "logicalType": "time-micros"}
    if pt.is_decimal(arrow_type):
        logical = {"precision": arrow_type.precision, "scale": arrow_type.scale}
        return {"type": "bytes", "logicalType": "decimal", **logical}
    if pt.is_map(arrow_type):
        return {"type": "map", "values": _nullable(arrow_type.item_type, f"{name}_value", taken)}
    if pt.is_list(arrow_type) or pt.is_large_list(arrow_type):
        items = _nullable(arrow_type.value_type, f"{name}_element", taken)
        return {"type": "array", "items": items}
    if not pt.is_struct(arrow_type):
        raise SchemaError(f"avro: {name}: no type of Avro for {arrow_type}. Cast the column")
    name = unique_name(name, taken)
    fields = []
    for field in arrow_type:
        if not _NAME.fullmatch(field.name):
            raise SchemaError(f"avro: {field.name!r} is not a name of Avro. Rename the field")
        schema = _nullable(field.type, f"{name}_{field.name}", taken)
        fields.append({"name": field.name, "type": schema, "default": None})
    return {"type": "record", "name": name, "fields": fields}


def _nullable(arrow_type: pa.DataType, name: str, taken: set[str]) -> list[Any]:
    return ["null", _schema_of(arrow_type, name, taken)]
