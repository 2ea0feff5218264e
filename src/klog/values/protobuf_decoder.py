"""Protobuf to Arrow, in whole batches.

Protobuf's own C parser makes a message of each row; columns are made field by field. Bytes are read
with the reader's message alone, because fields have numbers. The writer's schema only says which
message a row is, by Confluent's message indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from klog.errors import SchemaError, SchemaNotFoundError
from klog.values.confluent_framing import read_message_indexes, read_prefixes
from klog.values.decoded_column import DecodedColumn, as_binary, printable
from klog.values.optional_libraries import import_library
from klog.values.protobuf_columns import message_column
from klog.values.protobuf_schema import ProtobufSchema, registered_protobuf_schema
from klog.values.registry_settings import Registry
from klog.values.row_conversion import arrays_of_rows, halved_misfits

_OUT_OF_RANGE = "protobuf: a Timestamp or a Duration is beyond 64 bits of microseconds"
"""Of all types of fields, only these two have other limits than Arrow's."""


class ProtobufDecoder:
    """Decodes messages with or without a registry's prefix."""

    def __init__(
        self, reader: ProtobufSchema, message: str, registry: Registry | None = None
    ) -> None:
        """Take the reader's schema and the full name of its message."""
        self._reader = reader
        self._message = message
        self._registry = registry
        descriptor = reader.descriptor(message)
        self._column = message_column(descriptor)
        factory = import_library("google.protobuf.message_factory")
        self._parse = factory.GetMessageClass(descriptor).FromString
        self._errors = (import_library("google.protobuf.message").DecodeError, ValueError)
        self._schemas: dict[int, ProtobufSchema | str] = {}

    def __reduce__(self) -> Any:
        """Pickle by the arguments."""
        return type(self), (self._reader, self._message, self._registry)

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type of the values."""
        return self._column.arrow_type

    def decode_array(self, column: pa.Array) -> DecodedColumn:
        """Return the values of binary rows.

        Args:
            column: The rows.

        Raises:
            RegistryError: The registry does not answer.
        """
        reasons: dict[int, str] = {}
        if self._registry is None:
            values = as_binary(column).to_pylist()
        else:
            values = self._without_prefixes(self._registry, column, reasons)
        return arrays_of_rows(
            self._messages(values, reasons), reasons, self._column.build, self._misfits
        )

    def _misfits(self, messages: Sequence[Any]) -> dict[int, str]:
        return halved_misfits(messages, self._column.build, _OUT_OF_RANGE)

    def _messages(self, values: Sequence[bytes | None], reasons: dict[int, str]) -> list[Any]:
        messages: list[Any] = []
        for row, value in enumerate(values):
            try:
                messages.append(None if value is None else self._parse(value))
            except self._errors as exc:
                messages.append(None)
                reasons[row] = printable(f"protobuf: {exc}")
        return messages

    def _without_prefixes(
        self, registry: Registry, column: pa.Array, reasons: dict[int, str]
    ) -> list[bytes | None]:
        framed = read_prefixes(column)
        reasons |= framed.reasons
        values = framed.values
        for schema_id, rows in framed.rows_by_id.items():
            schema = self._schema(registry, schema_id)
            if isinstance(schema, str):
                for row in rows:
                    values[row] = None
                    reasons[row] = schema
                continue
            names: dict[tuple[int, ...], str] = {}
            for row in rows:
                try:
                    values[row] = self._without_indexes(schema, values[row] or b"", names)
                except (ValueError, SchemaError) as exc:
                    values[row] = None
                    reasons[row] = printable(f"protobuf: {exc}")
        return values

    def _without_indexes(
        self, schema: ProtobufSchema, value: bytes, names: dict[tuple[int, ...], str]
    ) -> bytes:
        indexes, position = read_message_indexes(value)
        if indexes not in names:
            names[indexes] = schema.message_name(indexes)
        if names[indexes] != self._message:
            raise ValueError(f"the message is {names[indexes]}, not {self._message}")
        return value[position:]

    def _schema(self, registry: Registry, schema_id: int) -> ProtobufSchema | str:
        """Return the writer's schema, or the reason why there is none."""
        if schema_id not in self._schemas:
            try:
                self._schemas[schema_id] = registered_protobuf_schema(registry, schema_id)
            except SchemaNotFoundError as exc:
                return str(exc)  # The registry may have it later.
            except SchemaError as exc:
                self._schemas[schema_id] = str(exc)
        return self._schemas[schema_id]
