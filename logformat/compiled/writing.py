"""Records of format v2 written from Arrow's columns by loops that numba compiled, batch by batch.

The rule: what they write is, byte for byte, what `records.py` writes of the same rows, and a batch
ends where `encode.py` ends it. Records without headers are all that they know, and of a field they
take bounds that rise and lie within its bytes, so they read nowhere beyond them, and write nowhere
beyond the room that they were given.

All of it lies in one file, with constants of its own: numba takes what it kept for as good as new
until this file changes, whatever else does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klog.logformat.compiled.compiling import compiled, frozen, part
from klog.logformat.varint import Bytes, Longs

Bounds = npt.NDArray[np.int32]
Field = tuple[Bounds, Bytes, tuple[int, int], Bytes]
"""A column of bytes: bounds of its elements, bits of which are not null, and the bytes.

Row i's bit is number `(i + first) & mask`: with a mask of 0 one bit stands for all rows.
"""

OPEN, FULL, REFUSED = 0, 1, 2
"""Why a batch takes no more: no row is left, the next one begins another, or another way has to be
gone from the batch's first row."""

SIZE, COUNT, BASE_OFFSET, LAST_OFFSET, BASE_TIMESTAMP, MAX_TIMESTAMP = range(6)
"""What is known of a batch."""
STATE = 6

_MOST_RECORDS, _MOST_DELTA, _MOST_OFFSET = 1 << 22, (1 << 31) - 1, (1 << 63) - (1 << 31) - 1
_NO_TIMESTAMP = -1
_ZERO, _ONE, _TWO, _SEVEN = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(7)
_MORE, _LOW = np.uint64(0x80), np.uint64(0x7F)
_NULL = np.uint64(1)
"""The bits of -1."""


def compile_all() -> None:
    """Compile each loop, or load what was kept of it; raises whatever numba raises."""
    longs, data = frozen(np.zeros(0, np.int64)), frozen(np.zeros(1, np.uint8))
    rows, field = (longs, longs, 0), (frozen(np.zeros(1, np.int32)), data, (0, 0), data)
    state = np.zeros(STATE, np.int64)
    fit(rows, (field, field), 0, (0, -1, False), state)
    write(rows, (field, field), (0, 0), state, np.zeros(0, np.uint8), 0)


@compiled
def fit(
    rows: tuple[Longs, Longs, int],
    fields: tuple[Field, Field],
    row: int,
    limits: tuple[int, int, bool],
    state: Longs,
) -> tuple[int, int]:
    """Find how many rows from `row` on a batch takes: the first that it does not, and why.

    `rows` are timestamps, and either offsets or that of the first row, `fields` keys and values;
    `limits` the most bytes of several records, the base timestamp, -1 to take the first record's,
    and whether any timestamp is taken. What is known of the batch is brought up to these rows.
    """
    timestamps, offsets, first_offset = rows
    (keys, valid_keys, key_bit, key_data), (values, valid_values, value_bit, value_data) = fields
    of_keys, of_values = len(key_data), len(value_data)
    room, given_base, takes_any = np.uint64(max(limits[0], 0)), limits[1], limits[2]
    end, count = np.uint64(state[SIZE]), state[COUNT]
    base_offset, before = state[BASE_OFFSET], state[LAST_OFFSET]
    base_timestamp, latest = state[BASE_TIMESTAMP], state[MAX_TIMESTAMP]
    reason = OPEN
    while row < len(timestamps):
        timestamp = timestamps[row]
        offset = offsets[row] if len(offsets) else np.int64(first_offset + row)
        is_sound = _is_within(keys, row, of_keys) & _is_within(values, row, of_values)
        if not (is_sound & _are_known(timestamp, takes_any, offset, before)):
            reason = REFUSED
            break
        if count == 0:
            base_offset, latest = offset, timestamp
            base_timestamp = timestamp if given_base < 0 else given_base
        size = _body_size(
            _folded(timestamp - base_timestamp),
            np.uint64(offset - base_offset) << _ONE,
            _length_bits(keys, valid_keys, key_bit, row),
            _length_bits(values, valid_values, value_bit, row),
        )
        size += _size_of(size << _ONE)
        if count and (
            end + size > room or count == _MOST_RECORDS or offset - base_offset > _MOST_DELTA
        ):
            reason = FULL
            break
        end, row, count = end + size, row + 1, count + 1
        before, latest = offset, max(latest, timestamp)
    state[SIZE], state[COUNT] = np.int64(end), count
    state[BASE_OFFSET], state[LAST_OFFSET] = base_offset, before
    state[BASE_TIMESTAMP], state[MAX_TIMESTAMP] = base_timestamp, latest
    return row, reason


