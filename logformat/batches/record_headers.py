"""Record headers in Arrow: a list of (key string, value binary) for each record, null for none.

The rule: header k of all records that have one is read in one step, and all headers of all records
are written at once. Keys may repeat and keep their order, a null value is legal and a null key is
not (docs/format.md, 3).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs, Mask
from klog.logformat.arrow_values import from_numpy
from klog.logformat.batches.arrow_columns import (
    Column,
    binary_array,
    byte_lengths,
    column_chunks,
    element_bounds,
    field_sizes,
    join_columns,
    raise_for_row,
    varint_column,
)
from klog.logformat.batches.batch_limits import MAX_RECORD_HEADERS
from klog.logformat.batches.corrupt_checks import raise_if_corrupt
from klog.logformat.batches.varint import decode_varints, varint_sizes, zigzag_encode

HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE = pa.list_(pa.field("element", HEADER_TYPE))


def decode_headers(
    data: bytes | bytearray, starts: Longs, ends: Longs, counts: Longs
) -> pa.ListArray:
    """Return the headers of records.

    Args:
        data: The buffer of the records, and padding.
        starts: Where the first header of each record starts.
        ends: Where the last header of each record must end.
        counts: How many headers each record has.

    Raises:
        CorruptRecordError: A key is null or not UTF-8, a field reaches past its record, or a record
            has too many headers; its position lies in the record.
    """
    reason = f"more than {MAX_RECORD_HEADERS} headers on a record are refused"
    raise_if_corrupt(counts > MAX_RECORD_HEADERS, starts - 1, reason)
    first_headers = np.cumsum(counts) - counts
    total = int(counts.sum())
    bounds = np.zeros((4, total), np.int64)
    is_null = np.zeros(total, np.bool_)
    buffer = np.frombuffer(data, np.uint8)
    positions = starts.copy()
    active = np.flatnonzero(counts)
    step = 0
    while len(active):
        headers = first_headers[active] + step
        key_lengths, keys = decode_varints(buffer, positions[active])
        raise_if_corrupt(key_lengths < 0, keys - 1, "a header without a key")
        key_ends = keys + key_lengths
        reason = "a header key reaches past its record"
        raise_if_corrupt(key_ends >= ends[active], keys - 1, reason)
        value_lengths, values = decode_varints(buffer, key_ends)
        is_null[headers] = value_lengths < 0
        value_ends = values + np.maximum(value_lengths, 0)
        reason = "a header value reaches past its record"
        raise_if_corrupt(value_ends > ends[active], values - 1, reason)
        bounds[:, headers] = keys, key_ends, values, value_ends
        positions[active] = value_ends
        step += 1
        active = active[counts[active] > step]
    raise_if_corrupt(positions != ends, positions - 1, "bytes follow the last header")
    return _list_array(data, bounds, is_null, counts)


def _list_array(
    data: bytes | bytearray, bounds: Longs, is_null: Mask, counts: Longs
) -> pa.ListArray:
    """Return headers as lists; `bounds` has rows for the starts and ends of keys and values."""
    total = bounds.shape[1]
    interleaved = np.zeros(4 * total + 1, np.int32)
    interleaved[:-1] = bounds.T.reshape(-1)
    if total:
        interleaved[-1] = interleaved[-2]
    fields = pa.Array.from_buffers(
        pa.binary(), 4 * total, [None, pa.py_buffer(interleaved), pa.py_buffer(data)]
    )
    keys = fields.take(from_numpy(np.arange(0, 4 * total, 4, dtype=np.int32)))
    values = fields.take(from_numpy(np.arange(2, 4 * total, 4, dtype=np.int32), is_null))
    try:
        keys = keys.cast(pa.string())
    except pa.ArrowInvalid as exc:
        position = int(bounds[0, _first_not_utf8(keys)])
        raise CorruptRecordError("a header key is not UTF-8", position) from exc
    headers = pa.StructArray.from_arrays([keys, values], fields=list(HEADER_TYPE))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return pa.ListArray.from_arrays(
        from_numpy(offsets), headers, type=HEADERS_TYPE, mask=from_numpy(counts == 0)
    )


def _first_not_utf8(keys: pa.BinaryArray) -> int:
    """Return the number of the first key that is not UTF-8."""
    for index, key in enumerate(keys.to_pylist()):
        try:
            key.decode()
        except UnicodeDecodeError:
            return index
    return 0


def is_headers_type(column_type: pa.DataType) -> bool:
    """Return whether headers of a type can be written: `HEADERS_TYPE`, nullable or not.

    Args:
        column_type: The type of a column of headers.
    """
    if not pa.types.is_list(column_type) or not pa.types.is_struct(column_type.value_type):
        return False
    fields = [(field.name, field.type) for field in column_type.value_type]
    return fields == [(field.name, field.type) for field in HEADER_TYPE]


def header_sizes(headers: Column, first_row: int) -> Longs:
    """Return the bytes that the headers of each record take, with their count.

    Args:
        headers: Of `HEADERS_TYPE`.
        first_row: The number of the first row, for the error.

    Raises:
        ValueError: A header has no key, or a record has too many headers; the error names the row.
    """
    sizes = [np.empty(0, np.int64)]
    for chunk in column_chunks(headers):
        sizes.append(_chunk_sizes(chunk, first_row))
        first_row += len(chunk)
    return np.concatenate(sizes)


def encode_headers(headers: pa.ListArray) -> list[pa.BinaryArray]:
    """Return the encoded headers of each record as two columns: the count and the headers.

    Args:
        headers: Of `HEADERS_TYPE`.
    """
    counts, keys, values = _keys_and_values(headers)
    key_bytes, value_bytes = byte_lengths(keys), byte_lengths(values)
    key_lengths, value_lengths = zigzag_encode(key_bytes), zigzag_encode(value_bytes)
    encoded = join_columns(
        [varint_column(key_lengths), keys.cast(pa.binary()), varint_column(value_lengths), values]
    )
    header_bounds = element_bounds(
        field_sizes(key_bytes, key_lengths) + field_sizes(value_bytes, value_lengths)
    )
    bounds = header_bounds[element_bounds(counts)]
    return [varint_column(zigzag_encode(counts)), binary_array(encoded, bounds)]


def _chunk_sizes(headers: pa.ListArray, first_row: int) -> Longs:
    counts, keys, values = _keys_and_values(headers)
    reason = f"the record has more than {MAX_RECORD_HEADERS} headers"
    raise_for_row(counts > MAX_RECORD_HEADERS, first_row, reason)
    key_bytes, value_bytes = byte_lengths(keys), byte_lengths(values)
    if (key_bytes < 0).any():
        rows = np.repeat(np.arange(len(counts)), counts)[key_bytes < 0]
        raise ValueError(f"row {first_row + int(rows[0])}: a header without a key")
    sizes = field_sizes(key_bytes, zigzag_encode(key_bytes))
    sizes += field_sizes(value_bytes, zigzag_encode(value_bytes))
    ends = element_bounds(sizes)[element_bounds(counts)]
    return np.diff(ends) + varint_sizes(zigzag_encode(counts)).astype(np.int64)


def _keys_and_values(headers: pa.ListArray) -> tuple[Longs, pa.StringArray, pa.BinaryArray]:
    """Return the number of headers of each record, and the keys and values of all of them."""
    import pyarrow.compute as pc  # Only writers need it.

    counts = pc.list_value_length(headers).fill_null(0).to_numpy().astype(np.int64)
    bounds = headers.offsets.to_numpy()
    first, count = (int(bounds[0]), int(bounds[-1] - bounds[0])) if len(headers) else (0, 0)
    # A null list may lie over headers that do not count.
    has_hidden = count != counts.sum()
    entries = headers.flatten() if has_hidden else headers.values.slice(first, count)
    keys, values = entries.flatten()
    return counts, keys, values
