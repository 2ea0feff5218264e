"""What is in the bytes: keys and values decoded to columns, and columns encoded.

Formats are JSON, Avro and Protobuf, with or without the prefix of a schema registry, text, and
Kafka's own serializers of numbers and UUIDs. docs/values.md describes them, their types and errors.
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
    """Replace the binary columns `key` and `value` of a DataFrame by decoded ones.

    All other columns keep their values and their order. The DataFrame may be a stream.

    Args:
        df: The rows, such as those of `spark.read.format("klog")`.
        key: The format of the key: `json`, `avro`, `protobuf`, `string`, `short`, `integer`,
            `long`, `float`, `double`, `boolean`, `uuid` or `bytes`; None to leave the column
            unchanged.
        value: The format of the value.
        key_schema: The schema of the key, by format; see `value_schema`.
        value_schema: For json a type of Spark, DDL, or a JSON Schema as text or `Path`; for avro
            JSON as text, decoded or `Path`; for protobuf a FileDescriptorSet as bytes or `Path`, or
            the text or `Path` of a .proto file. It decides the type of the column. Without it the
            registry's latest schema of the subject does.
        key_message: The full name of the Protobuf message; by default the first one of the schema.
        value_message: The same for the value.
        key_subject: The registry's subject; by default `<topic>-key`.
        value_subject: The registry's subject; by default `<topic>-value`.
        registry: The schema registry, or its URL. If there is one, each value in json, avro or
            protobuf begins with Confluent's prefix of five bytes.
        topic: The topic, for the names of subjects.
        on_error: `fail`: a row that cannot be decoded fails the query, and the error names its
            topic-partition and offset. `null`: the row has a null, and the reason in a new column
            `key_error` or `value_error`, which is null for decoded rows.

    Returns:
        The rows: a record is a struct, text and numbers are plain columns, null stays null.

    Raises:
        klog.errors.OptionError: An argument is wrong, or a library is missing; the message names
            the extra to install.
        klog.errors.RegistryError: The registry does not have a subject, or does not answer.
        klog.errors.SchemaError: A schema is not one, or has no type in Spark.
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
    """Replace the columns `key` and `value` by binary ones, for `df.write.format("klog")`.

    Args:
        df: The rows: structs for records, plain columns for text and numbers. Null stays null.
        key: The format of the key, as in `decode`; None to leave the column unchanged.
        value: The format of the value.
        key_schema: The schema of the key, as in `decode`.
        value_schema: The schema of the value. With a registry it is registered if the subject does
            not have it. Without it: the registry's latest schema of the subject; for avro also one
            that is derived from the type of the column.
        key_message: The full name of the Protobuf message; by default the first one of the schema.
        value_message: The same for the value.
        key_subject: The registry's subject; by default `<topic>-key`.
        value_subject: The registry's subject; by default `<topic>-value`.
        registry: The schema registry, or its URL. If there is one, Confluent's prefix is written.
        topic: The topic, for the names of subjects.

    Returns:
        The rows with binary columns; all other columns keep their values and their order. A value
        that does not fit its schema fails the query.

    Raises:
        klog.errors.OptionError: An argument is wrong, or a library is missing.
        klog.errors.RegistryError: The registry refused a schema, or does not answer.
        klog.errors.SchemaError: A schema is not one, or the format has no such values.
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
    """Decode the columns `key` and `value` of Arrow batches, without Spark, as they are read.

    Args:
        batches: The batches, such as those of `klog.open(root).scan(topic)`. Columns `topic`,
            `partition` and `offset` are named in errors if there are any.
        key: The format of the key, as in `decode`.
        value: The format of the value.
        key_schema: The schema of the key, as in `decode`; for json a type or schema of Arrow, or a
            JSON Schema. JSON without a schema and without a registry gets the type of the first
            thousand rows.
        value_schema: The schema of the value.
        key_message: The full name of the Protobuf message; by default the first one of the schema.
        value_message: The same for the value.
        key_subject: The registry's subject; by default `<topic>-key`.
        value_subject: The registry's subject; by default `<topic>-value`.
        registry: The schema registry, or its URL.
        topic: The topic, for the names of subjects.
        on_error: `fail` or `null`, as in `decode`.

    Returns:
        The decoded batches. Reading raises `UndecodableError` for a row, and `RegistryError`.

    Raises:
        klog.errors.OptionError: An argument is wrong, or a library is missing.
        klog.errors.RegistryError: The registry does not have a subject, or does not answer.
        klog.errors.SchemaError: A schema is not one, or has no type in Arrow.
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
    """Return a type that fits a sample of JSON keys or values.

    Args:
        df: The rows, not a stream.
        key: `json` to look at the column `key`.
        value: `json` to look at the column `value`; one of the two is set.
        registry: Any registry, if the values have Confluent's prefix.
        sample: How many rows to look at; rows that are not JSON do not count.

    Returns:
        The type, with the fields sorted by name, as Spark's own inference returns it.

    Raises:
        klog.errors.OptionError: An argument is wrong, or the rows are a stream.
        klog.errors.SchemaError: The sample has no value.
    """
    from klog.errors import OptionError
    from klog.values.spark_schemas import infer_frame_schema

    columns = _columns((key, None, None, None), (value, None, None, None), registry, None)
    if len(columns) != 1:
        raise OptionError("infer_schema: set one of key and value")
    schema: StructType = infer_frame_schema(df, columns[0], sample)  # type: ignore[assignment]
    return schema


def merge_schemas(known: StructType, new: StructType, *, on_change: str = "fail") -> StructType:
    """Return a schema with the new fields of another one, for values that evolve.

    Args:
        known: The schema so far, such as that of a table. Its fields keep their place and type.
        new: A schema that `infer_schema` has returned for new rows. Its new fields, at any depth,
            come last and are nullable.
        on_change: What happens if a field has another type: `fail`, or `keep` for the known type,
            so that `decode` gives a row that does not fit a reason.

    Returns:
        The merged schema. Numbers stay what they are if the known type can hold them.

    Raises:
        klog.errors.SchemaError: A field has another type; the message names the field.
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
