"""The columns that a write takes, made uniform: which there may be, and of what types.

    value      binary or string, required; null is a tombstone
    key        binary or string
    headers    list of struct<key string, value binary>
    topic      string; ignored where the write names the topic
    partition  whole number; null leaves the choice to the partitioner
    timestamp  timestamp of any unit and zone; null is the time of staging, one without zone is UTC

The rule: `offset` and `timestampType` are ignored, so that what klog or Spark's Kafka connector
reads can be written again; any other column is an error that names the nearest known one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.errors import OptionError
from klog.logformat.arrow import bounds_of
from klog.logformat.headers import HEADER_TYPE, HEADERS_TYPE, is_headers_type
from klog.logformat.index import Longs

IGNORED = ("offset", "timestampType")

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
_NO_TIME = np.iinfo(np.int64).min
"""Stands for a time that milliseconds cannot say; no record may have it."""


def check_columns(schema: pa.Schema) -> None:
    """Raise `OptionError` that names the column for one that a write does not take."""
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise OptionError(f"column {name} is there more than once; rename or drop one")
        if name in IGNORED:
            continue
        if name not in _TAKEN:
            close = difflib.get_close_matches(name, _TAKEN, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]}?" if close else f"a write takes {', '.join(_TAKEN)}"
            raise OptionError(f"column {name}: a write has no such column; {hint}")
        expected, is_one = _TAKEN[name]
        kind = schema.field(name).type
        if not pa.types.is_null(kind) and not is_one(_plain_type(kind)):
            raise OptionError(f"column {name} is {kind}; cast it to {expected}")
    if "value" not in schema.names:
        raise OptionError("there is no column value; name the column to write value")


def as_bytes(column: pa.Array) -> pa.Array:
    """Give keys or values as binary or large binary; plain ones are not copied."""
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column
    short = pa.types.is_string(kind) or pa.types.is_null(kind)
    return column.cast(pa.binary() if short else pa.large_binary())


def as_milliseconds(column: pa.Array, now_ms: int) -> Longs:
    """Give timestamps in ms, rounded down; null is `now_ms`."""
    column = plain(column)
    if pa.types.is_null(column.type):
        return np.full(len(column), now_ms, np.int64)
    times: Longs = column.view(pa.int64()).fill_null(0).to_numpy()
    unit = column.type.unit
    if unit in _PER_MS:
        times = times // _PER_MS[unit]
    elif unit == "s":
        most = np.iinfo(np.int64).max // _MS_PER_SECOND
        # Not by `abs`: the least number has none.
        fits = (times >= -most) & (times <= most)
        times = np.where(fits, times * _MS_PER_SECOND, _NO_TIME)
    if column.null_count:
        times = np.where(column.is_null().to_numpy(False), now_ms, times)
    return times


def as_partitions(column: pa.Array) -> pa.Array:
    """Give partitions as int64, those beyond it as its largest."""
    column = plain(column)
    if pa.types.is_uint64(column.type):
        most = pa.scalar((1 << 63) - 1, pa.uint64())
        column = pc.min_element_wise(column, most, skip_nulls=False)
    return column.cast(pa.int64())


def as_headers(column: pa.Array) -> pa.Array | None:
    """Give headers in the one type that the encoder takes; None if no record has any."""
    column = plain(column)
    if column.null_count == len(column):
        return None
    if is_headers_type(column.type):
        return column
    counts = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    entries = column.flatten()
    names = pc.struct_field(entries, "key").cast(pa.string())
    values = as_bytes(pc.struct_field(entries, "value")).cast(pa.binary())
    structs = pa.StructArray.from_arrays([names, values], fields=list(HEADER_TYPE))
    bounds = pa.array(bounds_of(counts).astype(np.int32))
    return pa.ListArray.from_arrays(bounds, structs, type=HEADERS_TYPE, mask=column.is_null())


def plain(column: pa.Array) -> pa.Array:
    """Give the values that a dictionary stands for; any other column as it is."""
    if not pa.types.is_dictionary(column.type):
        return column
    return column.dictionary.take(column.indices)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Give the type of what a dictionary stands for."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_bytes(kind: pa.DataType) -> bool:
    return any(is_one(kind) for is_one in _BYTES_TYPES)


def _is_text(kind: pa.DataType) -> bool:
    return any(is_one(kind) for is_one in _TEXT_TYPES)


def _is_headers(kind: pa.DataType) -> bool:
    if not any(is_one(kind) for is_one in _LIST_TYPES) or not pa.types.is_struct(kind.value_type):
        return False
    fields = {field.name: field.type for field in kind.value_type}
    if set(fields) != {"key", "value"} or kind.value_type.num_fields != len(fields):
        return False
    value = fields["value"]
    return _is_text(fields["key"]) and (_is_bytes(value) or pa.types.is_null(value))


_TAKEN: dict[str, tuple[str, Callable[[pa.DataType], bool]]] = {
    "value": ("binary or string", _is_bytes),
    "key": ("binary or string", _is_bytes),
    "headers": ("array<struct<key string, value binary>>", _is_headers),
    "topic": ("string", _is_text),
    "partition": ("int", pa.types.is_integer),
    "timestamp": ("timestamp", pa.types.is_timestamp),
}
