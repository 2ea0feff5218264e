"""Which fields of a file become what of a record.

The rule: a record has a value, and maybe a key and a timestamp, each from a field that the user
names; or the file has records (`is_records`), with klog's own columns by their names. What a write
takes is bytes, so numbers and times become text, and what has fields becomes JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from klog.errors import OptionError, nearest_name
from klog.jobs.importing_files.field_times import times_of
from klog.jobs.importing_files.json_text import objects, texts

RECORD_COLUMNS = ("key", "value", "headers", "timestamp", "partition")
"""The columns of a write, without the topic."""
OTHER_COLUMNS = ("topic", "offset", "timestampType")
"""Columns of a file of `to-files` or `klog consume --json` that a write ignores."""


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
        columns["timestamp"] = times_of(_column(batch, fields.timestamp), fields.timestamp)
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


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more
