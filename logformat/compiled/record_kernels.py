"""Kernels that read and filter records of format v2: their keys, and those that a cleaning retains.

    record   length varint | attributes int8 | timestampDelta varlong | offsetDelta varint
             | key length varint, key | value length varint, value
             | header count varint | headers                                  (docs/format.md, 3)

The rule: positions are unsigned, so that none can lie before the buffer, and each is compared with
the end of its record before it is used. What is read before that comparison is at most a varlong or
a word after the record: the buffer has 16 bytes of padding. What a kernel writes is, byte for byte,
what `encode_records` writes of the same records, and a hash is that of `cleaning/key_hash.py`.

All code is in one file, with constants of its own: numba keeps compiled code until this file
changes, whatever else does.
"""

from __future__ import annotations

import numpy as np

from klog.logformat.array_types import Bytes, Longs, Mask, UnsignedLongs
from klog.logformat.compiled.kernel_arguments import read_only_bytes
from klog.logformat.compiled.kernel_functions import inlined, kernel

HAS_KEY, IS_TOMBSTONE = np.uint8(1), np.uint8(2)
"""Flags of a record."""
MAX_GROWTH_BYTES = 10
"""A record grows at most by so much: its timestamp delta and its length may take more bytes."""

_NOWHERE = np.uint64((1 << 64) - 1)
"""After every record: the end of what is damaged."""
_VARINT_BYTES, _VARLONG_BYTES, _MIN_RECORD_LENGTH = 5, 10, 6
_MAX_HEADERS = 1 << 16
_ZERO, _ONE, _SEVEN, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(7), np.uint64(8)
_CONTINUATION, _LOW_BITS, _INT_BITS = np.uint64(0x80), np.uint64(0x7F), np.uint64(0xFFFFFFFF)
_NULL = np.uint64(1)
"""The zig-zag of -1."""
_FIRST_WORD, _FIRST_STATE = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
_FIRST_LEFT, _FIRST_RIGHT = np.uint64(31), np.uint64(33)
_SECOND_WORD, _SECOND_STATE = np.uint64(0x165667B19E3779F9), np.uint64(0x27D4EB2F165667C5)
_SECOND_LEFT, _SECOND_RIGHT = np.uint64(27), np.uint64(37)
_SHIFT = np.uint64(33)
_FINAL, _LAST = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


def compile_all() -> None:
    """Compile each kernel, or load its compiled code; raises whatever numba raises."""
    longs, hashes = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    buffer, out = read_only_bytes(b""), np.zeros(0, np.uint8)
    seed = np.uint64(0), np.uint64(0)
    decode_keys(buffer, (longs, longs), (longs, longs, longs), seed, longs, (hashes, hashes), out)
    retained = np.zeros(0, np.bool_)
    batches = longs, longs, longs, longs
    filter_records(buffer, (longs, longs), batches, retained, out, longs, (longs, longs, longs))


@kernel
def decode_keys(
    buffer: Bytes,
    sections: tuple[Longs, Longs],
    batches: tuple[Longs, Longs, Longs],
    seed: tuple[np.uint64, np.uint64],
    offsets: Longs,
    hashes: tuple[UnsignedLongs, UnsignedLongs],
    flags: Bytes,
) -> int:
    """Read the records of all batches in order.

    Args:
        buffer: The records of all batches, and padding.
        sections: Where the records of each batch start and end.
        batches: The record count, base offset and last offset delta of each batch.
        seed: The seeds of both halves of a hash.
        offsets: Filled in: the offset of each record.
        hashes: Filled in: both halves of the hash of each key.
        flags: Filled in: `HAS_KEY` and `IS_TOMBSTONE` of each record.

    Returns:
        How many records there are, -1 if a batch is not as it should be.
    """
    starts, ends = sections
    counts, base_offsets, last_deltas = batches
    first, second = hashes
    row = 0
    for number in range(len(starts)):
        at, section_end = np.uint64(starts[number]), np.uint64(ends[number])
        previous_delta = np.int64(-1)
        for _ in range(counts[number]):
            start, end = _record_bounds(buffer, at, section_end)
            if end > section_end:
                return -1
            _, offset_zigzag, at = _decode_deltas(buffer, start + _ONE, end)
            delta = _signed(offset_zigzag)
            key_length, key, value_length, _, at = _find_key_and_value(buffer, at, end)
            if at > end or delta <= previous_delta or delta > last_deltas[number]:
                return -1
            if _decode_header_count(buffer, at, end)[0] < 0:
                return -1
            length = _signed(key_length)
            flags[row] = (HAS_KEY if length >= 0 else np.uint8(0)) | (
                IS_TOMBSTONE if _signed(value_length) < 0 else np.uint8(0)
            )
            offsets[row] = base_offsets[number] + delta
            size = np.uint64(length if length > 0 else 0)
            first[row], second[row] = _hash_key(buffer, key, size, seed)
            row += 1
            previous_delta, at = delta, end
        if at != section_end:
            return -1
    return row


