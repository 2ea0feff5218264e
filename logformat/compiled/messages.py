"""Messages of formats v0 and v1 by loops that numba compiled: where they lie, their fields, CRCs.

    offset int64 | length int32 | crc uint32 | magic int8 | attributes int8 | timestamp int64 (v1)
    | key length int32, key | value length int32, value                     (docs/format.md, 1)

The rule: positions are unsigned, so that none can be before the buffer, and each is compared with
the end of its message or section before it is used. What is not as it should be is left to
`wrappers.py` and `legacy.py`, which say what is wrong.

All of it lies in one file, with constants of its own: numba takes what it kept for as good as new
until this file changes, whatever else does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klog.logformat.compiled.compiling import compiled, frozen, part
from klog.logformat.index import Mask
from klog.logformat.varint import Bytes, Longs

Words = npt.NDArray[np.uint32]
Bounds = npt.NDArray[np.int32]

LEAST_BYTES = 26
"""Of a message of v0 without key and value bytes."""
_LEAST_OF_V1 = np.uint64(34)
_ZERO, _ONE, _FOUR = np.uint64(0), np.uint64(1), np.uint64(4)
_LENGTH_AT, _FRAME, _MAGIC_AT = np.uint64(8), np.uint64(12), np.uint64(16)
_HEAD, _KEY_AT = np.uint64(16), (np.uint64(18), np.uint64(26))
_LEAST = np.uint64(LEAST_BYTES)
_BYTE, _ALL_BITS = np.uint64(0xFF), np.uint64(0xFFFFFFFF)
_ROW = np.uint64(1024)


def compile_all() -> None:
    """Compile each loop, or load what was kept of it; raises whatever numba raises."""
    buffer, given = frozen(np.zeros(0, np.uint8)), frozen(np.zeros(0, np.int64))
    words, filled = frozen(np.zeros((1, 1), np.uint32)), np.zeros(0, np.int64)
    walk(buffer, given, given, filled, filled)
    fields(buffer, given, given, (filled, filled), (filled, filled), (filled == 0, filled == 0))
    expected_crc(buffer, given, given, given, words, words)
    gather(buffer, given, given, np.zeros(0, np.uint8), np.zeros(1, np.int32))


@compiled
def walk(buffer: Bytes, starts: Longs, ends: Longs, found: Longs, counts: Longs) -> int:
    """Find where each message in some sections begins; gives how many there are, -1 to give up.

    `found` has room for as many as fit into the sections; `counts` gets the number of each.
    """
    total = 0
    for section in range(len(starts)):
        at, end = np.uint64(starts[section]), np.uint64(ends[section])
        first = total
        while at < end:
            if end - at < _LEAST:
                return -1
            length = _int(buffer, at + _LENGTH_AT)
            if length < LEAST_BYTES - 12 or np.uint64(length) > end - at - _FRAME:
                return -1
            found[total] = np.int64(at)
            total += 1
            at += _FRAME + np.uint64(length)
        counts[section] = total - first
    return total


@compiled
def fields(
    buffer: Bytes,
    starts: Longs,
    ends: Longs,
    keys: tuple[Longs, Longs],
    values: tuple[Longs, Longs],
    null: tuple[Mask, Mask],
) -> bool:
    """Find the keys and values of messages: starts, ends, and which are null; False to give up."""
    for row in range(len(starts)):
        begin, end = np.uint64(starts[row]), np.uint64(ends[row])
        if end - begin < _LEAST:
            return False
        magic = buffer[begin + _MAGIC_AT]
        if magic > 1 or (magic == 1 and end - begin < _LEAST_OF_V1):
            return False
        at = begin + (_KEY_AT[1] if magic == 1 else _KEY_AT[0])
        length = _int(buffer, at)
        at += _FOUR
        size = _ZERO if length < 0 else np.uint64(length)
        if size > end - at or end - at - size < _FOUR:
            return False
        keys[0][row], keys[1][row], null[0][row] = np.int64(at), np.int64(at + size), length < 0
        length = _int(buffer, at + size)
        at += size + _FOUR
        size = _ZERO if length < 0 else np.uint64(length)
        if size > end - at:
            return False
        values[0][row], values[1][row], null[1][row] = np.int64(at), np.int64(at + size), length < 0
    return True


@compiled
def expected_crc(
    buffer: Bytes, starts: Longs, ends: Longs, stored: Longs, of_bytes: Words, of_zeros: Words
) -> int:
    """Give the CRC-32 of entries that follow each other, if each has the one that is stored.

    `of_bytes[i]` are the CRCs of a byte before `i` zero bytes, `of_zeros[d]` for each value of a
    length's digit `d`, base 256, what four bytes of a CRC become when so many zero bytes follow.
    """
    crc = _ZERO
    for row in range(len(starts)):
        at, end = np.uint64(starts[row]), np.uint64(ends[row])
        register, crc = crc ^ _ALL_BITS, _ALL_BITS
        for place in range(16):
            byte = np.uint64(buffer[at + np.uint64(place)])
            if place < 4:
                byte ^= register >> np.uint64(8 * place) & _BYTE
            crc ^= np.uint64(of_bytes[15 - place, byte])
        left, digit = end - at - _HEAD, 0
        while left > _ZERO:
            if left & _BYTE:
                crc = _followed(of_zeros[digit], (left & _BYTE) * _ROW, crc)
            left >>= np.uint64(8)
            digit += 1
        crc ^= np.uint64(stored[row]) & _ALL_BITS
    return int(crc)


@part
def _followed(of_zeros: Words, row: np.uint64, crc: np.uint64) -> np.uint64:
    found = np.uint64(of_zeros[row + (crc & _BYTE)])
    for place in range(1, 4):
        byte = crc >> np.uint64(8 * place) & _BYTE
        found ^= np.uint64(of_zeros[row + np.uint64(256 * place) + byte])
    return found


@compiled
def gather(buffer: Bytes, starts: Longs, ends: Longs, out: Bytes, bounds: Bounds) -> None:
    """Copy fields one behind the other; `bounds` gets where they begin, and the last one ends."""
    at = _ZERO
    for row in range(len(starts)):
        begin, size = np.uint64(starts[row]), np.uint64(ends[row] - starts[row])
        bounds[row] = np.int32(at)
        for place in range(size):
            out[at + place] = buffer[begin + place]
        at += size
    bounds[len(starts)] = np.int32(at)


@part
def _int(buffer: Bytes, at: np.uint64) -> np.int32:
    """Read four bytes, the highest first."""
    word = _ZERO
    for place in range(4):
        word = word << np.uint64(8) | np.uint64(buffer[at + np.uint64(place)])
    return np.int32(np.uint32(word))
