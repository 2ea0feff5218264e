"""Avro's binary encoding to Arrow, in whole batches.

The data of a batch that share a writer's schema become one Avro array in memory, which fastavro's
compiled reader reads in one call. A random mark after each datum is part of the schema:
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
from klog.values.avro_defaults import set_defaults
from klog.values.avro_nodes import invalid_schemas
from klog.values.avro_resolution import resolve
from klog.values.avro_schema import LoadedSchema, load_avro_schema
from klog.values.confluent_framing import read_prefixes
from klog.values.decoded_column import DecodedColumn, as_binary, printable
from klog.values.nested_cast import cast_nested
from klog.values.optional_libraries import import_library
from klog.values.registered_schemas import AVRO, schema_of_type
from klog.values.registry_settings import Registry
from klog.values.row_conversion import arrays_of_rows, nested_misfits

_MARK_BYTES = 8
_MARK, _DATUM, _ROWS = "__klog_mark", "__klog_datum", "rows"
_HOSTILE = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, OSError,
    RecursionError, TypeError, ValueError, struct.error,
)  # fmt: skip
"""What fastavro raises for bytes that do not follow the schema."""


class Choices(list[Any]):
    """Branches of a union or symbols of an enum, which have no negative indexes.

    fastavro's compiled reader asks for the length only to count such an index from the end.
    """

    def __len__(self) -> int:
        """Raise `IndexError`."""
        raise IndexError


@dataclass(frozen=True, slots=True)
class WriterPlan:
    """How the data of one writer are read: its schema and the reader's, as arrays of rows."""

    writer: Any
    reader: Any
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
        file = io.BytesIO(b"".join((_long(len(values)), mark.join((*values, b"")), b"\0")))
        batch = import_library("fastavro").schemaless_reader(file, self.writer, self.reader)
        rows: list[Any] = batch[_ROWS]
        return rows

    def _read_each(self, values: Sequence[bytes], mark: bytes) -> tuple[list[Any], dict[int, str]]:
        rows: list[Any] = []
        reasons = {}
        for number, value in enumerate(values):
            try:
                (row,) = self._read_block([value], mark)
                if row[_MARK] != mark:
                    raise ValueError("bytes are left over, or the datum ends too early")
                rows.append(row if self.is_record else row[_DATUM])
            except _errors() as exc:
                rows.append(None)
                reasons[number] = f"avro: {_reason(exc)}"
        return rows, reasons


class AvroDecoder:
    """Decodes data with or without a registry's prefix to the type of the reader's schema."""

    def __init__(self, reader: LoadedSchema, registry: Registry | None = None) -> None:
        """Take the reader's schema; a registry knows the writers' by the ids of the rows."""
        self._reader = reader
        self._registry = registry
        self._type = reader.types()
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
        return arrays_of_rows(rows, reasons, self._to_array, self._misfits)

    def _misfits(self, rows: Sequence[Any]) -> dict[int, str]:
        return nested_misfits(rows, self._type.built, self._type.final, "avro: ")

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
            return writer_plan(self._reader, self._reader)
        writer = registered_avro_schema(self._registry, schema_id)
        writer.types()  # Refuses what may need unbounded memory, also in fields that are left out.
        return writer_plan(writer, self._reader)


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


def writer_plan(writer: LoadedSchema, reader: LoadedSchema) -> WriterPlan:
    """Return how data are read.

    Args:
        writer: The schema that they were written with.
        reader: The schema to read them as.

    Raises:
        SchemaError: By Avro's rules no datum can be read.
    """
    parse_schema = import_library("fastavro").parse_schema
    pair, resolution = resolve(writer, reader)
    is_record = all(isinstance(each, dict) and each["type"] == "record" for each in pair)
    with invalid_schemas():
        parsed = [parse_schema(_of_batch(each, is_record)) for each in pair]
    for each in (parsed[0], *parsed[0]["__named_schemas"].values()):
        _set_choices(each)
    for each in (parsed[1], *parsed[1]["__named_schemas"].values()):
        set_defaults(each, resolution.defaults)
    return WriterPlan(parsed[0], parsed[1] if resolution.has_changes else None, is_record)


def _of_batch(schema: Any, is_record: bool) -> Any:
    """Return the schema of many rows, each with a mark after it: after a record's last field."""
    mark = {"name": _MARK, "type": {"type": "fixed", "name": "klog_Mark", "size": _MARK_BYTES}}
    if is_record:
        row = {**schema, "fields": [*schema["fields"], mark]}
    else:
        fields = [{"name": _DATUM, "type": schema}, mark]
        row = {"type": "record", "name": "klog_Datum", "fields": fields}
    rows = {"name": _ROWS, "type": {"type": "array", "items": row}}
    return {"type": "record", "name": "klog_Batch", "fields": [rows]}


def _set_choices(schema: Any) -> None:
    """Put `Choices` into a parsed schema, which is changed."""
    if isinstance(schema, list):
        for branch in schema:
            _set_choices(branch)
    elif isinstance(schema, dict):
        for part in ("type", "items", "values", "symbols"):
            if type(schema.get(part)) is list:
                schema[part] = Choices(schema[part])
            _set_choices(schema.get(part))
        for each in schema.get("fields", ()):
            _set_choices(each)


def _reason(exc: BaseException) -> str:
    """Return what is wrong with a datum. What fastavro says of a union may have all of a schema."""
    text = str(exc)
    if isinstance(exc, IndexError):
        return "an index of a union or an enum is out of range"
    if text.lower().startswith("schema mismatch"):
        return "its branch of a union is not in the reader's schema"
    return printable(text or type(exc).__name__)


def _long(number: int) -> bytes:
    """Return a count as Avro writes it."""
    return unsigned_varint(number << 1)


def _errors() -> tuple[type[BaseException], ...]:
    return (*_HOSTILE, import_library("fastavro.read").SchemaResolutionError)
