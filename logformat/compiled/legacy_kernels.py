"""Kernels that read messages of formats v0 and v1: their positions, fields and CRCs.

    offset int64 | length int32 | crc uint32 | magic int8 | attributes int8 | timestamp int64 (v1)
    | key length int32, key | value length int32, value                     (docs/format.md, 1)

The rule: positions are unsigned, so that none can lie before the buffer, and each is compared with
the end of its message or section before it is used. Messages that are not as they should be are
left to the numpy path (`message_bounds`, `legacy_messages`), which names what is wrong.

All code is in one file, with constants of its own: numba keeps compiled code until this file
changes, whatever else does.
"""

from __future__ import annotations

import numpy as np

from klog.logformat.array_types import Bytes, Ints, Longs, Mask, UnsignedInts
from klog.logformat.compiled.kernel_arguments import read_only
from klog.logformat.compiled.kernel_functions import inlined, kernel

MIN_MESSAGE_BYTES = 26
"""Of a message of v0 without key and value bytes."""
_MIN_BYTES, _MIN_BYTES_V1 = np.uint64(MIN_MESSAGE_BYTES), np.uint64(34)
_ZERO, _ONE, _FOUR = np.uint64(0), np.uint64(1), np.uint64(4)
_LENGTH_AT, _FRAME_BYTES, _MAGIC_AT = np.uint64(8), np.uint64(12), np.uint64(16)
_CRC_START, _KEY_AT = np.uint64(16), (np.uint64(18), np.uint64(26))
_BYTE, _ALL_BITS = np.uint64(0xFF), np.uint64(0xFFFFFFFF)
_ROW_WORDS = np.uint64(1024)


def compile_all() -> None:
    """Compile each kernel, or load its compiled code; raises whatever numba raises."""
    buffer, longs = read_only(np.zeros(0, np.uint8)), read_only(np.zeros(0, np.int64))
    words, out = read_only(np.zeros((1, 1), np.uint32)), np.zeros(0, np.int64)
    find_messages(buffer, longs, longs, out, out)
    masks = out == 0, out == 0
    find_keys_and_values(buffer, longs, longs, (out, out), (out, out), masks)
    expected_crc32(buffer, longs, longs, longs, words, words)
    copy_fields(buffer, longs, longs, np.zeros(0, np.uint8), np.zeros(1, np.int32))


@kernel
def find_messages(
    buffer: Bytes, starts: Longs, ends: Longs, message_starts: Longs, counts: Longs
) -> int:
    """Find where each message of some sections starts.

    Args:
        buffer: The bytes of all sections.
        starts: Where each section starts.
        ends: Where each section ends.
        message_starts: Filled in; it has as many places as messages fit into the sections.
        counts: Filled in: the number of messages of each section.

    Returns:
        How many messages there are, -1 if one is not as it should be.
    """
    total = 0
    for section in range(len(starts)):
        at, end = np.uint64(starts[section]), np.uint64(ends[section])
        first = total
        while at < end:
            if end - at < _MIN_BYTES:
                return -1
            length = _decode_int(buffer, at + _LENGTH_AT)
            if length < MIN_MESSAGE_BYTES - 12 or np.uint64(length) > end - at - _FRAME_BYTES:
                return -1
            message_starts[total] = np.int64(at)
            total += 1
            at += _FRAME_BYTES + np.uint64(length)
        counts[section] = total - first
    return total


