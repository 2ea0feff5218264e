"""Avro's binary encoding to Arrow, in whole batches.

The data of a batch that share a writer's schema become one block of an Avro file in memory, which
fastavro's compiled reader reads in one call. A random mark after each datum is part of the schema:
if every mark is read where a datum ends, then no datum had more or fewer bytes than its schema
says. If one had, the batch is read again, datum by datum, to find the rows.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from klog.errors import SchemaError, SchemaNotFoundError
from klog.logformat.protocol.primitive_types import unsigned_varint
from klog.values.avro_defaults import with_read_defaults
from klog.values.avro_schema import AvroType, LoadedSchema, load_avro_schema
from klog.values.avro_writer_fields import with_writer_fields
from klog.values.confluent_framing import read_prefixes
from klog.values.decoded_column import DecodedColumn, arrays_of_rows, as_binary, printable
from klog.values.nested_cast import cast_nested
from klog.values.optional_libraries import import_library
from klog.values.registered_schemas import AVRO, schema_of_type
from klog.values.registry_settings import Registry

_MARK_BYTES = 8
_MARK, _DATUM = "__klog_mark", "__klog_datum"
_SYNC = b"klog's own block"
_HOSTILE = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, OSError,
    RecursionError, TypeError, ValueError, struct.error,
)  # fmt: skip
"""What fastavro raises for bytes that do not follow the schema."""


@dataclass(frozen=True, slots=True)
class WriterPlan:
    """How the data of one writer are read."""

    writer: Any
    reader: Any
    header: bytes
    is_record: bool

    def read(self, values: Sequence[bytes]) -> tuple[list[Any], dict[int, str]]:
        """Return the rows of data, and the reasons of those that cannot be read."""
        mark = os.urandom(_MARK_BYTES)
        try:
            rows = self._read_block(values, mark)
        except _errors():
            return self._read_each(values, mark)
        if [row[_MARK] for row in rows] != [mark] * len(values):
            return self._read_each(values, mark)
        return rows if self.is_record else [row[_DATUM] for row in rows], {}

    def _read_block(self, values: Sequence[bytes], mark: bytes) -> list[Any]:
        body = mark.join((*values, b""))
        block = b"".join((self.header, _long(len(values)), _long(len(body)), body, _SYNC))
        rows = import_library("fastavro").reader(io.BytesIO(block), self.reader)
        return list(rows)

    def _read_each(self, values: Sequence[bytes], mark: bytes) -> tuple[list[Any], dict[int, str]]:
        read = import_library("fastavro").schemaless_reader
        rows: list[Any] = []
        reasons = {}
        for number, value in enumerate(values):
            file = io.BytesIO(value + mark)
            try:
                row = read(file, self.writer, self.reader)
                if row[_MARK] != mark or file.tell() != len(value) + _MARK_BYTES:
                    raise ValueError("bytes are left over, or the datum ends too early")
                rows.append(row if self.is_record else row[_DATUM])
            except _errors() as exc:
                rows.append(None)
                reasons[number] = printable(f"avro: {str(exc) or type(exc).__name__}")
        return rows, reasons


class AvroDecoder:
    """Decodes data with or without a registry's prefix to the type of the reader's schema."""

    def __init__(self, reader: LoadedSchema, registry: Registry | None = None) -> None:
        """Take the reader's schema; a registry knows the writers' by the ids of the rows."""
        self._reader = reader
        self._registry = registry
        self._type = reader.as_read()
        self._plans: dict[int | None, WriterPlan | str] = {}

    def __reduce__(self) -> Any:
        """Pickle by the arguments."""
        return type(self), (self._reader, self._registry)

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type of the values."""
        return self._type.final

    def decode_array(self, column: pa.Array) -> DecodedColumn:
        """Return the values of binary rows.

        Args:
            column: The rows.

        Raises:
            RegistryError: The registry does not answer.
        """
        rows_by_id: dict[int | None, list[int]]
        if self._registry is None:
            values = as_binary(column).to_pylist()
            reasons: dict[int, str] = {}
            rows_by_id = {None: [row for row, value in enumerate(values) if value is not None]}
        else:
            framed = read_prefixes(column)
            values, reasons = framed.values, framed.reasons
            rows_by_id = dict(framed.rows_by_id.items())
        rows: list[Any] = [None] * len(values)
        for schema_id, numbers in rows_by_id.items():
            plan = self._plan(schema_id)
            if isinstance(plan, str):
                reasons |= dict.fromkeys(numbers, plan)
            elif len(numbers) == len(rows):
                rows, more = plan.read(values)
                reasons |= more
            else:
                decoded, more = plan.read([values[number] for number in numbers])
                for number, row in zip(numbers, decoded, strict=True):
                    rows[number] = row
                reasons |= {numbers[place]: reason for place, reason in more.items()}
        return arrays_of_rows(rows, reasons, self._to_array)

    def _to_array(self, rows: Sequence[Any]) -> pa.Array:
        return cast_nested(pa.array(rows, self._type.built), self._type.final)

    def _plan(self, schema_id: int | None) -> WriterPlan | str:
        """Return how to read data with this id, or the reason why that is not possible."""
        if schema_id not in self._plans:
            try:
                self._plans[schema_id] = self._make_plan(schema_id)
            except SchemaNotFoundError as exc:
                return str(exc)  # The registry may have it later.
            except SchemaError as exc:
                self._plans[schema_id] = str(exc)
        return self._plans[schema_id]

    def _make_plan(self, schema_id: int | None) -> WriterPlan:
        if schema_id is None or self._registry is None:
            return writer_plan(self._type, self._type)
        writer = registered_avro_schema(self._registry, schema_id)
        if _without_defaults(writer.as_read().schema) == _without_defaults(self._type.schema):
            return writer_plan(self._type, self._type)
        return writer_plan(writer.as_read(is_writer=True), self._type)


