"""Avro data for tests, written by fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro
import pyarrow as pa

from klog.values.avro_decoder import AvroDecoder
from klog.values.avro_schema import load_avro_schema
from klog.values.decoded_column import DecodedColumn


def encoded(schema: Any, *values: Any) -> list[bytes]:
    parsed = fastavro.parse_schema(schema)
    rows = []
    for value in values:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, parsed, value)
        rows.append(file.getvalue())
    return rows


def decoded(schema: Any, rows: Sequence[bytes | None]) -> DecodedColumn:
    return AvroDecoder(load_avro_schema(json.dumps(schema))).decode_array(
        pa.array(rows, pa.binary())
    )


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    """Return a record of fields: pairs of name and type, or dicts."""
    return {
        "type": "record",
        "name": name,
        "fields": [
            each if isinstance(each, dict) else {"name": each[0], "type": each[1]}
            for each in fields
        ],
    }
