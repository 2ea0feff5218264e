"""Schemas in Spark's types: given, inferred from a sample, and evolving."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from klog.errors import OptionError, SchemaError
from klog.values.batch_columns import with_inferred_type
from klog.values.column_format import ColumnFormat, json_type

_OF_JSON = (t.StructType, t.ArrayType, t.MapType)
"""What `from_json` parses."""
_OF_ANY_JSON = (t.StringType, t.VariantType)
"""Types that hold any JSON value; a string holds its text."""
_TEXTS = (t.DateType, t.TimestampType, t.TimestampNTZType)
"""Types whose values are texts in JSON."""


def check_column(df: DataFrame, name: str) -> None:
    """Refuse a DataFrame without a column to decode or encode.

    Args:
        df: The rows.
        name: The column.

    Raises:
        OptionError: There is no such column.
    """
    if name not in df.columns:
        raise OptionError(f"{name}: there is no such column. There are {', '.join(df.columns)}")


def spark_type(arrow_type: pa.DataType) -> t.DataType:
    """Return Spark's type for a type of Arrow.

    Args:
        arrow_type: The type.
    """
    return from_arrow_type(arrow_type, prefer_timestamp_ntz=True)


def json_spark_type(column: ColumnFormat) -> t.DataType:
    """Return the type that Spark parses JSON to.

    Args:
        column: The format; its schema may also be a type of Spark, or DDL.

    Raises:
        OptionError: There is no schema.
        RegistryError: The registry does not have the subject, or does not answer.
        SchemaError: The schema is not one.
    """
    schema = column.schema
    if isinstance(schema, str) and not schema.lstrip().startswith("{"):
        schema = parse_ddl(schema, column.side)
    if not isinstance(schema, t.DataType):
        schema = spark_type(json_type(column))
    if not isinstance(schema, _OF_JSON):
        raise SchemaError(
            f"{column.side}_schema: in Spark a JSON value is a struct, an array or a map, got "
            f"{schema.simpleString()}. Use the format string, and cast the text"
        )
    return schema


def parse_ddl(text: str, side: str) -> t.DataType:
    """Return the type that DDL describes, such as `id bigint, name string`.

    Args:
        text: The DDL.
        side: `key` or `value`, for the message.

    Raises:
        SchemaError: It is not DDL.
    """
    from pyspark.errors import PySparkException

    try:
        return t.DataType.fromDDL(text)
    except PySparkException as exc:
        raise SchemaError(
            f"{side}_schema: is neither DDL nor a JSON Schema: {text[:80]!r}. Example: "
            "id bigint, name string"
        ) from exc


def infer_frame_schema(df: DataFrame, column: ColumnFormat, sample: int) -> t.DataType:
    """Return a type that fits a sample of JSON values.

    Args:
        df: The rows. The first ones that Spark returns are the sample.
        column: The format.
        sample: The number of rows.

    Raises:
        OptionError: The rows are a stream, or another format has no schema to infer.
        SchemaError: The sample has no value.
    """
    if column.name != "json":
        raise OptionError(f"{column.side}: only json has a schema to infer, got {column.name}")
    if df.isStreaming:
        raise OptionError("infer_schema: a stream has no sample. Infer from a batch read of it")
    if sample < 1:
        raise OptionError(f"sample: must be at least 1, got {sample}")
    values = df.select(df[column.side].cast("binary")).where(df[column.side].isNotNull())
    rows = [row[0] for row in values.limit(sample).collect()]
    array = pa.array([bytes(row) for row in rows], pa.binary())
    return spark_type(with_inferred_type(column, [array]).schema)


def merged_schema(known: t.StructType, new: t.StructType, *, on_change: str) -> t.StructType:
    """Return a known schema with the new fields of another one, in structs at any depth.

    A new name must differ from all others by more than case. Delta takes no two such columns, and
    Spark parses JSON by exact names, so that the known field would not have the values either.

    Args:
        known: The schema so far, such as that of a table. Its fields keep their place and type.
        new: A schema that rows were inferred to have. New fields come last, nullable.
        on_change: What a field is whose known type cannot hold the new one: `fail`, or `keep` for
            the known type.

    Raises:
        SchemaError: The known type of a field cannot hold the new one, or two names differ only by
            case; the message names the fields.
    """
    if on_change not in ("fail", "keep"):
        raise OptionError(f"on_change: must be fail or keep, got {on_change!r}")
    return _merged_struct(known, new, "", on_change)


def _merged_struct(
    known: t.StructType, new: t.StructType, path: str, on_change: str
) -> t.StructType:
    new_fields = {field.name: field for field in new.fields}
    fields = []
    for field in known.fields:
        merged = field.dataType
        other = new_fields.pop(field.name, None)
        if other is not None:
            merged = _merged(merged, other.dataType, f"{path}{field.name}", on_change)
        fields.append(t.StructField(field.name, merged, field.nullable, field.metadata))
    names = {field.name.lower(): field.name for field in known.fields}
    for name, field in new_fields.items():
        first = names.setdefault(name.lower(), name)
        if first != name:
            raise SchemaError(
                f"field {path}{name}: differs from field {path}{first} only by case. Rename it in "
                "the producer, or give a schema with one of the names: klog ignores the other one"
            )
        fields.append(t.StructField(name, _added(field.dataType, f"{path}{name}"), True))
    return t.StructType(fields)


def _added(new: t.DataType, path: str) -> t.DataType:
    """Return the type of a new field, whose names are unique, too."""
    if isinstance(new, t.StructType):
        return _merged_struct(t.StructType(), new, f"{path}.", "fail")
    if isinstance(new, t.ArrayType):
        return t.ArrayType(_added(new.elementType, f"{path}[]"), new.containsNull)
    return new


def _merged(known: t.DataType, new: t.DataType, path: str, on_change: str) -> t.DataType:
    if isinstance(known, t.StructType) and isinstance(new, t.StructType):
        return _merged_struct(known, new, f"{path}.", on_change)
    if isinstance(known, t.ArrayType) and isinstance(new, t.ArrayType):
        items = _merged(known.elementType, new.elementType, f"{path}[]", on_change)
        return t.ArrayType(items, known.containsNull)
    if isinstance(known, t.MapType) and isinstance(new, t.MapType):
        values = _merged(known.valueType, new.valueType, f"{path}{{}}", on_change)
        return t.MapType(known.keyType, values, known.valueContainsNull)
    if isinstance(known, t.MapType) and isinstance(new, t.StructType):
        for field in new.fields:  # JSON's objects are inferred as structs.
            known = t.MapType(
                known.keyType,
                _merged(known.valueType, field.dataType, f"{path}{{}}", on_change),
                known.valueContainsNull,
            )
        return known
    if _fits(known, new) or on_change == "keep":
        return known
    raise SchemaError(
        f"field {path}: its type was {known.simpleString()}, and is now {new.simpleString()}. "
        'Change the producer, or use on_change="keep": rows that do not fit get a reason'
    )


def _fits(known: Any, new: Any) -> bool:
    """Return whether JSON values that were inferred to have a type may have the known one."""
    if known == new or isinstance(known, _OF_ANY_JSON) or isinstance(new, t.NullType):
        return True
    if isinstance(new, t.LongType):
        return isinstance(known, t.NumericType)
    if isinstance(new, t.DoubleType):
        return isinstance(known, t.FractionalType)
    return isinstance(new, t.StringType) and isinstance(known, _TEXTS)
