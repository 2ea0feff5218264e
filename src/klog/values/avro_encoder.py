"""Arrow to Avro's binary encoding, with or without a registry's prefix."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa

from klog.errors import SchemaError
from klog.values.avro_defaults import set_defaults
from klog.values.avro_schema import LoadedSchema
from klog.values.decoded_column import printable
from klog.values.optional_libraries import import_library
from klog.values.python_values import python_values


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
        if column.type.equals(self._type):
            rows = python_values(column)
        else:
            rows = python_values(_cast(column, self._type))
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
                raise SchemaError(
                    f"avro: a value does not fit the schema: {printable(exc)}"
                ) from exc
            encoded.append(file.getvalue())
        return pa.array(encoded, pa.binary())


def _cast(column: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Return a column with the types of a schema; fields may be missing or at another place.

    Raises `SchemaError` for a value that has no equal one in the type.
    """
    if pa.types.is_struct(column.type) and pa.types.is_struct(arrow_type):
        places = {field.name: field.type for field in arrow_type}
        extra = [field.name for field in column.type if field.name not in places]
        if extra:
            raise SchemaError(
                f"avro: the schema has no field {extra[0]}. It has {', '.join(places)}"
            )
        names = [field.name for field in column.type]
        arrays = [_cast(column.field(index), places[name]) for index, name in enumerate(names)]
        fields = [pa.field(name, each.type) for name, each in zip(names, arrays, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=column.is_null())
    try:
        return column.cast(arrow_type)
    except (pa.ArrowException, ValueError) as exc:
        raise SchemaError(
            f"avro: {column.type} does not fit {arrow_type}: {printable(exc)}"
        ) from exc
