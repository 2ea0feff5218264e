"""Changed rows of a table as records: the key, and the value or a tombstone.

The rule: in one version a key has new values or one tombstone, never both. A row that is deleted,
and an old row whose key an update has changed, is a tombstone, unless the same version has a new
row with the key. So the order of records does not matter, and a whole table that is rewritten with
the same keys has no tombstones.

The formats keep what a type means (docs/from-delta.md has the table): microseconds and the zone of
a timestamp, all digits of a decimal, null fields.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klog.errors import OptionError, nearest_name
from klog.jobs.copying_from_delta.schema_values import SCHEMA_FORMATS, ValueSchema
from klog.jobs.copying_from_delta.table_log import (
    DELETE,
    INSERT,
    UPDATE_POSTIMAGE,
    UPDATE_PREIMAGE,
)
from klog.jobs.copying_from_delta.version_actions import CHANGE_COLUMNS, CHANGE_TYPE
from klog.raised_errors import raised_as

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STRING, JSON, RAW = "string", "json", "raw"
KEY_FORMATS = (STRING, JSON)
VALUE_FORMATS = (JSON, RAW, *SCHEMA_FORMATS)
KEY, VALUE = "key", "value"
NO_SCHEMA = ValueSchema()
RAW_COLUMNS = (KEY, VALUE, "headers", "timestamp")
"""The columns that `raw` keeps; those of them that the table has."""
_RAW_ORDER = ("partition", "offset")
"""In a table that is a copy of a topic: the order that the records had."""
_IS_VALUE = "_klog_is_value"
_NULL_KEY = (
    "a row was deleted whose key is null: a tombstone needs a key. Give --key a column that is "
    "never null, or --key-format json"
)


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How rows become records.

    Attributes:
        key: The columns of the key; none for records without keys.
        key_format: `string`, the text of one column; `json`, an object of all.
        value_format: `json`, an object of the columns; `avro` or `protobuf`, a record of them;
            `raw`, the columns `key`, `value`, `headers` and `timestamp` unchanged.
        columns: The columns of the value; none for all.
        exclude: Columns that are left out of the value.
        value_schema: The schema of values in Avro and Protobuf.
    """

    key: tuple[str, ...] = ()
    key_format: str = STRING
    value_format: str = JSON
    columns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    value_schema: ValueSchema = NO_SCHEMA

    def check_columns(self, columns: Sequence[str], known: Collection[str]) -> None:
        """Refuse a column that a version needs and does not have, or that no version has.

        Args:
            columns: The columns of the table at a version.
            known: All columns that it has then or now.

        Raises:
            OptionError: There is no such column.
        """
        for option, names, needed in (
            ("--key", self.key, columns),
            ("--columns", self.columns, known),
            ("--exclude", self.exclude, known),
        ):
            for name in names:
                if name not in needed:
                    raise _no_column(option, name, columns)

    def value_columns(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of the value that a version has.

        Args:
            columns: The columns of the table at that version.
        """
        chosen = self.columns or columns
        return [name for name in chosen if name in columns and name not in self.exclude]


def make_row_format(
    key: Sequence[str],
    key_format: str | None,
    value_format: str,
    columns: Sequence[str],
    exclude: Sequence[str],
    value_schema: ValueSchema = NO_SCHEMA,
) -> RowFormat:
    """Return the format that the options of a job mean.

    Args:
        key: The columns of the key.
        key_format: The format of the key; None for `string` with one column, else `json`.
        value_format: The format of the value.
        columns: The columns of the value; none for all.
        exclude: Columns that are left out of the value.
        value_schema: The schema of values in Avro and Protobuf.

    Raises:
        OptionError: Options are wrong, or do not go together.
    """
    if value_format not in VALUE_FORMATS:
        raise OptionError(
            f"--value-format: must be one of {', '.join(VALUE_FORMATS)}, got {value_format!r}"
        )
    value_schema.check(value_format)
    if value_format == RAW:
        if key_format is not None or columns or exclude or tuple(key) not in ((), (KEY,)):
            raise OptionError(
                "--value-format raw: the table's columns key, value, headers and timestamp are the "
                "record. Leave out --key, --key-format, --columns and --exclude"
            )
        return RowFormat((KEY,), STRING, RAW)
    if key_format is None:
        key_format = STRING if len(key) <= 1 else JSON
    if key_format not in KEY_FORMATS:
        raise OptionError(
            f"--key-format: must be one of {', '.join(KEY_FORMATS)}, got {key_format!r}"
        )
    if key_format == STRING and len(key) > 1:
        raise OptionError("--key-format string: takes one column. Use json for several")
    names = tuple(key), key_format, value_format, tuple(columns), tuple(exclude)
    return RowFormat(*names, value_schema)


def encode_rows(
    changes: DataFrame, row_format: RowFormat, known: Collection[str] = ()
) -> DataFrame:
    """Return changed rows as the columns of a write, and whether each is a value.

    Args:
        changes: The table's columns and `_change_type`.
        row_format: The format.
        known: The columns that the table has now, which may be others.

    Returns:
        Columns `key`, `value`, in the format `raw` also `headers` and `timestamp` if the table has
        them, and a column for `net_changes`. All but the key are null for a tombstone. The value
        is a struct if a schema is still to encode it.

    Raises:
        OptionError: A column is missing, or of a type that the format cannot take.
    """
    from pyspark.sql import functions as sf

    names = [name for name in changes.columns if name not in CHANGE_COLUMNS]
    row_format.check_columns(names, {*names, *known})
    if row_format.value_format == RAW:
        changes, records = _in_order(changes, names), _raw_records(names)
    else:
        columns = row_format.value_columns(names)
        is_json = row_format.value_format == JSON
        value = _json_of(columns) if is_json else _struct_of(columns)
        records = {KEY: _key_column(changes, row_format), VALUE: value}
    is_value = _column(CHANGE_TYPE).isin(INSERT, UPDATE_POSTIMAGE)
    record_columns = [
        (column if name == KEY else sf.when(is_value, column)).alias(name)
        for name, column in records.items()
    ]
    is_change = is_value | _column(CHANGE_TYPE).isin(DELETE, UPDATE_PREIMAGE)
    return changes.where(is_change).select(*record_columns, is_value.alias(_IS_VALUE))


def without_changes(records: DataFrame) -> DataFrame:
    """Return records that are all values, as the columns of a write.

    Args:
        records: What `encode_rows` returns for rows that were only added.
    """
    return records.drop(_IS_VALUE)


def net_changes(records: DataFrame, *, may_lack_keys: bool = False) -> DataFrame:
    """Return the values, and one tombstone for each other key, as the columns of a write.

    Args:
        records: What `encode_rows` returns for all changes of one version.
        may_lack_keys: Whether a deleted row without a key is left out, as no record is that of it;
            else it is an error.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    of_key = Window.partitionBy(KEY)
    is_value = _column(_IS_VALUE)
    number = sf.row_number().over(of_key.orderBy(is_value.desc()))
    text = f"{raised_as(OptionError)}{_NULL_KEY}"
    key_of_tombstone = sf.raise_error(sf.lit(text)).cast(records.schema[KEY].dataType)
    numbered = records.withColumn("_klog_number", number)
    # Values come first, so a tombstone with number 1 is of a key without a value.
    net = numbered.where(is_value | (_column("_klog_number") == 1))
    if may_lack_keys:
        net = net.where(is_value | _column(KEY).isNotNull())
    key = sf.when(is_value | _column(KEY).isNotNull(), _column(KEY)).otherwise(key_of_tombstone)
    return net.withColumn(KEY, key).drop(_IS_VALUE, "_klog_number")


def union_of_changes(frames: Sequence[DataFrame]) -> DataFrame:
    """Return all changes of one version.

    Args:
        frames: What `encode_rows` returns for parts of it. The last one has all values; of the
            others, whose rows had another schema, only the keys count.
    """
    *removed, records = frames
    for frame in removed:
        keys = frame.select(KEY, _IS_VALUE)
        records = records.unionByName(keys, allowMissingColumns=True)
    return records


def _column(name: str) -> Column:
    """Return a column by its exact name, which may have dots."""
    from pyspark.sql import functions as sf

    return sf.col("`" + name.replace("`", "``") + "`")


def _json_of(names: Sequence[str]) -> Column:
    from pyspark.sql import functions as sf

    from klog.values.spark_json import ENCODE_OPTIONS

    return sf.to_json(_struct_of(names), ENCODE_OPTIONS)


def _struct_of(names: Sequence[str]) -> Column:
    from pyspark.sql import functions as sf

    return sf.struct(*(_column(name).alias(name) for name in names))


def _key_column(changes: DataFrame, row_format: RowFormat) -> Column:
    from pyspark.sql import functions as sf
    from pyspark.sql import types

    from klog.values.spark_json import ENCODE_OPTIONS

    if not row_format.key:
        return sf.lit(None).cast("string")
    if row_format.key_format == JSON:
        return _json_of(row_format.key)
    (name,) = row_format.key
    kind = changes.schema[name].dataType
    if isinstance(kind, types.StringType | types.BinaryType):
        return _column(name)
    if isinstance(kind, types.ArrayType | types.MapType | types.StructType):
        raise OptionError(
            f"--key {name}: a {kind.typeName()} has no text of its own. Use --key-format json"
        )
    if isinstance(kind, types.TimestampType | types.TimestampNTZType):
        text = sf.to_json(sf.struct(_column(name).alias("key")), ENCODE_OPTIONS)
        return sf.get_json_object(text, "$.key")
    return _column(name).cast("string")


def _raw_records(names: Sequence[str]) -> dict[str, Column]:
    for name in (KEY, VALUE):
        if name not in names:
            raise _no_column("--value-format raw", name, names)
    return {name: _column(name) for name in RAW_COLUMNS if name in names}


def _in_order(changes: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return the rows of a copy of a topic in the order of the topic."""
    return changes.orderBy(*_RAW_ORDER) if set(_RAW_ORDER) <= set(names) else changes


def _no_column(option: str, name: str, columns: Sequence[str]) -> OptionError:
    nearest = nearest_name(name, columns)
    hint = f"did you mean {nearest}?" if nearest else f"it has {', '.join(columns)}."
    if option == "--key":
        hint += (
            " If it has another name in other versions, copy each of them with the name of its "
            "time, or run the job once with --restart-at snapshot"
        )
    return OptionError(f"{option}: the table has no column {name}; {hint.removesuffix('.')}")
