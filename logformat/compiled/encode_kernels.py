"""Kernels that encode records of format v2 from Arrow's columns, batch by batch.

The rule: they write, byte for byte, what `encode_records` writes of the same rows, and a batch ends
where `encode_batches` ends it. They know only records without headers. The bounds of a field must
rise and lie within its bytes, so the kernels read nothing outside of a field, and write nothing
outside of the memory that they are given.

All code is in one file, with constants of its own: numba keeps compiled code until this file
changes, whatever else does.
"""

from __future__ import annotations

import numpy as np

from klog.logformat.array_types import Bytes, Ints, Longs
from klog.logformat.compiled.kernel_arguments import read_only
from klog.logformat.compiled.kernel_functions import inlined, kernel
from klog.logformat.compiled.kernel_types import KeysAndValues, Rows

OPEN, FULL, REFUSED = 0, 1, 2
"""Why a batch takes no more rows: there are no more, the next row starts another batch, or the
kernels do not know a row, and the numpy path encodes the batch from its first row on."""

SIZE, COUNT, BASE_OFFSET, LAST_OFFSET, BASE_TIMESTAMP, MAX_TIMESTAMP = range(6)
"""Places in the state of a batch; the size is that of its records in bytes."""
STATE = 6
"""The length of the state."""

_MAX_RECORDS, _MAX_DELTA, _MAX_OFFSET = 1 << 22, (1 << 31) - 1, (1 << 63) - (1 << 31) - 1
_NO_TIMESTAMP = -1
_ZERO, _ONE, _TWO, _SEVEN = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(7)
_CONTINUATION, _LOW_BITS = np.uint64(0x80), np.uint64(0x7F)
_NULL = np.uint64(1)
"""The zig-zag of -1."""


def compile_all() -> None:
    """Compile each kernel, or load its compiled code; raises whatever numba raises."""
    longs, data = read_only(np.zeros(0, np.int64)), read_only(np.zeros(1, np.uint8))
    rows, field = (longs, longs, 0), (read_only(np.zeros(1, np.int32)), data, (0, 0), data)
    state = np.zeros(STATE, np.int64)
    count_fitting_rows(rows, (field, field), 0, (0, -1, False), state)
    encode_records(rows, (field, field), (0, 0), state, np.zeros(0, np.uint8), 0)


@kernel
def count_fitting_rows(
    rows: Rows,
    fields: KeysAndValues,
    row: int,
    limits: tuple[int, int, bool],
    state: Longs,
) -> tuple[int, int]:
    """Return the first row from `row` on that a batch does not take, and the reason.

    Args:
        rows: Timestamps and offsets.
        fields: Keys and values.
        row: The first row to add.
        limits: The bytes of the records if there are several, the base timestamp (-1 for that of
            the first record), and whether any timestamp is allowed.
        state: The state of the batch; it is updated to include the rows that fit.
    """
    timestamps, offsets, first_offset = rows
    (keys, valid_keys, key_bit, key_data), (values, valid_values, value_bit, value_data) = fields
    key_bytes, value_bytes = len(key_data), len(value_data)
    max_bytes, fixed_base, takes_any = np.uint64(max(limits[0], 0)), limits[1], limits[2]
    end, count = np.uint64(state[SIZE]), state[COUNT]
    base_offset, last_offset = state[BASE_OFFSET], state[LAST_OFFSET]
    base_timestamp, max_timestamp = state[BASE_TIMESTAMP], state[MAX_TIMESTAMP]
    reason = OPEN
    while row < len(timestamps):
        timestamp = timestamps[row]
        offset = offsets[row] if len(offsets) else np.int64(first_offset + row)
        is_sound = _is_within(keys, row, key_bytes) & _is_within(values, row, value_bytes)
        if not (is_sound & _is_allowed(timestamp, takes_any, offset, last_offset)):
            reason = REFUSED
            break
        if count == 0:
            base_offset, max_timestamp = offset, timestamp
            base_timestamp = timestamp if fixed_base < 0 else fixed_base
        size = _body_size(
            _zigzag(timestamp - base_timestamp),
            np.uint64(offset - base_offset) << _ONE,
            _length_zigzag(keys, valid_keys, key_bit, row),
            _length_zigzag(values, valid_values, value_bit, row),
        )
        size += _varint_size(size << _ONE)
        if count and (
            end + size > max_bytes or count == _MAX_RECORDS or offset - base_offset > _MAX_DELTA
        ):
            reason = FULL
            break
        end, row, count = end + size, row + 1, count + 1
        last_offset, max_timestamp = offset, max(max_timestamp, timestamp)
    state[SIZE], state[COUNT] = np.int64(end), count
    state[BASE_OFFSET], state[LAST_OFFSET] = base_offset, last_offset
    state[BASE_TIMESTAMP], state[MAX_TIMESTAMP] = base_timestamp, max_timestamp
    return row, reason