@compiled
def write(
    rows: tuple[Longs, Longs, int],
    fields: tuple[Field, Field],
    span: tuple[int, int],
    state: Longs,
    out: Bytes,
    position: int,
) -> None:
    """Write the rows of a span, which `fit` found, from a position in `out` on."""
    timestamps, offsets, first_offset = rows
    (keys, valid_keys, key_bit, key_data), (values, valid_values, value_bit, value_data) = fields
    base_offset, base_timestamp = state[BASE_OFFSET], state[BASE_TIMESTAMP]
    at = np.uint64(position)
    for row in range(span[0], span[1]):
        offset = offsets[row] if len(offsets) else np.int64(first_offset + row)
        time_bits = _folded(timestamps[row] - base_timestamp)
        offset_bits = np.uint64(offset - base_offset) << _ONE
        key_bits = _length_bits(keys, valid_keys, key_bit, row)
        value_bits = _length_bits(values, valid_values, value_bit, row)
        size = _body_size(time_bits, offset_bits, key_bits, value_bits)
        at = _write_varint(out, at, size << _ONE)
        out[at] = 0
        at = _write_varint(out, at + _ONE, time_bits)
        at = _write_varint(out, at, offset_bits)
        at = _write_field(out, at, key_bits, key_data, keys[row])
        at = _write_field(out, at, value_bits, value_data, values[row])
        out[at] = 0
        at += _ONE


@part
def _are_known(timestamp: np.int64, takes_any: bool, offset: np.int64, before: np.int64) -> bool:
    """Tell whether columns would take them, and the offset is above the one before."""
    has_time = takes_any or timestamp >= _NO_TIMESTAMP
    return bool(has_time and before < offset <= _MOST_OFFSET)


@part
def _is_within(bounds: Bounds, row: int, size: int) -> bool:
    """Tell whether a row's bounds rise and lie within the bytes."""
    begin, end = bounds[row], bounds[row + 1]
    return bool(0 <= begin <= end <= size)


@part
def _length_bits(bounds: Bounds, valid: Bytes, bits: tuple[int, int], row: int) -> np.uint64:
    """Give the zig-zag of a field's length, that of -1 for null.

    An array is touched under no condition: numba would count, with locks, who holds it.
    """
    bit = (row + bits[0]) & bits[1]
    is_valid = valid[bit >> 3] >> (bit & 7) & 1
    length = np.uint64(bounds[row + 1] - bounds[row]) << _ONE
    return length if is_valid else _NULL


@part
def _body_size(
    time_bits: np.uint64, offset_bits: np.uint64, key_bits: np.uint64, value_bits: np.uint64
) -> np.uint64:
    """Give the bytes behind a record's length; attributes and the count of headers are two."""
    size = _TWO + _size_of(time_bits) + _size_of(offset_bits)
    size += _size_of(key_bits) + _size(key_bits)
    return size + _size_of(value_bits) + _size(value_bits)


@part
def _size(bits: np.uint64) -> np.uint64:
    """Give the bytes of a field whose length these are; null has none."""
    return _ZERO if bits & _ONE else bits >> _ONE


@part
def _folded(number: np.int64) -> np.uint64:
    """Do zig-zag."""
    return np.uint64((number << np.int64(1)) ^ (number >> np.int64(63)))


@part
def _size_of(bits: np.uint64) -> np.uint64:
    """Give the bytes of a varint."""
    size = _ONE
    while bits >= _MORE:
        bits >>= _SEVEN
        size += _ONE
    return size


@part
def _write_varint(out: Bytes, at: np.uint64, bits: np.uint64) -> np.uint64:
    while bits >= _MORE:
        out[at] = np.uint8(bits & _LOW | _MORE)
        bits >>= _SEVEN
        at += _ONE
    out[at] = np.uint8(bits)
    return at + _ONE


@part
def _write_field(out: Bytes, at: np.uint64, bits: np.uint64, data: Bytes, begin: int) -> np.uint64:
    at = _write_varint(out, at, bits)
    first, size = np.uint64(begin), _size(bits)
    for place in range(size):
        out[at + place] = data[first + place]
    return at + size
