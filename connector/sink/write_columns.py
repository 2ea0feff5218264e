"""The columns that a write takes: their names, their types, and their conversion to uniform types.

    value      binary or string, required; null is a tombstone
    key        binary or string
    headers    list of struct<key string, value binary>
    topic      string; ignored if the write names the topic
    partition  integer; if null, the partitioner decides
    timestamp  timestamp of any unit and zone; null is the time of staging, without a zone is UTC

The rule: names match in any case, as Spark's do. `offset` and `timestampType` are ignored, so that
rows read by klog or by Spark's Kafka connector can be written again. So is the index that pandas
adds to a filtered frame. Any other column is an error that names the nearest known column.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.errors import OptionError, nearest_name
from klog.logformat.array_types import Longs
from klog.logformat.batches.arrow_columns import element_bounds
from klog.logformat.batches.record_headers import HEADER_TYPE, HEADERS_TYPE, is_headers_type

IGNORED_COLUMNS = ("offset", "timestampType")
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")

_BYTES_TYPES: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_binary,
    pa.types.is_string,
    pa.types.is_large_binary,
    pa.types.is_large_string,
    pa.types.is_binary_view,
    pa.types.is_string_view,
    pa.types.is_fixed_size_binary,
)
_TEXT_TYPES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_LIST_TYPES = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_MS_PER_SECOND = 1000
_PER_MS = {"us": 1000, "ns": 1_000_000}
_OUT_OF_RANGE = np.iinfo(np.int64).min
"""Stands for a time that does not fit into milliseconds; the check of rows rejects it."""


def known_name(column: str) -> str:
    """Return the name of a column in the case that klog uses; an unknown one unchanged.

    Args:
        column: The name in any case.
    """
    return _BY_LOWER.get(column.lower(), column)


def with_known_names(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows whose columns have the case that klog uses.

    Args:
        batch: The rows.
    """
    names = [known_name(name) for name in batch.schema.names]
    return batch if names == batch.schema.names else batch.rename_columns(names)


def check_columns(schema: pa.Schema) -> None:
    """Check the names and types of the columns of a write.

    Args:
        schema: The Arrow schema of the rows.

    Raises:
        OptionError: A column is unknown, of another type, missing or there twice; the message names
            it.
    """
    names = [known_name(name) for name in schema.names]
    for name, field in zip(names, schema, strict=True):
        if names.count(name) > 1:
            raise OptionError(f"column {name} is there more than once; rename or drop one")
        if name in IGNORED_COLUMNS or _PANDAS_INDEX.fullmatch(name):
            continue
        if name not in _COLUMNS:
            nearest = nearest_name(name, _COLUMNS, cutoff=0.5)
            hint = f"did you mean {nearest}?" if nearest else f"a write takes {', '.join(_COLUMNS)}"
            raise OptionError(f"column {name}: a write has no such column; {hint}")
        expected, has_type = _COLUMNS[name]
        column_type = field.type
        if not pa.types.is_null(column_type) and not has_type(_value_type(column_type)):
            raise OptionError(f"column {name} is {column_type}; cast it to {expected}")
    if "value" not in names:
        raise OptionError("there is no column value; rename the column to write to value")


def as_bytes(column: pa.Array) -> pa.Array:
    """Return keys or values as binary or large binary.

    A column that is one of them already is not copied.

    Args:
        column: A column of any type that `check_columns` accepts for a key or a value, or of nulls.
    """
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return column
    column = decode_dictionary(column)
    is_small = pa.types.is_string(column.type) or pa.types.is_null(column.type)
    return column.cast(pa.binary() if is_small else pa.large_binary())


