"""Which fields of a file become what of a record.

The rule: a record has a value, and maybe a key and a timestamp, each from a field that the user
names; or the file has records (`is_records`), with klog's own columns by their names. What a write
takes is bytes, so numbers and times become text, and what has fields becomes JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.errors import OptionError, nearest_name
from klog.jobs.importing_files.json_text import objects, texts

RECORD_COLUMNS = ("key", "value", "headers", "timestamp", "partition")
"""The columns of a write, without the topic."""
OTHER_COLUMNS = ("topic", "offset", "timestampType")
"""Columns of a file of `to-files` or `klog consume --json` that a write ignores."""
_TIME = pa.timestamp("us", "UTC")


class WrongRowError(Exception):
    """A row of a batch is wrong; what reads the file knows which row of it that is."""

    def __init__(self, row: int, reason: str) -> None:
        """Take the row, from 0 in its batch, and why it is wrong."""
        super().__init__(reason)
        self.row = row


@dataclass(frozen=True, slots=True)
class RecordFields:
    """What the user has said about fields.

    Attributes:
        key: The field that becomes the key; None for no key.
        value: The field that becomes the value; None for the line, or for all fields as JSON.
        timestamp: The field that becomes the timestamp; None for the time of the import.
        is_records: Whether the file has records; the other attributes are None then.
    """

    key: str | None = None
    value: str | None = None
    timestamp: str | None = None
    is_records: bool = False

    @property
    def names(self) -> list[str]:
        """Return the fields that are named."""
        return [name for name in (self.key, self.value, self.timestamp) if name is not None]


def check_fields(fields: RecordFields) -> None:
    """Refuse fields that exclude each other.

    Args:
        fields: The fields.

    Raises:
        OptionError: The file has records, and fields are named too.
    """
    if fields.is_records and fields.names:
        raise OptionError(
            "--records: the fields of a record have fixed names. Leave out --key, --value and "
            "--timestamp, or leave out --records"
        )


def rows_of(batch: pa.RecordBatch, fields: RecordFields) -> pa.RecordBatch:
    """Return the rows of a file as columns of a write.

    Args:
        batch: The rows.
        fields: What becomes what.

    Raises:
        OptionError: A field does not exist, or its type cannot be what it shall be.
        WrongRowError: A timestamp is not a time.
    """
    if fields.is_records:
        return _records(batch)
    if fields.value is None:
        columns = [batch.column(number) for number in range(batch.num_columns)]
        value = objects(batch.schema.names, columns).cast(pa.large_binary())
    else:
        value = texts(_column(batch, fields.value), fields.value)
    return with_named_fields(batch, value, fields)


def with_named_fields(
    batch: pa.RecordBatch, value: pa.Array, fields: RecordFields
) -> pa.RecordBatch:
    """Return values with the keys and timestamps that fields have.

    Args:
        batch: The rows.
        value: Their values.
        fields: What becomes what.

    Raises:
        OptionError: A field does not exist, or its type is not one of times.
        WrongRowError: A timestamp is not a time.
    """
    columns = {"value": value}
    if fields.key is not None:
        columns["key"] = texts(_column(batch, fields.key), fields.key)
    if fields.timestamp is not None:
        columns["timestamp"] = _times(_column(batch, fields.timestamp), fields.timestamp)
    return pa.RecordBatch.from_pydict(columns)


def _records(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = batch.schema.names
    unknown = [name for name in names if name not in (*RECORD_COLUMNS, *OTHER_COLUMNS)]
    if unknown or "value" not in names:
        problem = f"it has a column {unknown[0]}" if unknown else "it has no column value"
        raise OptionError(
            f"--records: {problem}, and records have {', '.join(RECORD_COLUMNS)}. Name the columns "
            "of keys and values with --key and --value instead"
        )
    return batch.select([name for name in RECORD_COLUMNS if name in names])


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    numbers = batch.schema.get_all_field_indices(name)
    if len(numbers) == 1:
        return batch.column(numbers[0])
    if numbers:
        raise OptionError(f"there are {len(numbers)} columns {name}. Give each a name of its own")
    close = nearest_name(name, batch.schema.names)
    hint = f"did you mean {close}?" if close else f"it has {_some(batch.schema.names)}"
    raise OptionError(f"there is no column {name}: {hint}")


def _times(column: pa.Array, name: str) -> pa.Array:
    kind, types = column.type, pa.types
    try:
        if types.is_integer(kind):
            return column.cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))
        if types.is_string(kind) or types.is_large_string(kind):
            return _parsed_times(column)
        if types.is_timestamp(kind):
            return column
        if types.is_date(kind):
            return column.cast(pa.timestamp("ms")).cast(pa.timestamp("ms", "UTC"))
        if types.is_null(kind):
            return column.cast(_TIME)
    except pa.ArrowInvalid as exc:
        row = _first_wrong_time(column)
        raise WrongRowError(
            row,
            f"{name} is {column[row].as_py()!r}, which is not a time. Write ISO 8601, such as "
            "2026-11-28T14:00:00Z, or milliseconds since 1970 as a number",
        ) from exc
    raise OptionError(
        f"--timestamp: column {name} has the type {kind}. Choose a column with times, with text in "
        "ISO 8601, or with milliseconds since 1970"
    )


def _parsed_times(column: pa.Array) -> pa.Array:
    """Return times from text: milliseconds since 1970, ISO 8601 with a zone, or in UTC without."""
    if not pc.any(pc.match_substring_regex(column, r"[^0-9-]")).as_py():
        has_digits = pc.match_substring_regex(column, r"^-?[0-9]+$")
        if pc.all(pc.fill_null(has_digits, True)).as_py():
            return column.cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))
    is_date = pc.match_substring_regex(column, r"^\d{4}-\d\d-\d\d$")
    has_zone = pc.match_substring_regex(column, r"(Z|[+-]\d\d:?\d\d)$")
    zone = pc.if_else(is_date, "T00:00:00Z", pc.if_else(has_zone, "", "Z")).cast(column.type)
    return pc.binary_join_element_wise(column, zone, pa.scalar("", column.type)).cast(_TIME)


def _first_wrong_time(column: pa.Array) -> int:
    """Return the first row of a column of text that is not a time."""
    for row in range(len(column)):
        try:
            _parsed_times(column.slice(row, 1))
        except pa.ArrowInvalid:
            return row
    return 0


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more
