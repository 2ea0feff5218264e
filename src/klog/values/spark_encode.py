"""Encode the columns `key` and `value` of a DataFrame, for `df.write.format("klog")`.

The rule: a null row stays null, which is a tombstone. JSON and text are encoded in Spark's JVM. A
value that the schema does not allow fails the query.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as t
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type

from klog.errors import OptionError
from klog.values.column_encoder import json_prefix, make_encoder
from klog.values.column_format import ColumnFormat
from klog.values.spark_json import ENCODE_OPTIONS
from klog.values.spark_schemas import check_column


def encode_frame(df: DataFrame, columns: Sequence[ColumnFormat]) -> DataFrame:
    """Return a DataFrame with binary columns in the place of values.

    Args:
        df: Rows with the columns.
        columns: The formats.

    Raises:
        OptionError: An argument is wrong, a column or a library is missing.
        RegistryError: The registry refused a schema, or does not answer.
        SchemaError: A schema is not one, or the format has no such values.
    """
    encoded = {}
    for column in columns:
        check_column(df, column.side)
        encoded[column.side] = _encoded(df, column).alias(column.side)
    return df.select(*(encoded.get(name, df[f"`{name}`"]) for name in df.columns))


def _encoded(df: DataFrame, column: ColumnFormat) -> Column:
    value, value_type = df[column.side], df.schema[column.side].dataType
    if column.name == "json":
        if not isinstance(value_type, (t.StructType, t.ArrayType, t.MapType, t.VariantType)):
            raise OptionError(
                f"{column.side}: json encodes a struct, an array or a map, not "
                f"{value_type.simpleString()}. Put it into a struct"
            )
        data = F.to_json(value, ENCODE_OPTIONS).cast("binary")
        id_bytes = json_prefix(column)
        return F.concat(F.lit(id_bytes), data) if id_bytes else data
    if column.name == "string":
        return value.cast("string").cast("binary")
    if column.name == "bytes":
        return value.cast("binary")
    arrow_type = to_arrow_type(value_type, timezone="UTC")
    encoder = make_encoder(column, arrow_type)

    def encode(values: pa.Array) -> pa.Array:
        return encoder.encode_array(values)

    encode.__name__ = f"encode_{column.name}"
    run = arrow_udf(encode, t.BinaryType())  # type: ignore[call-overload]
    result: Column = run(value)
    return result
