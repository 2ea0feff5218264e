"""JSON and text in Spark, by Spark's own expressions, so that no row goes to Python.

The rule: a row is parsed once. The condition that a row is bad uses the parsed record twice, and
Spark computes once what an expression always uses more than once. A projection for the record and
another one for the result would copy the text and the record, which takes a third more CPU.

Spark's parser reads the first JSON value of a row and ignores what follows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import DataType, StringType, StructField, StructType

from klog.errors import UndecodableError
from klog.raised_errors import raised_as
from klog.values.confluent_framing import PREFIX_BYTES

CORRUPT = "__klog_corrupt"
_ROOT = "__klog_root"
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
ENCODE_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
}
"""How `to_json` keeps null fields, microseconds, and the instant of a timestamp."""
NO_PREFIX = "no schema registry's prefix. If the topic has none, leave out the registry"


@dataclass(frozen=True, slots=True)
class Parsed:
    """The value of a good row, whether a row may be bad, and the reason of one that is bad."""

    value: Column
    is_bad: Column
    reason: Column

    def or_null(self) -> tuple[Column, Column]:
        """Return the value and the reason; each is null where the other one is not."""
        # Not `when(~is_bad, ...)`: the same condition in both is computed once.
        return F.when(self.is_bad, None).otherwise(self.value), F.when(self.is_bad, self.reason)

    def or_fail(self, message: Column) -> Column:
        """Return the value, and fail the query with an `UndecodableError` at the first bad row."""
        text = F.concat(F.lit(raised_as(UndecodableError)), message)
        failure = F.when(self.reason.isNotNull(), F.raise_error(text))
        return F.when(self.is_bad, failure).otherwise(self.value)


def json_result(value: Column, schema: DataType, *, has_prefix: bool) -> Parsed:
    """Return the value of a binary column.

    Args:
        value: The binary column.
        schema: The type of the values.
        has_prefix: Each value begins with a registry's prefix.
    """
    data = F.substr(value, F.lit(PREFIX_BYTES + 1)) if has_prefix else value
    text = data.cast("string")
    is_valid = F.is_valid_utf8(text)
    parsed, is_bad = _parsed(text, schema)
    is_bad = is_bad | ~is_valid
    framed = F.lit(True)
    if has_prefix:
        is_long = F.octet_length(value) >= PREFIX_BYTES
        framed = is_long & (F.substring(value, 1, 1) == F.lit(b"\0"))
        is_bad = is_bad | ~framed
    reason = (
        F.when(text.isNull(), None)
        .when(~framed, NO_PREFIX)
        .when(~is_valid, "json: not UTF-8")
        .when(
            F.btrim(text, F.lit(" \t\r\n")) != "null", "json: not JSON, or a field has another type"
        )
    )
    return Parsed(parsed, is_bad, reason)


def _parsed(text: Column, schema: DataType) -> tuple[Column, Column]:
    """Return the parsed value, and whether it is not what the text says."""
    if not isinstance(schema, StructType):
        # Only a struct says that a row is corrupt: of a list Spark would keep what it could parse.
        text = F.concat(F.lit(f'{{"{_ROOT}":'), text, F.lit("}"))
        schema = StructType([StructField(_ROOT, schema)])
        value, is_bad = _parsed(text, schema)
        return value.getField(_ROOT), is_bad
    with_corrupt = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    record = F.from_json(text, with_corrupt, _OPTIONS)
    fields = [record.getField(name).alias(name) for name in schema.names]
    if fields:
        # A struct of nothing but the fields would become another `from_json`, parsed again.
        first = F.when(record.getField(CORRUPT).isNull(), record.getField(schema.names[0]))
        fields[0] = first.alias(schema.names[0])
    return F.struct(*fields), record.isNull() | record.getField(CORRUPT).isNotNull()


def text_result(value: Column) -> Parsed:
    """Return the text of a binary column.

    Args:
        value: The binary column.
    """
    text = value.cast("string")
    return Parsed(text, ~F.is_valid_utf8(text), F.lit("string: not UTF-8"))
