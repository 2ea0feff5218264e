"""Zig-zag varints, many at a time: every position in an array is read or written by a few kernels.

A varint is at most 5 bytes and a varlong at most 10; surplus high bits in the last byte are
dropped, a continuation bit in it is an error (docs/format.md, 3; Kafka's `ByteUtils`). One and two
bytes, nearly all that a log holds, are looked up in a table; longer ones are folded byte by byte,
and only for the positions that have them.

`data` is a uint8 array that ends in `PADDING` bytes beyond anything a valid position points at, so
that no gather needs a bound of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from klog.errors import CorruptRecordError

PADDING = 16
VARINT_BYTES = 5
VARLONG_BYTES = 10

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Raw = npt.NDArray[np.uint64]
"""Numbers as they lie in varints: unsigned, by zig-zag where they have a sign."""
Sizes = npt.NDArray[np.int8]
"""Bytes of varints: a few of them still add up in 8 bits, at an eighth of the memory."""


def _two_byte_table() -> npt.NDArray[np.int32]:
    """For each little-endian pair of bytes: value times 4 plus size, or 0 for 3 bytes and more."""
    pair = np.arange(1 << 16, dtype=np.int32)
    low, high = pair & 0xFF, pair >> 8
    raw = np.where(low < 0x80, low, (low & 0x7F) | (high << 7))
    value = (raw >> 1) ^ -(raw & 1)
    size = np.where(low < 0x80, 1, np.where(high < 0x80, 2, 0))
    return np.where(size > 0, value * 4 + size, 0).astype(np.int32)


TWO_BYTES = _two_byte_table()

_number = np.arange(1 << 14, dtype=np.uint16)
_WRITTEN = np.where(_number < 0x80, _number, (_number & 0x7F) | 0x80 | _number >> 7 << 8)
_WRITTEN = _WRITTEN.astype("<u2")
"""For each number of up to 14 bits its varint, as the little-endian pair of bytes."""

# Numbers of numpy's: an operation on a short array takes twice as long with one of Python's.
_MORE, _SEVEN = np.uint64(0x80), np.uint64(7)
_LOW, _HIGH, _ONE = np.uint8(0x7F), np.uint8(7), np.int8(1)


def pairs(data: Bytes) -> npt.NDArray[np.uint16]:
    """View `data` as the little-endian 16-bit number that starts at each of its bytes."""
    view: npt.NDArray[np.uint16] = np.ndarray((len(data) - 1,), "<u2", data.data, 0, (1,))
    return view


def read_varints(data: Bytes, at: Longs, limit: int = VARINT_BYTES) -> tuple[Longs, Longs]:
    """Decode one varint at each position: (values, positions just behind them).

    `limit` is the most bytes one may have: `VARINT_BYTES` or `VARLONG_BYTES`.
    Raises `CorruptRecordError` for a varint that does not end in time.
    """
    first = data.take(at, mode="clip")
    if not (first & 0x80).any():
        return _unzigzag(first.astype(np.int64)), at + 1
    second = data.take(at + 1, mode="clip")
    entry = TWO_BYTES.take(first | (second.astype(np.int64) << 8))
    values = (entry >> 2).astype(np.int64)
    behind = at + (entry & 3)
    long = np.flatnonzero(entry == 0)
    if len(long):
        values[long], behind[long] = _read_long(data, at[long], limit)
    return values, behind


def _read_long(data: Bytes, at: Longs, limit: int) -> tuple[Longs, Longs]:
    """Decode varints of any size by folding one byte of all of them at a time."""
    raw = np.zeros(len(at), np.uint64)
    size = np.zeros(len(at), np.int64)
    pending = np.arange(len(at))
    for index in range(limit):
        byte = data.take(at[pending] + index, mode="clip")
        raw[pending] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * index)
        size[pending] = index + 1
        pending = pending[byte >= 0x80]
        if not len(pending):
            break
    if len(pending):
        raise CorruptRecordError(f"varint of more than {limit} bytes", int(at[pending[0]]))
    if limit == VARINT_BYTES:
        raw &= np.uint64(0xFFFFFFFF)
    return _unzigzag(raw), at + size


def _unzigzag(raw: npt.NDArray[np.int64] | npt.NDArray[np.uint64]) -> Longs:
    """Undo zig-zag: even is n/2, odd is -(n+1)/2."""
    return (raw >> 1).astype(np.int64) ^ -(raw & 1).astype(np.int64)


def zigzag(values: Longs) -> Raw:
    """Fold the sign into the lowest bit: n >= 0 is 2n, n < 0 is -2n-1."""
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def varint_sizes(raw: Raw) -> Sizes:
    """Give the bytes that each number takes, seven bits a byte."""
    sizes: Sizes = (raw >= _MORE).view(np.int8) + _ONE
    for size in range(2, _size(int(raw.max(initial=0)))):
        sizes += (raw >= _MORE << _SEVEN * np.uint64(size - 1)).view(np.int8)
    return sizes


def write_varints(columns: Sequence[Raw]) -> tuple[Bytes, Sizes]:
    """Write the varints of each row side by side, one row behind the other: (bytes, sizes of rows).

    Every column gets as many bytes as its largest number needs; then those not used fall out.
    """
    widths = [_size(int(raw.max(initial=0))) for raw in columns]
    out = np.empty((len(columns[0]), sum(widths)), np.uint8)
    used = np.ones(out.shape, np.bool_)
    sizes = np.full(len(out), len(columns), np.int8)
    at = 0
    for raw, width in zip(columns, widths, strict=True):
        for index in range(at, at + width - 1):
            more = raw >= _MORE
            used[:, index + 1] = more
            sizes += more.view(np.int8)
            if width > 2:
                low = raw.astype(np.uint8)
                low &= _LOW
                low |= more.view(np.uint8) << _HIGH
                out[:, index] = low
                raw = raw >> _SEVEN
        if width == 2:
            pair: npt.NDArray[np.uint16] = np.ndarray(len(out), "<u2", out, at, out.strides[:1])
            pair[:] = _WRITTEN.take(raw.view(np.int64), mode="clip")
        else:
            out[:, at + width - 1] = raw
        at += width
    whole = int(sizes.min(initial=out.shape[1])) == out.shape[1]
    return out.reshape(-1) if whole else out[used], sizes


def _size(number: int) -> int:
    return max(-(-number.bit_length() // 7), 1)
