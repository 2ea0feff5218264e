"""Decode the columns `key` and `value` of a DataFrame.

The rule: only the bytes to decode, and with `on_error="fail"` their topic, partition and offset, go
to Python, as Arrow; JSON and text stay in Spark's JVM. Other columns keep their place and are not
touched. A decoder travels inside the pickled function, which Spark never shows, so that no plan has
the credentials of a registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as t
from pyspark.sql.pandas.functions import arrow_udf

from klog.errors import OptionError
from klog.values.batch_columns import PLACE_COLUMNS, check_on_error, null_hint, undecodable
from klog.values.column_format import ColumnFormat, make_decoder
from klog.values.decoded_column import Decoder, as_binary
from klog.values.spark_json import json_result, text_result
from klog.values.spark_schemas import check_column, json_spark_type, spark_type


@dataclass(frozen=True, slots=True)
class ColumnStages:
    """A decoded column: what the first projection computes, and the value and reason of that."""

    name: str
    first: Column
    value: Column
    reason: Column | None


def decode_frame(df: DataFrame, columns: Sequence[ColumnFormat], on_error: str) -> DataFrame:
    """Return a DataFrame with decoded columns.

    Args:
        df: Rows with the columns.
        columns: The formats.
        on_error: `fail`, or `null` for a null and a reason in `key_error` or `value_error`.

    Raises:
        OptionError: An argument is wrong, a column or a library is missing.
        RegistryError: The registry does not answer, or refuses the request.
        SchemaNotFoundError: The registry does not have the schema.
        SchemaError: A schema is not one, or has no type in Spark.
    """
    check_on_error(on_error)
    for column in columns:
        check_column(df, column.side)
        if on_error == "null" and f"{column.side}_error" in df.columns:
            raise OptionError(f"{column.side}_error: the rows have such a column. Rename it")
    places = [name for name in PLACE_COLUMNS if name in df.columns]
    stages = {
        column.side: _stages(df, column, on_error, places)
        for column in columns
        if column.name != "bytes"
    }
    first = [df[f"`{name}`"] for name in df.columns if name not in stages]
    frame = df.select(*first, *(each.first.alias(each.name) for each in stages.values()))
    results = [
        stages[name].value.alias(name) if name in stages else F.col(f"`{name}`")
        for name in df.columns
    ]
    if on_error == "null":
        results += [_reason(stages.get(each.side)).alias(f"{each.side}_error") for each in columns]
    return frame.select(*results)


def _reason(stages: ColumnStages | None) -> Column:
    missing = F.lit(None).cast("string")
    return missing if stages is None or stages.reason is None else stages.reason


def _stages(df: DataFrame, column: ColumnFormat, on_error: str, places: list[str]) -> ColumnStages:
    name = f"__klog_{column.side}"
    binary = df[column.side].cast("binary")
    if column.name not in ("json", "string"):
        return _python_stages(df, column, make_decoder(column), on_error, places)
    if column.name == "string":
        parsed = text_result(F.col(name))
    else:
        schema = json_spark_type(column)
        has_prefix = column.registry is not None
        parsed = json_result(F.col(name), schema, has_prefix=has_prefix)
    if on_error == "fail":
        message = _message(column, parsed.reason, places)
        return ColumnStages(name, binary, parsed.or_fail(message), None)
    return ColumnStages(name, binary, *parsed.or_null())


def _message(column: ColumnFormat, reason: Column, places: list[str]) -> Column:
    """Return the column of the message that `undecodable` has in Python."""
    parts: list[Column] = []
    if "topic" in places and "partition" in places:
        parts += [F.col("topic"), F.lit("-"), F.col("partition").cast("string")]
    if "offset" in places:
        parts += [F.lit(" offset "), F.col("offset").cast("string")]
    if parts:
        parts.append(F.lit(": "))
    hint = null_hint(column.side)
    text = [F.lit(f"the {column.side} cannot be decoded: "), reason, F.lit(hint)]
    return F.concat(*parts, *text)


def _python_stages(
    df: DataFrame, column: ColumnFormat, decoder: Decoder, on_error: str, places: list[str]
) -> ColumnStages:
    name = f"__klog_{column.side}"
    binary = df[column.side].cast("binary")
    value_type = spark_type(decoder.arrow_type)
    if on_error == "fail":

        def decode(*arrays: pa.Array) -> pa.Array:
            result = decoder.decode_array(as_binary(arrays[0]))
            if result.has_errors:
                raise undecodable(column, result, dict(zip(places, arrays[1:], strict=True)))
            return result.values

        decode.__name__ = f"decode_{column.name}"
        run = arrow_udf(decode, value_type)  # type: ignore[call-overload]
        return ColumnStages(name, run(binary, *(df[each] for each in places)), F.col(name), None)

    def decode_or_null(data: pa.Array) -> pa.Array:
        result = decoder.decode_array(as_binary(data))
        return pa.StructArray.from_arrays([result.values, result.reasons], ["value", "error"])

    decode_or_null.__name__ = f"decode_{column.name}"
    result_type = t.StructType(
        [t.StructField("value", value_type), t.StructField("error", t.StringType())]
    )
    run = arrow_udf(decode_or_null, result_type)  # type: ignore[call-overload]
    result = F.col(name)
    return ColumnStages(name, run(binary), result["value"], result["error"])