def registered_avro_schema(registry: Registry, schema_id: int) -> LoadedSchema:
    """Return the schema with an id.

    Args:
        registry: The registry.
        schema_id: The id.

    Raises:
        RegistryError: The registry does not have it, or does not answer.
        SchemaError: It is not a schema of Avro.
    """
    schema, references = schema_of_type(registry, schema_id, AVRO)
    return load_avro_schema(schema.text, {name: each.text for name, each in references.items()})


def writer_plan(writer: AvroType, reader: AvroType) -> WriterPlan:
    """Return how data are read.

    Args:
        writer: The type that they were written with.
        reader: The type to read them as, the same object if it is the same.
    """
    fastavro = import_library("fastavro")
    is_record = _is_record(writer.schema) and _is_record(reader.schema)
    try:
        marked = fastavro.parse_schema(_marked(writer.schema, is_record))
        resolved = None
        if writer is not reader:
            schema = with_writer_fields(reader.schema, writer.schema)
            resolved = with_read_defaults(fastavro.parse_schema(_marked(schema, is_record)))
    except Exception as exc:
        raise SchemaError(f"avro: invalid schema: {type(exc).__name__}: {exc}") from exc
    file = io.BytesIO()
    fastavro.writer(file, _without_defaults(marked), [], sync_marker=_SYNC)
    return WriterPlan(marked, resolved, file.getvalue(), is_record)


def _is_record(schema: Any) -> bool:
    return isinstance(schema, dict) and schema["type"] == "record"


def _marked(schema: Any, is_record: bool) -> Any:
    """Return a record with a mark after its last field; another type is made a field first."""
    mark = {"name": _MARK, "type": {"type": "fixed", "name": "klog.Mark", "size": _MARK_BYTES}}
    if is_record:
        return {**schema, "fields": [*schema["fields"], mark]}
    fields = [{"name": _DATUM, "type": schema}, mark]
    return {"type": "record", "name": "klog.Datum", "fields": fields}


def _without_defaults(schema: Any) -> Any:
    """Return a schema without its defaults, which may be bytes, for a header in JSON."""
    if isinstance(schema, dict):
        return {name: _without_defaults(each) for name, each in schema.items() if name != "default"}
    if isinstance(schema, list):
        return [_without_defaults(each) for each in schema]
    return schema


def _long(number: int) -> bytes:
    """Return a count as Avro writes it."""
    return unsigned_varint(number << 1)


def _errors() -> tuple[type[BaseException], ...]:
    return (*_HOSTILE, import_library("fastavro.read").SchemaResolutionError)