def as_milliseconds(column: pa.Array, now_ms: int) -> Longs:
    """Return timestamps in ms, rounded down.

    Args:
        column: Timestamps of any unit.
        now_ms: The value for null.
    """
    column = decode_dictionary(column)
    if pa.types.is_null(column.type):
        return np.full(len(column), now_ms, np.int64)
    times: Longs = column.view(pa.int64()).fill_null(0).to_numpy()
    unit = column.type.unit
    if unit in _PER_MS:
        times = times // _PER_MS[unit]
    elif unit == "s":
        max_seconds = np.iinfo(np.int64).max // _MS_PER_SECOND
        # Not with `abs`: the smallest integer has no absolute value.
        fits = (times >= -max_seconds) & (times <= max_seconds)
        times = np.where(fits, times * _MS_PER_SECOND, _OUT_OF_RANGE)
    if column.null_count:
        times = np.where(column.is_null().to_numpy(False), now_ms, times)
    return times


def as_partitions(column: pa.Array) -> pa.Array:
    """Return partitions as int64; larger numbers become the largest int64.

    Args:
        column: Integers of any type, dictionary-encoded or not, or nulls.
    """
    column = decode_dictionary(column)
    if pa.types.is_uint64(column.type):
        max_long = pa.scalar((1 << 63) - 1, pa.uint64())
        column = pc.min_element_wise(column, max_long, skip_nulls=False)
    return column.cast(pa.int64())


def as_headers(column: pa.Array) -> pa.Array | None:
    """Return headers as `HEADERS_TYPE`, which the encoder takes; None if no record has any.

    Args:
        column: Lists of structs as `check_columns` accepts them, or nulls.
    """
    column = decode_dictionary(column)
    if column.null_count == len(column):
        return None
    if is_headers_type(column.type):
        return column
    counts = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    entries = column.flatten()
    names = pc.struct_field(entries, "key").cast(pa.string())
    values = as_bytes(pc.struct_field(entries, "value")).cast(pa.binary())
    structs = pa.StructArray.from_arrays([names, values], fields=list(HEADER_TYPE))
    bounds = pa.array(element_bounds(counts).astype(np.int32))
    return pa.ListArray.from_arrays(bounds, structs, type=HEADERS_TYPE, mask=column.is_null())


def decode_dictionary(column: pa.Array) -> pa.Array:
    """Return the values of a dictionary-encoded column; any other column is returned unchanged.

    Args:
        column: A column of any type.
    """
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    if pa.types.is_string_view(values.type):  # Arrow takes none of them by their places.
        values = values.cast(pa.large_string())
    elif pa.types.is_binary_view(values.type):
        values = values.cast(pa.large_binary())
    return values.take(column.indices)


def _value_type(column_type: pa.DataType) -> pa.DataType:
    """Return the type of the values of a column, dictionary-encoded or not."""
    return column_type.value_type if pa.types.is_dictionary(column_type) else column_type


def _is_bytes(column_type: pa.DataType) -> bool:
    return any(is_type(column_type) for is_type in _BYTES_TYPES)


def _is_text(column_type: pa.DataType) -> bool:
    return any(is_type(column_type) for is_type in _TEXT_TYPES)


def _is_headers(column_type: pa.DataType) -> bool:
    is_list = any(is_type(column_type) for is_type in _LIST_TYPES)
    if not is_list or not pa.types.is_struct(column_type.value_type):
        return False
    fields = {field.name: field.type for field in column_type.value_type}
    if set(fields) != {"key", "value"} or column_type.value_type.num_fields != len(fields):
        return False
    value = fields["value"]
    return _is_text(fields["key"]) and (_is_bytes(value) or pa.types.is_null(value))


_COLUMNS: dict[str, tuple[str, Callable[[pa.DataType], bool]]] = {
    "value": ("binary or string", _is_bytes),
    "key": ("binary or string", _is_bytes),
    "headers": ("array<struct<key string, value binary>>", _is_headers),
    "topic": ("string", _is_text),
    "partition": ("int", pa.types.is_integer),
    "timestamp": ("timestamp", pa.types.is_timestamp),
}
"""By column its type as errors name it, and the check of its Arrow type."""
_BY_LOWER = {name.lower(): name for name in (*_COLUMNS, *IGNORED_COLUMNS)}