@inlined
def _hash_key(
    buffer: Bytes, at: np.uint64, length: np.uint64, seed: tuple[np.uint64, np.uint64]
) -> tuple[np.uint64, np.uint64]:
    first, second = seed[0] ^ length * _FIRST_WORD, seed[1] ^ length * _SECOND_WORD
    words_end = at + (length & ~_SEVEN)
    while at < words_end:
        first, second = _mix_word(first, second, _decode_word(buffer, at))
        at += _EIGHT
    tail_mask = (_ONE << (length & _SEVEN) * _EIGHT) - _ONE
    first, second = _mix_word(first, second, _decode_word(buffer, at) & tail_mask)
    first = (first ^ first >> _SHIFT) * _FINAL
    first = (first ^ first >> _SHIFT) * _LAST
    return first ^ first >> _SHIFT, second


@inlined
def _decode_word(buffer: Bytes, at: np.uint64) -> np.uint64:
    """Read a little-endian word; it is one instruction when compiled."""
    word = _ZERO
    for index in range(8):
        byte = np.uint64(buffer[at + np.uint64(index)])
        word |= byte << np.uint64(index) * _EIGHT
    return word


@inlined
def _mix_word(first: np.uint64, second: np.uint64, word: np.uint64) -> tuple[np.uint64, np.uint64]:
    first ^= word * _FIRST_WORD
    first = (first << _FIRST_LEFT | first >> _FIRST_RIGHT) * _FIRST_STATE
    second ^= word * _SECOND_WORD
    second = (second << _SECOND_LEFT | second >> _SECOND_RIGHT) * _SECOND_STATE
    return first, second


@kernel
def filter_records(
    buffer: Bytes,
    sections: tuple[Longs, Longs],
    batches: tuple[Longs, Longs, Longs, Longs],
    retained: Mask,
    out: Bytes,
    ends: Longs,
    headers: tuple[Longs, Longs, Longs],
) -> bool:
    """Write the retained records of all batches, one batch after the other.

    Args:
        buffer: The records of all batches, and padding.
        sections: Where the records of each batch start and end.
        batches: The record count, last offset delta, base timestamp and delete horizon of each
            batch; with a horizon of -1, none, the first retained record's timestamp is the base.
        retained: Which records to write.
        out: Filled in: the retained records.
        ends: Filled in: where the records of each batch end in `out`.
        headers: Filled in: base timestamp, largest timestamp and record count of each batch.

    Returns:
        Whether all batches are as klog writes them; if not, what is filled in has no meaning.
    """
    counts, last_deltas, base_timestamps, horizons = batches
    row, out_end = 0, _ZERO
    for number in range(len(counts)):
        at, section_end = np.uint64(sections[0][number]), np.uint64(sections[1][number])
        previous_delta, base, retained_count = np.int64(-1), horizons[number], 0
        max_timestamp = np.int64(-(1 << 63))
        for _ in range(counts[number]):
            start, end = _record_bounds(buffer, at, section_end)
            if end > section_end:
                return False
            at, row = end, row + 1
            if not retained[row - 1]:
                continue
            timestamp_zigzag, offset_zigzag, fields = _decode_deltas(buffer, start + _ONE, end)
            delta = _signed(offset_zigzag)
            if delta <= previous_delta or delta > last_deltas[number] or buffer[start] != 0:
                return False
            if not _are_fields_canonical(buffer, fields, end):
                return False
            timestamp = base_timestamps[number] + _signed(timestamp_zigzag)
            if retained_count == 0 and horizons[number] < 0:
                base = timestamp
            out_end = _encode_record(
                buffer, fields, end, timestamp - base, offset_zigzag, out, out_end
            )
            previous_delta, max_timestamp = delta, max(max_timestamp, timestamp)
            retained_count += 1
        if at != section_end:
            return False
        ends[number] = np.int64(out_end)
        headers[0][number], headers[1][number] = base, max_timestamp
        headers[2][number] = retained_count
    return True