@kernel
def find_keys_and_values(
    buffer: Bytes,
    starts: Longs,
    ends: Longs,
    keys: tuple[Longs, Longs],
    values: tuple[Longs, Longs],
    null: tuple[Mask, Mask],
) -> bool:
    """Find the keys and values of messages.

    Args:
        buffer: The bytes of all messages.
        starts: Where each message starts.
        ends: Where each message ends.
        keys: Filled in: where each key starts and ends.
        values: Filled in: where each value starts and ends.
        null: Filled in: which keys and which values are null.

    Returns:
        Whether all messages are as they should be.
    """
    for row in range(len(starts)):
        start, end = np.uint64(starts[row]), np.uint64(ends[row])
        if end - start < _MIN_BYTES:
            return False
        magic = buffer[start + _MAGIC_AT]
        if magic > 1 or (magic == 1 and end - start < _MIN_BYTES_V1):
            return False
        at = start + (_KEY_AT[1] if magic == 1 else _KEY_AT[0])
        length = _decode_int(buffer, at)
        at += _FOUR
        size = _ZERO if length < 0 else np.uint64(length)
        if size > end - at or end - at - size < _FOUR:
            return False
        keys[0][row], keys[1][row], null[0][row] = np.int64(at), np.int64(at + size), length < 0
        length = _decode_int(buffer, at + size)
        at += size + _FOUR
        size = _ZERO if length < 0 else np.uint64(length)
        if size > end - at:
            return False
        values[0][row], values[1][row], null[1][row] = np.int64(at), np.int64(at + size), length < 0
    return True


@kernel
def expected_crc32(
    buffer: Bytes,
    starts: Longs,
    ends: Longs,
    stored: Longs,
    byte_crcs: UnsignedInts,
    zero_tables: UnsignedInts,
) -> int:
    """Return the CRC-32 of adjacent messages, if each has the CRC that it stores.

    Args:
        buffer: The bytes of all messages.
        starts: Where each message starts.
        ends: Where each message ends.
        stored: The CRC that each message stores, of its bytes from 16 on.
        byte_crcs: Shape (16, 256): row i has the CRC of each byte before i zero bytes.
        zero_tables: Shape (4, 256 * 1024): row d has, for each value of digit d, base 256, of a
            length, the 1024 words that map a CRC to the CRC after as many zero bytes.
    """
    crc = _ZERO
    for row in range(len(starts)):
        at, end = np.uint64(starts[row]), np.uint64(ends[row])
        register, crc = crc ^ _ALL_BITS, _ALL_BITS
        for index in range(16):
            byte = np.uint64(buffer[at + np.uint64(index)])
            if index < 4:
                byte ^= register >> np.uint64(8 * index) & _BYTE
            crc ^= np.uint64(byte_crcs[15 - index, byte])
        remaining, digit = end - at - _CRC_START, 0
        while remaining > _ZERO:
            if remaining & _BYTE:
                crc = _append_zeros(zero_tables[digit], (remaining & _BYTE) * _ROW_WORDS, crc)
            remaining >>= np.uint64(8)
            digit += 1
        crc ^= np.uint64(stored[row]) & _ALL_BITS
    return int(crc)


@inlined
def _append_zeros(table: UnsignedInts, row: np.uint64, crc: np.uint64) -> np.uint64:
    """Return what a CRC becomes when zero bytes follow, by the words of a table's row."""
    mapped = np.uint64(table[row + (crc & _BYTE)])
    for index in range(1, 4):
        byte = crc >> np.uint64(8 * index) & _BYTE
        mapped ^= np.uint64(table[row + np.uint64(256 * index) + byte])
    return mapped


@kernel
def copy_fields(buffer: Bytes, starts: Longs, ends: Longs, out: Bytes, bounds: Ints) -> None:
    """Copy fields into one column.

    Args:
        buffer: The bytes of all fields.
        starts: Where each field starts.
        ends: Where each field ends.
        out: Filled in: the fields, without gaps.
        bounds: Filled in: where each field starts in `out`, and the end of the last one.
    """
    at = _ZERO
    for row in range(len(starts)):
        start, size = np.uint64(starts[row]), np.uint64(ends[row] - starts[row])
        bounds[row] = np.int32(at)
        for index in range(size):
            out[at + index] = buffer[start + index]
        at += size
    bounds[len(starts)] = np.int32(at)


@inlined
def _decode_int(buffer: Bytes, at: np.uint64) -> np.int32:
    """Read a big-endian int32."""
    word = _ZERO
    for index in range(4):
        word = word << np.uint64(8) | np.uint64(buffer[at + np.uint64(index)])
    return np.int32(np.uint32(word))


KERNELS = (find_messages, find_keys_and_values, expected_crc32, copy_fields)
"""All kernels of this module."""
