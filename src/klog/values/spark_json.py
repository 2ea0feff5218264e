"""JSON and text in Spark, by Spark's own expressions, so that no row goes to Python.

The rules: a row is decoded once, by a projection of its own; the next projection looks at the
result. Spark does not merge the two, because the result is used more than once.

Spark's parser reads the first JSON value of a row and ignores what follows it.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import DataType, StringType, StructField, StructType

from klog.values.confluent_framing import PREFIX_BYTES

CORRUPT = "__klog_corrupt"
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
NO_PREFIX = "no schema registry's prefix. If the topic has none, leave out the registry"


def json_value(value: Column, schema: DataType, *, has_prefix: bool) -> Column:
    """Return the first projection: a struct of the text, the parsed value, and two checks.

    Args:
        value: The binary column.
        schema: The type of the values.
        has_prefix: Each value begins with a registry's prefix.
    """
    data = F.substr(value, F.lit(PREFIX_BYTES + 1)) if has_prefix else value
    text = data.cast("string")
    parsed_schema: Any = schema
    if isinstance(schema, StructType):
        parsed_schema = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    framed = F.lit(True)
    if has_prefix:
        is_long = F.octet_length(value) >= PREFIX_BYTES
        framed = is_long & (F.substring(value, 1, 1) == F.lit(b"\0"))
    return F.struct(
        text.alias("text"),
        F.from_json(text, parsed_schema, _OPTIONS).alias("parsed"),
        framed.alias("framed"),
    )


def json_result(value: Column, schema: DataType) -> tuple[Column, Column]:
    """Return the second projection: the value, and the reason of a row that is not JSON.

    Args:
        value: What `json_value` has returned.
        schema: The type of the values.
    """
    text, parsed = value["text"], value["parsed"]
    is_bad = parsed.isNull()
    if isinstance(schema, StructType):
        is_bad = is_bad | parsed[CORRUPT].isNotNull()
        fields = [parsed.getField(name).alias(name) for name in schema.names]
        parsed = F.struct(*fields)
    reason = (
        F.when(text.isNull(), None)
        .when(~value["framed"], NO_PREFIX)
        .when(~F.is_valid_utf8(text), "json: not UTF-8")
        .when(is_bad & (F.trim(text) != "null"), "json: not JSON, or a field has another type")
    )
    has_value = reason.isNull() & text.isNotNull() & (F.trim(text) != "null")
    return F.when(has_value, parsed), reason


def text_result(value: Column) -> tuple[Column, Column]:
    """Return the text of a binary column, and the reason of a row that is not UTF-8.

    Args:
        value: The binary column.
    """
    text = value.cast("string")
    reason = F.when(~F.is_valid_utf8(text), "string: not UTF-8")
    return F.when(reason.isNull(), text), reason


def failing(value: Column, reason: Column, message: Any) -> Column:
    """Return a column that fails the query at the first row that has a reason.

    Args:
        value: The value.
        reason: The reason, null for a decoded row.
        message: The column of the message.
    """
    return F.when(reason.isNotNull(), F.raise_error(message)).otherwise(value)
