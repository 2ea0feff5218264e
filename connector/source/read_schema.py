"""The schema of a read: what klog tells Spark, and what it takes from `.schema(...)` or a table.

The rule: klog has the columns of Spark's Kafka source, in their order and types. A schema that a
user or a table of the catalog gives may leave out columns, which are then not decoded. It cannot
rename, reorder or cast them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from klog.connector.options.read_columns import COLUMNS, DEFAULT_COLUMNS
from klog.connector.options.read_options import ReadOptions
from klog.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}


def schema_text(columns: Sequence[str]) -> str:
    """Return columns with their types, as Spark's SQL writes them.

    Args:
        columns: The names of the columns, in order.
    """
    return ", ".join(f"{name} {_TYPES[name]}" for name in columns)


def with_schema(options: ReadOptions, schema: StructType | None) -> ReadOptions:
    """Return the options of a read of the columns that a schema has.

    Args:
        options: The options of the read.
        schema: The schema as Spark hands it over: klog's own, a user's or a table's. None or one
            without columns for what the options say.

    Raises:
        OptionError: The schema has a column that klog has not, or has with another type or at
            another place, or one that the option `columns` leaves out.
    """
    names = tuple(schema.fieldNames()) if schema is not None else ()
    if schema is None or not names:
        return options
    difference = schema_difference(schema)
    if difference is not None:
        raise OptionError(
            f"schema: {difference}. Leave .schema(...) out, or create the table without columns, "
            'and change columns afterwards, as in .selectExpr("CAST(value AS STRING) AS value"). '
            f"klog reads {schema_text(COLUMNS)}"
        )
    all_columns = options.columns in (COLUMNS, DEFAULT_COLUMNS)
    if not all_columns and not set(names) <= set(options.columns):
        raise OptionError(
            f"columns: must agree with the schema, got {', '.join(options.columns)} and "
            f"{', '.join(names)}. Set only one of them"
        )
    return replace(options, columns=names)


def schema_difference(schema: StructType) -> str | None:
    """Return how a schema differs from klog's columns; None if it only leaves some out.

    Args:
        schema: The schema.
    """
    names = schema.fieldNames()
    for field in schema.fields:
        if field.name not in _TYPES:
            return f"there is no column {field.name}"
        type_name, own = field.dataType.simpleString(), _TYPES[field.name]
        if type_name != own:
            return f"the column {field.name} is {own}, got {type_name}"
    if names != [name for name in COLUMNS if name in names]:
        return f"the columns {', '.join(names)} are in another order here"
    return None