@inlined
def _are_fields_canonical(buffer: Bytes, at: np.uint64, end: np.uint64) -> bool:
    """Return whether key, value and headers are complete and encoded as klog encodes them."""
    key_length, key, value_length, value, headers_at = _find_key_and_value(buffer, at, end)
    if headers_at > end:
        return False
    count, headers = _decode_header_count(buffer, headers_at, end)
    if count < 0:
        return False
    value_at = key + _field_size(key_length)
    return (
        _is_canonical(key_length, key - at)
        and _is_canonical(value_length, value - value_at)
        and headers - headers_at == _varint_size(np.uint64(count) << _ONE)
        and _are_headers_canonical(buffer, headers, end, count)
    )


@inlined
def _are_headers_canonical(buffer: Bytes, at: np.uint64, end: np.uint64, count: np.int64) -> bool:
    if count > _MAX_HEADERS:
        return False
    for _ in range(count):
        length, name = _decode_varint(buffer, at, _VARINT_BYTES)
        # The value's length has to follow.
        if name > end or length & _ONE or not _is_canonical(length, name - at):
            return False
        if _field_size(length) >= end - name:
            return False
        at = name + _field_size(length)
        while name < at:
            if buffer[name] >= _CONTINUATION:  # Not ASCII.
                return False
            name += _ONE
        length, value = _decode_varint(buffer, at, _VARINT_BYTES)
        if value > end or not _is_canonical(length, value - at):
            return False
        if _field_size(length) > end - value:
            return False
        at = value + _field_size(length)
    return bool(at == end)


@inlined
def _field_size(length: np.uint64) -> np.uint64:
    """Return the bytes of a field by its length's zig-zag; null has none."""
    return _ZERO if length & _ONE else length >> _ONE


@inlined
def _is_canonical(length: np.uint64, size: np.uint64) -> bool:
    """Return whether a length takes as few bytes as it needs, and null's is -1."""
    return bool(size == _varint_size(length) and (not length & _ONE or length == _NULL))


@inlined
def _varint_size(zigzag: np.uint64) -> np.uint64:
    size = _ONE
    while zigzag >= _CONTINUATION:
        zigzag >>= _SEVEN
        size += _ONE
    return size


@inlined
def _encode_record(
    buffer: Bytes,
    fields: np.uint64,
    end: np.uint64,
    timestamp_delta: np.int64,
    offset_zigzag: np.uint64,
    out: Bytes,
    at: np.uint64,
) -> np.uint64:
    """Write a record, whose fields from its key on do not change, and return where it ends."""
    zigzag = np.uint64((timestamp_delta << np.int64(1)) ^ (timestamp_delta >> np.int64(63)))
    size = _ONE + _varint_size(zigzag) + _varint_size(offset_zigzag) + (end - fields)
    at = _encode_varint(out, at, size << _ONE)
    out[at] = 0
    at = _encode_varint(out, at + _ONE, zigzag)
    at = _encode_varint(out, at, offset_zigzag)
    for index in range(end - fields):
        out[at + index] = buffer[fields + index]
    return at + (end - fields)