@kernel
def encode_records(
    rows: Rows,
    fields: KeysAndValues,
    row_range: tuple[int, int],
    state: Longs,
    out: Bytes,
    position: int,
) -> None:
    """Write the records of rows that `count_fitting_rows` counted.

    Args:
        rows: Timestamps and offsets.
        fields: Keys and values.
        row_range: The first row and the row after the last one.
        state: The state of the batch.
        out: The records of the batch.
        position: Where the first of these records starts in `out`.
    """
    timestamps, offsets, first_offset = rows
    (keys, valid_keys, key_bit, key_data), (values, valid_values, value_bit, value_data) = fields
    base_offset, base_timestamp = state[BASE_OFFSET], state[BASE_TIMESTAMP]
    at = np.uint64(position)
    for row in range(row_range[0], row_range[1]):
        offset = offsets[row] if len(offsets) else np.int64(first_offset + row)
        timestamp_delta = _zigzag(timestamps[row] - base_timestamp)
        offset_delta = np.uint64(offset - base_offset) << _ONE
        key_length = _length_zigzag(keys, valid_keys, key_bit, row)
        value_length = _length_zigzag(values, valid_values, value_bit, row)
        size = _body_size(timestamp_delta, offset_delta, key_length, value_length)
        at = _encode_varint(out, at, size << _ONE)
        out[at] = 0  # Attributes.
        at = _encode_varint(out, at + _ONE, timestamp_delta)
        at = _encode_varint(out, at, offset_delta)
        at = _encode_field(out, at, key_length, key_data, keys[row])
        at = _encode_field(out, at, value_length, value_data, values[row])
        out[at] = 0  # The number of headers.
        at += _ONE


@inlined
def _is_allowed(
    timestamp: np.int64, takes_any: bool, offset: np.int64, last_offset: np.int64
) -> bool:
    """Return whether the numpy path takes the timestamp, and the offset is above the last one."""
    has_time = takes_any or timestamp >= _NO_TIMESTAMP
    return bool(has_time and last_offset < offset <= _MAX_OFFSET)


@inlined
def _is_within(bounds: Ints, row: int, size: int) -> bool:
    """Return whether a row's bounds rise and lie within the bytes."""
    start, end = bounds[row], bounds[row + 1]
    return bool(0 <= start <= end <= size)


@inlined
def _length_zigzag(bounds: Ints, validity: Bytes, bits: tuple[int, int], row: int) -> np.uint64:
    """Return the zig-zag of a field's length, that of -1 for null.

    The arrays are read whatever the condition: in a branch numba would count their owners, with
    locked instructions.
    """
    bit = (row + bits[0]) & bits[1]
    is_valid = validity[bit >> 3] >> (bit & 7) & 1
    length = np.uint64(bounds[row + 1] - bounds[row]) << _ONE
    return length if is_valid else _NULL


@inlined
def _body_size(
    timestamp_delta: np.uint64,
    offset_delta: np.uint64,
    key_length: np.uint64,
    value_length: np.uint64,
) -> np.uint64:
    """Return the bytes after a record's length; attributes and the header count are two."""
    size = _TWO + _varint_size(timestamp_delta) + _varint_size(offset_delta)
    size += _varint_size(key_length) + _field_size(key_length)
    return size + _varint_size(value_length) + _field_size(value_length)


@inlined
def _field_size(length: np.uint64) -> np.uint64:
    """Return the bytes of a field by its length's zig-zag; null has none."""
    return _ZERO if length & _ONE else length >> _ONE


@inlined
def _zigzag(number: np.int64) -> np.uint64:
    return np.uint64((number << np.int64(1)) ^ (number >> np.int64(63)))


@inlined
def _varint_size(zigzag: np.uint64) -> np.uint64:
    size = _ONE
    while zigzag >= _CONTINUATION:
        zigzag >>= _SEVEN
        size += _ONE
    return size


@inlined
def _encode_varint(out: Bytes, at: np.uint64, zigzag: np.uint64) -> np.uint64:
    while zigzag >= _CONTINUATION:
        out[at] = np.uint8(zigzag & _LOW_BITS | _CONTINUATION)
        zigzag >>= _SEVEN
        at += _ONE
    out[at] = np.uint8(zigzag)
    return at + _ONE


@inlined
def _encode_field(
    out: Bytes, at: np.uint64, length: np.uint64, data: Bytes, start: int
) -> np.uint64:
    at = _encode_varint(out, at, length)
    first, size = np.uint64(start), _field_size(length)
    for index in range(size):
        out[at + index] = data[first + index]
    return at + size


KERNELS = (count_fitting_rows, encode_records)
"""All kernels of this module."""
