"""Arrow to Avro's binary encoding, with or without a registry's prefix."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa

from klog.errors import SchemaError
from klog.values.avro_defaults import set_defaults
from klog.values.avro_nodes import invalid_schemas
from klog.values.avro_schema import LoadedSchema
from klog.values.checked_cast import checked_cast
from klog.values.optional_libraries import import_library
from klog.values.python_values import python_values

_CORRECT = "Correct the value, or use another schema"


class AvroEncoder:
    """Encodes values by a schema.

    Fields have the schema's names. A field with a default may be left out. A value that a type of
    Avro cannot hold is an error, never cut off.
    """

    def __init__(self, schema: LoadedSchema, prefix: bytes = b"") -> None:
        """Take the schema, and what is written before each value."""
        self._schema = schema
        self._prefix = prefix
        written = schema.types()
        self._type = written.final
        named: dict[str, Any] = {}
        with invalid_schemas():
            self._parsed = import_library("fastavro").parse_schema(written.schema, named)
        for each in (self._parsed, *named.values()):
            set_defaults(each, schema.defaults())

    def __reduce__(self) -> Any:
        """Pickle by the arguments."""
        return type(self), (self._schema, self._prefix)

    def encode_array(self, column: pa.Array) -> pa.Array:
        """Return binary rows; null stays null.

        Args:
            column: The values.

        Raises:
            SchemaError: A value does not fit the schema; the message has its reason.
        """
        fastavro = import_library("fastavro")
        rows = python_values(checked_cast(column, self._type, "avro: "))
        encoded: list[bytes | None] = []
        for row in rows:
            if row is None:
                encoded.append(None)
                continue
            file = io.BytesIO()
            file.write(self._prefix)
            try:
                fastavro.schemaless_writer(file, self._parsed, row)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
                raise SchemaError(f"avro: {_misfit(row, self._parsed)}") from exc
            encoded.append(file.getvalue())
        return pa.array(encoded, pa.binary())


def _misfit(row: Any, schema: Any) -> str:
    """Return which field of a row does not fit a schema; what fastavro raises has its value."""
    validation = import_library("fastavro.validation")
    try:
        validation.validate(row, schema)
    except validation.ValidationError as exc:
        # Of a union there is an error for each branch; that of null says nothing.
        errors = [error for error in exc.errors if error.schema != "null"] or exc.errors
        kind = errors[-1].schema
        kind = kind["type"] if isinstance(kind, dict) else kind
        return f"{errors[-1].field or 'the value'} does not fit {kind}. {_CORRECT}"
    return f"a value does not fit the schema. {_CORRECT}"