@inlined
def _encode_varint(out: Bytes, at: np.uint64, zigzag: np.uint64) -> np.uint64:
    while zigzag >= _CONTINUATION:
        out[at] = np.uint8(zigzag & _LOW_BITS | _CONTINUATION)
        zigzag >>= _SEVEN
        at += _ONE
    out[at] = np.uint8(zigzag)
    return at + _ONE


@inlined
def _decode_varint(buffer: Bytes, at: np.uint64, max_bytes: int) -> tuple[np.uint64, np.uint64]:
    """Read a varint: its zig-zag, and the position after it, `_NOWHERE` if it does not end."""
    byte = np.uint64(buffer[at])
    if byte < _CONTINUATION:
        return byte, at + _ONE
    zigzag, shift = byte & _LOW_BITS, _SEVEN
    for _ in range(1, max_bytes):
        at += _ONE
        byte = np.uint64(buffer[at])
        zigzag |= (byte & _LOW_BITS) << shift
        if byte < _CONTINUATION:
            return (zigzag & _INT_BITS if max_bytes == _VARINT_BYTES else zigzag), at + _ONE
        shift += _SEVEN
    return _ZERO, _NOWHERE


@inlined
def _signed(zigzag: np.uint64) -> np.int64:
    return np.int64(zigzag >> _ONE) ^ -np.int64(zigzag & _ONE)


@inlined
def _field_end(length: np.int64, start: np.uint64, end: np.uint64) -> np.uint64:
    """Return the end of a key or value that starts here; a negative length is null's."""
    if length <= 0:
        return start
    if start > end or np.uint64(length) > end - start:
        return _NOWHERE
    return start + np.uint64(length)


@inlined
def _record_bounds(
    buffer: Bytes, at: np.uint64, section_end: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Return where a record's attributes are and where it ends, `_NOWHERE` if past its section."""
    zigzag, start = _decode_varint(buffer, at, _VARINT_BYTES)
    length = _signed(zigzag)
    if start > section_end or length < _MIN_RECORD_LENGTH:
        return start, _NOWHERE
    if np.uint64(length) > section_end - start:
        return start, _NOWHERE
    return start, start + np.uint64(length)


@inlined
def _decode_deltas(
    buffer: Bytes, at: np.uint64, end: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Read the zig-zags of timestamp and offset delta, and return the position after both."""
    timestamp, at = _decode_varint(buffer, at, _VARLONG_BYTES)
    if at > end:
        return _ZERO, _ZERO, _NOWHERE
    offset, at = _decode_varint(buffer, at, _VARINT_BYTES)
    return timestamp, offset, at


@inlined
def _find_key_and_value(
    buffer: Bytes, at: np.uint64, end: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the key's length and start, the value's length and start, and the value's end.

    Lengths are zig-zags. The end is `_NOWHERE` unless both fields end before the record does,
    because the header count follows.
    """
    if at > end:
        return _ZERO, at, _ZERO, at, _NOWHERE
    key_length, key = _decode_varint(buffer, at, _VARINT_BYTES)
    at = _field_end(_signed(key_length), key, end)
    if at >= end:
        return key_length, key, _ZERO, at, _NOWHERE
    value_length, value = _decode_varint(buffer, at, _VARINT_BYTES)
    at = _field_end(_signed(value_length), value, end)
    return key_length, key, value_length, value, (at if at < end else _NOWHERE)


@inlined
def _decode_header_count(
    buffer: Bytes, at: np.uint64, end: np.uint64
) -> tuple[np.int64, np.uint64]:
    """Read how many headers there are, -1 if the count is impossible, and where they start."""
    zigzag, at = _decode_varint(buffer, at, _VARINT_BYTES)
    count = _signed(zigzag)
    if at > end or count < 0 or np.uint64(count) * np.uint64(2) > end - at:
        return np.int64(-1), at
    if count == 0 and at != end:
        return np.int64(-1), at
    return count, at


KERNELS = (decode_keys, filter_records)
"""All kernels of this module."""
