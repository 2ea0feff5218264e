"""Decode keys and values from bytes to columns, and encode columns to bytes.

The formats are JSON, Avro and Protobuf, each with or without the prefix of a schema registry, and
text, numbers and UUIDs as Kafka's own serializers write them. docs/values.md describes the formats,
their types and their errors.
"""

from __future__ import annotations

from klog.values.registry_settings import Registry, as_registry

TYPE_CHECKING = False  # `typing` takes 2 ms, and `import klog` may import this.
if TYPE_CHECKING:
    from typing import Any

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from klog.values.column_format import ColumnFormat

__all__ = ["Registry", "decode", "decode_batches", "encode", "infer_schema", "merge_schemas"]


def decode(
    df: DataFrame,
    *,
    key: str | None = None,
    value: str | None = None,
    key_schema: Any = None,
    value_schema: Any = None,
    key_message: str | None = None,
    value_message: str | None = None,
    key_subject: str | None = None,
    value_subject: str | None = None,
    registry: Registry | str | None = None,
    topic: str | None = None,
    on_error: str = "fail",
) -> DataFrame:
    """Decode the binary columns `key` and `value` of a DataFrame, batch or stream.

    The decoded columns replace the binary ones. All other columns keep their values and their
    order.

    Args:
        df: The rows, such as those of `spark.read.format("klog")`.
        key: The format of the keys: `json`, `avro`, `protobuf`, `string`, `short`, `integer`,
            `long`, `float`, `double`, `boolean`, `uuid` or `bytes`. None leaves the column
            unchanged.
        value: The format of the values, one of the same.
        key_schema: The schema of the keys, as for `value_schema`.
        value_schema: The schema of the values, which decides the type of the column. For `json`: a
            Spark type, DDL (`id bigint, name string`), or a JSON Schema as text or `Path`. For
            `avro`: a schema in JSON as text, dict or `Path`. For `protobuf`: a FileDescriptorSet as
            bytes or `Path`, or a .proto file as text or `Path`. None for the latest schema of the
            subject in the registry.
        key_message: The full name of the Protobuf message of the keys; None for the first one of
            the schema.
        value_message: The full name of the Protobuf message of the values; None for the first one.
        key_subject: The subject of the keys in the registry; None for `<topic>-key`.
        value_subject: The subject of the values in the registry; None for `<topic>-value`.
        registry: The schema registry or its URL, if keys and values in JSON, Avro or Protobuf begin
            with Confluent's prefix. None if they have no prefix.
        topic: The name of the topic, for the names of the subjects.
        on_error: What happens to a row that cannot be decoded. `fail`: the query fails, and the
            error names the topic-partition and the offset. `null`: the column is null, and a new
            column `key_error` or `value_error` has the reason. That column is null for all other
            rows.

    Returns:
        The rows. A record becomes a struct; texts and numbers become plain columns; null stays
        null.

    Raises:
        klog.OptionError: An argument is wrong, or a library is missing. The message names the extra
            to install, such as `klog[avro]`.
        klog.RegistryError: The registry does not answer.
        klog.RegistryRefusedError: It refuses the request.
        klog.SchemaNotFoundError: The registry does not have the schema.
        klog.SchemaError: A schema is invalid, or has no type in Spark.
    """
    from klog.values.spark_decode import decode_frame

    columns = _columns(
        (key, key_schema, key_message, key_subject),
        (value, value_schema, value_message, value_subject),
        registry,
        topic,
    )
    return decode_frame(df, columns, on_error)


def encode(
    df: DataFrame,
    *,
    key: str | None = None,
    value: str | None = None,
    key_schema: Any = None,
    value_schema: Any = None,
    key_message: str | None = None,
    value_message: str | None = None,
    key_subject: str | None = None,
    value_subject: str | None = None,
    registry: Registry | str | None = None,
    topic: str | None = None,
) -> DataFrame:
    """Encode the columns `key` and `value` to bytes, for `df.write.format("klog")`.

    The binary columns replace the others. All other columns keep their values and their order.

    Args:
        df: The rows, with a struct for each record and plain columns for texts and numbers. Null
            stays null.
        key: The format of the keys, as in `decode`. None leaves the column unchanged.
        value: The format of the values, as in `decode`.
        key_schema: The schema of the keys, as in `decode`.
        value_schema: The schema of the values, as in `decode`. With a registry, klog registers it
            if the subject does not have it. None for the latest schema of the subject in the
            registry. For `avro` without that, klog derives a schema from the type of the column.
        key_message: The full name of the Protobuf message of the keys; None for the first one of
            the schema.
        value_message: The full name of the Protobuf message of the values; None for the first one.
        key_subject: The subject of the keys in the registry; None for `<topic>-key`.
        value_subject: The subject of the values in the registry; None for `<topic>-value`.
        registry: The schema registry or its URL. If you set it, keys and values in JSON, Avro or
            Protobuf begin with Confluent's prefix.
        topic: The name of the topic, for the names of the subjects.

    Returns:
        The rows. The query fails if a key or a value does not fit its schema.

    Raises:
        klog.OptionError: An argument is wrong, or a library is missing. The message names the extra
            to install, such as `klog[avro]`.
        klog.RegistryError: The registry does not answer.
        klog.RegistryRefusedError: It refuses a schema.
        klog.SchemaError: A schema is invalid, or the format cannot express the column.
    """
    from klog.values.spark_encode import encode_frame

    columns = _columns(
        (key, key_schema, key_message, key_subject),
        (value, value_schema, value_message, value_subject),
        registry,
        topic,
    )
    return encode_frame(df, columns)


