"""Zig-zag varints, many at a time: a few calls of numpy read or write those of an array.

The rule: a varint is at most 5 bytes and a varlong at most 10; surplus high bits in the last byte
are dropped, a continuation bit in it is an error (docs/format.md, 3; Kafka's `ByteUtils`). One and
two bytes, nearly all that a log holds, are looked up in a table; longer ones are read byte by byte,
and only at the positions that have them.

Buffers end in `PADDING` bytes after anything that a valid position points at, so that no lookup
needs a bound of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.array_types import (
    Bytes,
    Ints,
    Longs,
    SignedBytes,
    UnsignedLongs,
    UnsignedShorts,
)

PADDING = 16
VARINT_BYTES = 5
VARLONG_BYTES = 10


def _two_byte_table() -> Ints:
    """Return, for each little-endian pair of bytes, value times 4 plus size; 0 from 3 bytes on."""
    pair = np.arange(1 << 16, dtype=np.int32)
    low, high = pair & 0xFF, pair >> 8
    raw = np.where(low < 0x80, low, (low & 0x7F) | (high << 7))
    value = (raw >> 1) ^ -(raw & 1)
    size = np.where(low < 0x80, 1, np.where(high < 0x80, 2, 0))
    return np.where(size > 0, value * 4 + size, 0).astype(np.int32)


TWO_BYTES = _two_byte_table()

_number = np.arange(1 << 14, dtype=np.uint16)
_VARINT_PAIRS = np.where(_number < 0x80, _number, (_number & 0x7F) | 0x80 | _number >> 7 << 8)
_VARINT_PAIRS = _VARINT_PAIRS.astype("<u2")
"""The varint of each number of up to 14 bits, as a little-endian pair of bytes."""

# numpy's numbers: an operation on a short array takes twice as long with Python's.
_CONTINUATION, _SEVEN = np.uint64(0x80), np.uint64(7)
_LOW, _HIGH, _ONE = np.uint8(0x7F), np.uint8(7), np.int8(1)


def byte_pairs(data: Bytes) -> UnsignedShorts:
    """Return the little-endian 16-bit number that starts at each byte, as a view.

    Args:
        data: At least two bytes.
    """
    view: UnsignedShorts = np.ndarray((len(data) - 1,), "<u2", data.data, 0, (1,))
    return view


def decode_varints(
    data: Bytes, positions: Longs, max_bytes: int = VARINT_BYTES
) -> tuple[Longs, Longs]:
    """Return the value of the varint at each position, and the positions after them.

    Args:
        data: A buffer with padding.
        positions: Where each varint starts.
        max_bytes: `VARINT_BYTES` or `VARLONG_BYTES`.

    Raises:
        CorruptRecordError: A varint has more bytes.
    """
    first = data.take(positions, mode="clip")
    if not (first & 0x80).any():
        return _zigzag_decode(first.astype(np.int64)), positions + 1
    second = data.take(positions + 1, mode="clip")
    entry = TWO_BYTES.take(first | (second.astype(np.int64) << 8))
    values = (entry >> 2).astype(np.int64)
    ends = positions + (entry & 3)
    long = np.flatnonzero(entry == 0)
    if len(long):
        values[long], ends[long] = _decode_long(data, positions[long], max_bytes)
    return values, ends


def _decode_long(data: Bytes, positions: Longs, max_bytes: int) -> tuple[Longs, Longs]:
    """Read varints of any size, one byte of all of them at a time."""
    zigzags = np.zeros(len(positions), np.uint64)
    sizes = np.zeros(len(positions), np.int64)
    pending = np.arange(len(positions))
    for index in range(max_bytes):
        byte = data.take(positions[pending] + index, mode="clip")
        zigzags[pending] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * index)
        sizes[pending] = index + 1
        pending = pending[byte >= 0x80]
        if not len(pending):
            break
    if len(pending):
        reason = f"varint of more than {max_bytes} bytes"
        raise CorruptRecordError(reason, int(positions[pending[0]]))
    if max_bytes == VARINT_BYTES:
        zigzags &= np.uint64(0xFFFFFFFF)
    return _zigzag_decode(zigzags), positions + sizes


def _zigzag_decode(zigzags: Longs | UnsignedLongs) -> Longs:
    """Return signed numbers: even is n/2, odd is -(n+1)/2."""
    return (zigzags >> 1).astype(np.int64) ^ -(zigzags & 1).astype(np.int64)


def zigzag_encode(values: Longs) -> UnsignedLongs:
    """Return the zig-zags of numbers, with the sign in the lowest bit: 2n, or -2n-1 if n < 0.

    Args:
        values: The numbers.
    """
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def varint_sizes(zigzags: UnsignedLongs) -> SignedBytes:
    """Return the bytes of each varint, seven bits a byte.

    A few such sizes add up in 8 bits, at an eighth of the memory of longs.

    Args:
        zigzags: The zig-zags of the numbers to write.
    """
    sizes: SignedBytes = (zigzags >= _CONTINUATION).view(np.int8) + _ONE
    for size in range(2, _size(int(zigzags.max(initial=0)))):
        sizes += (zigzags >= _CONTINUATION << _SEVEN * np.uint64(size - 1)).view(np.int8)
    return sizes


def encode_varints(columns: Sequence[UnsignedLongs]) -> tuple[Bytes, SignedBytes]:
    """Return the varints of each row, side by side and row by row, and the bytes of each row.

    Every column gets as many bytes as its largest number needs; then unused bytes are removed.

    Args:
        columns: Zig-zags, a column for each varint of a row.
    """
    widths = [_size(int(zigzags.max(initial=0))) for zigzags in columns]
    out = np.empty((len(columns[0]), sum(widths)), np.uint8)
    is_used = np.ones(out.shape, np.bool_)
    sizes = np.full(len(out), len(columns), np.int8)
    at = 0
    for zigzags, width in zip(columns, widths, strict=True):
        for index in range(at, at + width - 1):
            has_more = zigzags >= _CONTINUATION
            is_used[:, index + 1] = has_more
            sizes += has_more.view(np.int8)
            if width > 2:
                low = zigzags.astype(np.uint8)
                low &= _LOW
                low |= has_more.view(np.uint8) << _HIGH
                out[:, index] = low
                zigzags = zigzags >> _SEVEN
        if width == 2:
            pair: UnsignedShorts = np.ndarray(len(out), "<u2", out, at, out.strides[:1])
            pair[:] = _VARINT_PAIRS.take(zigzags.view(np.int64), mode="clip")
        else:
            out[:, at + width - 1] = zigzags
        at += width
    are_all_used = int(sizes.min(initial=out.shape[1])) == out.shape[1]
    return out.reshape(-1) if are_all_used else out[is_used], sizes


def _size(number: int) -> int:
    return max(-(-number.bit_length() // 7), 1)
