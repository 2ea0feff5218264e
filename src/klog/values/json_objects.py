"""Decoded rows as JSON values, each by the schema that it was written with: for a person to read.

Columns need one type for all rows; this does not. So a row shows exactly the fields that its
producer wrote. Dates and times are ISO 8601, decimals are texts, and bytes are text or an object
with their base64, as `klog consume --json` prints them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from klog.errors import SchemaError, SchemaNotFoundError
from klog.text_output import json_bytes
from klog.values.column_format import ColumnFormat, make_decoder
from klog.values.confluent_framing import FramedRows, read_message_indexes, read_prefixes
from klog.values.decoded_column import Decoder, printable
from klog.values.json_decoder import json_rows
from klog.values.python_values import python_values, with_dicts, with_shortest_floats
from klog.values.registry_settings import Registry

Writer: TypeAlias = tuple[int, tuple[int, ...]]
"""A schema id, and the message indexes of Protobuf."""
_SPACES = str.maketrans("\r\n\t", "   ")


class JsonText(str):
    """A JSON value as its producer wrote it: Python's numbers would lose digits."""

    __slots__ = ()


class ObjectDecoder:
    """Decodes rows of a column to JSON values."""

    def __init__(self, column: ColumnFormat) -> None:
        """Take the format. With a registry, no schema is needed."""
        self._column = column
        self._decoders: dict[Writer, Decoder] = {}
        self._decoder: Decoder | None = None
        if column.name != "json" and not self._is_by_writer:
            self._decoder = make_decoder(column)

    @property
    def _is_by_writer(self) -> bool:
        return self._column.registry is not None and self._column.name in ("avro", "protobuf")

    def decode(self, rows: pa.Array) -> tuple[list[Any], dict[int, str]]:
        """Return JSON values, and the reasons of rows that cannot be decoded.

        Args:
            rows: Binary rows.

        Raises:
            RegistryError: The registry does not answer.
        """
        if self._column.name == "json":
            return _json_texts(rows, has_prefix=self._column.registry is not None)
        if self._decoder is not None:
            return _objects(self._decoder, rows)
        framed = read_prefixes(rows)
        values: list[Any] = [None] * len(rows)
        reasons = framed.reasons
        for writer, entries in self._by_writer(framed).items():
            decoder = self._writer_decoder(*writer)
            if isinstance(decoder, str):
                reasons |= {row: decoder for row, _ in entries}
                continue
            data = pa.array([value for _, value in entries], pa.binary())
            objects, more = _objects(decoder, data)
            for (row, _), each in zip(entries, objects, strict=True):
                values[row] = each
            reasons |= {entries[place][0]: reason for place, reason in more.items()}
        return values, reasons

    def _by_writer(self, framed: FramedRows) -> dict[Writer, list[tuple[int, bytes]]]:
        """Return the rows of each writer's message, with their numbers."""
        by_writer: dict[Writer, list[tuple[int, bytes]]] = {}
        for schema_id, numbers in framed.rows_by_id.items():
            for row in numbers:
                value = framed.values[row] or b""
                indexes: tuple[int, ...] = ()
                if self._column.name == "protobuf":
                    try:
                        indexes, position = read_message_indexes(value)
                    except ValueError as exc:
                        framed.reasons[row] = printable(f"protobuf: {exc}")
                        continue
                    value = value[position:]
                by_writer.setdefault((schema_id, indexes), []).append((row, value))
        return by_writer

    def _writer_decoder(self, schema_id: int, indexes: tuple[int, ...]) -> Decoder | str:
        """Return the decoder of a writer's schema, or the reason why there is none."""
        registry = self._column.registry
        if registry is None:
            raise ValueError("there is no registry")
        writer = schema_id, indexes
        if writer not in self._decoders:
            try:
                self._decoders[writer] = _decoder_of(self._column.name, registry, *writer)
            except (SchemaError, SchemaNotFoundError) as exc:
                return str(exc)  # Not kept: the registry may have it later.
        return self._decoders[writer]


def json_value(value: Any) -> Any:
    """Return a value of Arrow's `to_pylist` as a JSON value.

    Args:
        value: The value.
    """
    if isinstance(value, Mapping):
        return {str(json_value(name)): json_value(each) for name, each in value.items()}
    if isinstance(value, list):
        return [json_value(each) for each in value]
    if isinstance(value, bytes):
        return json_bytes(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{value.total_seconds():f}s"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _json_texts(rows: pa.Array, *, has_prefix: bool) -> tuple[list[Any], dict[int, str]]:
    """Return the texts of rows on one line, and the reasons of those that are not JSON."""
    _, reasons = json_rows(rows, has_prefix=has_prefix)
    data = read_prefixes(rows).values if has_prefix else rows.to_pylist()
    texts = [
        None if value is None or row in reasons else JsonText(_on_one_line(value.decode()))
        for row, value in enumerate(data)
    ]
    return texts, reasons


def _on_one_line(text: str) -> str:
    """Return JSON with spaces for its line breaks, which are only between values."""
    return text.strip().translate(_SPACES)


def _objects(decoder: Decoder, rows: pa.Array) -> tuple[list[Any], dict[int, str]]:
    result = decoder.decode_array(rows)
    array = with_shortest_floats(result.values)
    try:
        values = python_values(array)
    except (ArithmeticError, KeyError, ValueError):
        values = [_object(each) for each in array]
    reasons = enumerate(result.reasons.to_pylist())
    return list(map(json_value, values)), {row: text for row, text in reasons if text is not None}


def _object(value: pa.Scalar) -> Any:
    """Return a value; its text if Python has no such value, such as a date after the year 9999."""
    try:
        return with_dicts(value.as_py(), value.type)
    except (ArithmeticError, KeyError, ValueError):
        return str(value)


def _decoder_of(name: str, registry: Registry, schema_id: int, indexes: tuple[int, ...]) -> Decoder:
    if name == "avro":
        from klog.values.avro_decoder import AvroDecoder, registered_avro_schema

        return AvroDecoder(registered_avro_schema(registry, schema_id))
    from klog.values.protobuf_decoder import ProtobufDecoder
    from klog.values.protobuf_schema import registered_protobuf_schema

    schema = registered_protobuf_schema(registry, schema_id)
    return ProtobufDecoder(schema, schema.message_name(indexes))