def decode_batches(
    batches: pa.RecordBatchReader,
    *,
    key: str | None = None,
    value: str | None = None,
    key_schema: Any = None,
    value_schema: Any = None,
    key_message: str | None = None,
    value_message: str | None = None,
    key_subject: str | None = None,
    value_subject: str | None = None,
    registry: Registry | str | None = None,
    topic: str | None = None,
    on_error: str = "fail",
) -> pa.RecordBatchReader:
    """Decode the columns `key` and `value` of Arrow batches, without Spark.

    `klog.Log.scan` takes the same arguments, so you rarely need this function.

    Args:
        batches: The batches, such as those of `klog.open(root).scan(topic)`. If they have the
            columns `topic`, `partition` and `offset`, errors name these.
        key: The format of the keys, as in `decode`. None leaves the column unchanged.
        value: The format of the values, as in `decode`.
        key_schema: The schema of the keys, as for `value_schema`.
        value_schema: The schema of the values, as in `decode`, but for `json` an Arrow type, an
            Arrow schema or a JSON Schema. JSON without a schema and without a registry gets the
            type of the first thousand rows.
        key_message: The full name of the Protobuf message of the keys; None for the first one of
            the schema.
        value_message: The full name of the Protobuf message of the values; None for the first one.
        key_subject: The subject of the keys in the registry; None for `<topic>-key`.
        value_subject: The subject of the values in the registry; None for `<topic>-value`.
        registry: The schema registry or its URL, as in `decode`.
        topic: The name of the topic, for the names of the subjects.
        on_error: `fail` or `null`, as in `decode`.

    Returns:
        The decoded batches. klog decodes a batch when you read it. Reading then raises
        `klog.UndecodableError` for a row that cannot be decoded, and `klog.RegistryError`.

    Raises:
        klog.OptionError: An argument is wrong, or a library is missing. The message names the extra
            to install, such as `klog[avro]`.
        klog.RegistryError: The registry does not answer.
        klog.RegistryRefusedError: It refuses the request.
        klog.SchemaNotFoundError: The registry does not have the schema.
        klog.SchemaError: A schema is invalid, or has no type in Arrow.
    """
    from klog.values.batch_columns import decode_batches as decoded

    columns = _columns(
        (key, key_schema, key_message, key_subject),
        (value, value_schema, value_message, value_subject),
        registry,
        topic,
    )
    return decoded(batches, columns, on_error)


def infer_schema(
    df: DataFrame,
    *,
    key: str | None = None,
    value: str | None = None,
    registry: Registry | str | None = None,
    sample: int = 1000,
) -> StructType:
    """Return a Spark type that fits a sample of JSON keys or values.

    Set either `key` or `value` to `json`.

    Args:
        df: The rows, not a stream.
        key: `json` to infer the type of the column `key`.
        value: `json` to infer the type of the column `value`.
        registry: The schema registry or its URL, if the column has Confluent's prefix. klog sends
            it no request.
        sample: The number of rows to look at, at least 1. klog ignores those that are not JSON.

    Returns:
        The type. Its fields are sorted by name, as in Spark's own inference.

    Raises:
        klog.OptionError: An argument is wrong, or the rows are a stream.
        klog.SchemaError: The sample has no value.
    """
    from klog.errors import OptionError
    from klog.values.spark_schemas import infer_frame_schema

    columns = _columns((key, None, None, None), (value, None, None, None), registry, None)
    if len(columns) != 1:
        raise OptionError("infer_schema: set one of key and value")
    schema: StructType = infer_frame_schema(df, columns[0], sample)  # type: ignore[assignment]
    return schema


def merge_schemas(known: StructType, new: StructType, *, on_change: str = "fail") -> StructType:
    """Add the new fields of one schema to another, for JSON that changes over time.

    Args:
        known: The schema so far, such as the schema of a table. Its fields keep their order and
            their types.
        new: The schema that `infer_schema` returned for new rows. Its new fields come last, at any
            depth, and are nullable.
        on_change: What happens if the known type of a field cannot hold the values of its type in
            `new`. `fail` raises an error. `keep` keeps the known type; `decode` with
            `on_error="null"` then gives the reason for each row that does not fit.

    Returns:
        The merged schema. A field keeps its known type if that type can hold the new values: a
        string holds any JSON value, and a double holds a bigint.

    Raises:
        klog.SchemaError: The known type of a field cannot hold the new values, or the names of two
            fields differ only by case. The message names the fields.
    """
    from klog.values.spark_schemas import merged_schema

    return merged_schema(known, new, on_change=on_change)


def _columns(
    key: tuple[str | None, Any, str | None, str | None],
    value: tuple[str | None, Any, str | None, str | None],
    registry: Registry | str | None,
    topic: str | None,
) -> list[ColumnFormat]:
    """Return the formats of the columns: of each, its format, schema, message and subject."""
    from klog.errors import OptionError
    from klog.values.column_format import ColumnFormat

    columns = []
    for side, (name, schema, message, subject) in (("key", key), ("value", value)):
        if name is not None:
            options = schema, message, subject, as_registry(registry), topic
            columns.append(ColumnFormat(side, name, *options))
            continue
        for option, setting in (("schema", schema), ("message", message), ("subject", subject)):
            if setting is not None:
                raise OptionError(f"{side}_{option}: needs {side}, the format of the {side}")
    if not columns:
        raise OptionError("key, value: set the format of one of them or both")
    return columns
