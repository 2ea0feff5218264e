"""Record headers in Arrow: a list of (key string, value binary) a record, null where it has none.

Header k of all records that have one is read in one step; writing joins all headers of all records
at once. Names may repeat, their order stays, a null value is legal and a null name is not
(docs/format.md, 3).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.errors import CorruptRecordError
from klog.logformat.arrow import (
    Column,
    binary_array,
    bounds_of,
    byte_lengths,
    chunks_of,
    field_sizes,
    joined,
    refuse,
    varints,
)
from klog.logformat.varint import Bytes, Longs, read_varints, varint_sizes, zigzag

MAX_HEADERS = 1 << 16
"""The most headers that one record may have: each is a step of its own."""
HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE = pa.list_(pa.field("element", HEADER_TYPE))


def read_headers(data: bytes | bytearray, at: Longs, ends: Longs, counts: Longs) -> pa.ListArray:
    """Decode the headers that begin at `at[i]`, `counts[i]` of them, and must end at `ends[i]`.

    Raises `CorruptRecordError` if a name is null or not UTF-8, or a length leaves its record.
    """
    _check(counts > MAX_HEADERS, at, f"more than {MAX_HEADERS} headers on a record are refused")
    first = np.cumsum(counts) - counts
    total = int(counts.sum())
    bounds = np.zeros((4, total), np.int64)
    null = np.zeros(total, np.bool_)
    buffer = np.frombuffer(data, np.uint8)
    position = at.copy()
    active = np.flatnonzero(counts)
    step = 0
    while len(active):
        slot = first[active] + step
        name_length, name_at = read_varints(buffer, position[active])
        _check(name_length < 0, name_at, "a header without a name")
        name_end = name_at + name_length
        _check(name_end >= ends[active], name_at, "a header name reaches past its record")
        value_length, value_at = read_varints(buffer, name_end)
        null[slot] = value_length < 0
        value_end = value_at + np.maximum(value_length, 0)
        _check(value_end > ends[active], value_at, "a header value reaches past its record")
        bounds[:, slot] = name_at, name_end, value_at, value_end
        position[active] = value_end
        step += 1
        active = active[counts[active] > step]
    _check(position != ends, position, "bytes are left behind the last header")
    return _list_array(data, buffer, bounds, null, counts)


def _check(wrong: np.ndarray[tuple[int], np.dtype[np.bool_]], at: Longs, reason: str) -> None:
    if wrong.any():
        raise CorruptRecordError(reason, int(at[int(np.argmax(wrong))]) - 1)


def _list_array(
    data: bytes | bytearray,
    buffer: Bytes,
    bounds: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    null: np.ndarray[tuple[int], np.dtype[np.bool_]],
    counts: Longs,
) -> pa.ListArray:
    total = bounds.shape[1]
    interleaved = np.zeros(4 * total + 1, np.int32)
    interleaved[:-1] = bounds.T.reshape(-1)
    if total:
        interleaved[-1] = interleaved[-2]
    fields = pa.Array.from_buffers(
        pa.binary(), 4 * total, [None, pa.py_buffer(interleaved), pa.py_buffer(data)]
    )
    names = fields.take(pa.array(np.arange(0, 4 * total, 4, dtype=np.int32)))
    values = fields.take(pa.array(np.arange(2, 4 * total, 4, dtype=np.int32), mask=null))
    try:
        names = names.cast(pa.string())
    except pa.ArrowInvalid as exc:
        at = int(bounds[0, _first_not_utf8(names)])
        raise CorruptRecordError("a header name is not UTF-8", at) from exc
    structs = pa.StructArray.from_arrays([names, values], fields=list(HEADER_TYPE))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), structs, type=HEADERS_TYPE, mask=pa.array(counts == 0)
    )


def _first_not_utf8(names: pa.BinaryArray) -> int:
    """Find the first name that is not UTF-8, for a message."""
    for index, name in enumerate(names.to_pylist()):
        try:
            name.decode()
        except UnicodeDecodeError:
            return index
    return 0


def is_headers_type(kind: pa.DataType) -> bool:
    """Tell whether a column of this type can be written: `HEADERS_TYPE`, whatever is nullable."""
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return False
    fields = [(field.name, field.type) for field in kind.value_type]
    return fields == [(field.name, field.type) for field in HEADER_TYPE]


def header_sizes(headers: Column, first_row: int) -> Longs:
    """Give the bytes that the headers of each record take, their count among them.

    Raises `ValueError` that names the row, the first being `first_row`, if a header has no name or
    a record has more headers than a reader takes.
    """
    sizes = [np.empty(0, np.int64)]
    for chunk in chunks_of(headers):
        sizes.append(_sizes(chunk, first_row))
        first_row += len(chunk)
    return np.concatenate(sizes)


def write_headers(headers: pa.ListArray) -> list[pa.BinaryArray]:
    """Encode the headers of each record: two columns to join, the count and the headers."""
    counts, names, values = _fields(headers)
    name_lengths, value_lengths = byte_lengths(names), byte_lengths(values)
    raw_names, raw_values = zigzag(name_lengths), zigzag(value_lengths)
    entries = joined([varints(raw_names), names.cast(pa.binary()), varints(raw_values), values])
    entry_bounds = bounds_of(
        field_sizes(name_lengths, raw_names) + field_sizes(value_lengths, raw_values)
    )
    bounds = entry_bounds[bounds_of(counts)]
    return [varints(zigzag(counts)), binary_array(entries, bounds)]


def _sizes(headers: pa.ListArray, first_row: int) -> Longs:
    counts, names, values = _fields(headers)
    refuse(counts > MAX_HEADERS, first_row, f"the record has more than {MAX_HEADERS} headers")
    name_lengths, value_lengths = byte_lengths(names), byte_lengths(values)
    if (name_lengths < 0).any():
        nameless = np.repeat(np.arange(len(counts)), counts)[name_lengths < 0]
        raise ValueError(f"row {first_row + int(nameless[0])}: a header without a name")
    sizes = field_sizes(name_lengths, zigzag(name_lengths))
    sizes += field_sizes(value_lengths, zigzag(value_lengths))
    behind = bounds_of(sizes)[bounds_of(counts)]
    return np.diff(behind) + varint_sizes(zigzag(counts)).astype(np.int64)


def _fields(headers: pa.ListArray) -> tuple[Longs, pa.StringArray, pa.BinaryArray]:
    """Give the number of headers of each record, and the names and values of all of them."""
    counts = pc.list_value_length(headers).fill_null(0).to_numpy().astype(np.int64)
    bounds = headers.offsets.to_numpy()
    first, count = (int(bounds[0]), int(bounds[-1] - bounds[0])) if len(headers) else (0, 0)
    # A null list may lie over headers that are not to be seen.
    hidden = count != counts.sum()
    entries = headers.flatten() if hidden else headers.values.slice(first, count)
    names, values = entries.flatten()
    return counts, names, values
