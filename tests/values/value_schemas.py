"""Schemas with every kind of type, for bytes that may be anything."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.values.avro_rows import record
from tests.values.make_vectors import FOLDER

_ITEM = record(("sku", "string"), name="Item")
_ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


def _logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


AVRO = record(
    ("l", "long"), ("s", "string"), ("u", ["null", "int", "string", _ITEM]), ("b", "bytes"),
    ("a", {"type": "array", "items": {"type": "map", "values": ["null", "double"]}}),
    ("d", _logical("bytes", "decimal", precision=5, scale=2)),
    ("t", _logical("long", "timestamp-millis")), ("at", _logical("long", "time-micros")),
    ("e", _ENUM), ("f", "float"), ("day", _logical("int", "date")), ("ok", "boolean"),
)  # fmt: skip
AVRO_READER = record(
    ("l", "double"), {"name": "text", "type": "bytes", "aliases": ["s"]},
    ("u", ["string", "null", "long"]), ("e", {**_ENUM, "symbols": ["A"], "default": "A"}),
    {"name": "new", "type": {"type": "array", "items": "bytes"}, "default": ["\u00ff"]},
)  # fmt: skip
PROTOBUF = FOLDER / "shop.proto"
JSON = pa.struct(
    [
        ("i", pa.int64()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.bool_()),
        ("t", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("d", pa.decimal128(9, 2)),
        ("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.float64())),
        ("r", pa.struct([("x", pa.int8())])), ("ls", pa.list_(pa.string())),
    ]
)  # fmt: skip
