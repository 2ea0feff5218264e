"""Records of format v2 by loops that numba compiles: their keys, and those that a cleaning keeps.

    record   length varint | attributes int8 | timestampDelta varlong | offsetDelta varint
             | key length varint, key | value length varint, value
             | header count varint | headers                                  (docs/format.md, 3)

The rule: positions are unsigned, so that none can be before the buffer, and each is compared with
the end of its record before it is used. What is read before that comparison is at most a varlong or
a word behind the record: 16 bytes of padding the buffer has. What a loop writes is, byte for byte,
what `records.py` writes of the same records, and a hash is that of `cleaning/key_hash.py`.

All of it lies in one file, with constants of its own: numba takes what it kept for as good as new
until this file changes, whatever else does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klog.logformat.compiled.compiling import compiled, part
from klog.logformat.index import Mask
from klog.logformat.varint import Bytes, Longs

Words = npt.NDArray[np.uint64]

HAS_KEY, IS_TOMBSTONE = np.uint8(1), np.uint8(2)
GROWTH_BYTES = 10
"""A record grows at most by so much: its timestamp's delta and its length may take more bytes."""

_NOWHERE = np.uint64((1 << 64) - 1)
"""Behind every record: where what is wrong ends."""
_VARINT_BYTES, _VARLONG_BYTES, _LEAST_BYTES = 5, 10, 6
_MOST_HEADERS = 1 << 16
_ZERO, _ONE, _SEVEN, _WORD = np.uint64(0), np.uint64(1), np.uint64(7), np.uint64(8)
_MORE, _LOW, _INT = np.uint64(0x80), np.uint64(0x7F), np.uint64(0xFFFFFFFF)
_NULL = np.uint64(1)
"""The bits of -1."""
_FIRST_WORD, _FIRST_STATE = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
_FIRST_LEFT, _FIRST_RIGHT = np.uint64(31), np.uint64(33)
_SECOND_WORD, _SECOND_STATE = np.uint64(0x165667B19E3779F9), np.uint64(0x27D4EB2F165667C5)
_SECOND_LEFT, _SECOND_RIGHT = np.uint64(27), np.uint64(37)
_SHIFT = np.uint64(33)
_FINAL, _LAST = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


def bytes_of(data: bytes | bytearray) -> Bytes:
    """View bytes as a loop takes them: whichever they are, it is compiled once."""
    found = np.frombuffer(data, np.uint8)
    found.flags.writeable = False
    return found


def compile_all() -> None:
    """Compile each loop, or load what was kept of it; raises whatever numba raises."""
    none, hashes = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    buffer, out = bytes_of(b""), np.zeros(0, np.uint8)
    seed = np.uint64(0), np.uint64(0)
    read_keys(buffer, (none, none), (none, none, none), seed, none, (hashes, hashes), out)
    kept = np.zeros(0, np.bool_)
    thin(buffer, (none, none), (none, none, none, none), kept, out, none, (none, none, none))


@compiled
def read_keys(
    buffer: Bytes,
    sections: tuple[Longs, Longs],
    batches: tuple[Longs, Longs, Longs],
    seed: tuple[np.uint64, np.uint64],
    offsets: Longs,
    hashes: tuple[Words, Words],
    flags: Bytes,
) -> int:
    """Read the records of all batches in order; gives how many there were, -1 to give up.

    `sections` are starts and ends, `batches` counts, base offsets and last offset deltas; the rest
    is filled in.
    """
    starts, ends = sections
    counts, bases, lasts = batches
    first, second = hashes
    row = 0
    for number in range(len(starts)):
        at, section_end = np.uint64(starts[number]), np.uint64(ends[number])
        before = np.int64(-1)
        for _ in range(counts[number]):
            begin, end = _record_end(buffer, at, section_end)
            if end > section_end:
                return -1
            _, offset_bits, behind = _deltas(buffer, begin + _ONE, end)
            delta = _signed(offset_bits)
            key_bits, key, value_bits, _, behind = _key_and_value(buffer, behind, end)
            if behind > end or delta <= before or delta > lasts[number]:
                return -1
            if _header_count(buffer, behind, end)[0] < 0:
                return -1
            length = _signed(key_bits)
            flags[row] = (HAS_KEY if length >= 0 else np.uint8(0)) | (
                IS_TOMBSTONE if _signed(value_bits) < 0 else np.uint8(0)
            )
            offsets[row] = bases[number] + delta
            size = np.uint64(length if length > 0 else 0)
            first[row], second[row] = _hashed(buffer, key, size, seed)
            row += 1
            before, at = delta, end
        if at != section_end:
            return -1
    return row


@part
def _hashed(
    buffer: Bytes, at: np.uint64, length: np.uint64, seed: tuple[np.uint64, np.uint64]
) -> tuple[np.uint64, np.uint64]:
    first, second = seed[0] ^ length * _FIRST_WORD, seed[1] ^ length * _SECOND_WORD
    whole = at + (length & ~_SEVEN)
    while at < whole:
        first, second = _taken(first, second, _word(buffer, at))
        at += _WORD
    rest = (_ONE << (length & _SEVEN) * _WORD) - _ONE
    first, second = _taken(first, second, _word(buffer, at) & rest)
    first = (first ^ first >> _SHIFT) * _FINAL
    first = (first ^ first >> _SHIFT) * _LAST
    return first ^ first >> _SHIFT, second


@part
def _word(buffer: Bytes, at: np.uint64) -> np.uint64:
    """Read the little-endian word that begins there; one instruction, when compiled."""
    word = _ZERO
    for place in range(8):
        byte = np.uint64(buffer[at + np.uint64(place)])
        word |= byte << np.uint64(place) * _WORD
    return word


@part
def _taken(first: np.uint64, second: np.uint64, word: np.uint64) -> tuple[np.uint64, np.uint64]:
    first ^= word * _FIRST_WORD
    first = (first << _FIRST_LEFT | first >> _FIRST_RIGHT) * _FIRST_STATE
    second ^= word * _SECOND_WORD
    second = (second << _SECOND_LEFT | second >> _SECOND_RIGHT) * _SECOND_STATE
    return first, second


@compiled
def thin(
    buffer: Bytes,
    sections: tuple[Longs, Longs],
    batches: tuple[Longs, Longs, Longs, Longs],
    kept: Mask,
    out: Bytes,
    ends: Longs,
    told: tuple[Longs, Longs, Longs],
) -> bool:
    """Write the records that are kept of all batches, one behind the other; False to give up.

    `sections` are starts and ends; `batches` counts, last offset deltas, base timestamps, and the
    delete horizons that they get, -1 for none: then the first record's timestamp is the base.
    Filled in are `ends` in `out`, and base timestamp, largest timestamp and number of records.
    """
    counts, lasts, bases, horizons = batches
    row, behind_out = 0, _ZERO
    for number in range(len(counts)):
        at, section_end = np.uint64(sections[0][number]), np.uint64(sections[1][number])
        before, base, found = np.int64(-1), horizons[number], 0
        latest = np.int64(-(1 << 63))
        for _ in range(counts[number]):
            begin, end = _record_end(buffer, at, section_end)
            if end > section_end:
                return False
            at, row = end, row + 1
            if not kept[row - 1]:
                continue
            bits, offset_bits, fields = _deltas(buffer, begin + _ONE, end)
            delta = _signed(offset_bits)
            if delta <= before or delta > lasts[number] or buffer[begin] != 0:
                return False
            if not _are_fields(buffer, fields, end):
                return False
            timestamp = bases[number] + _signed(bits)
            if found == 0 and horizons[number] < 0:
                base = timestamp
            behind_out = _written(
                buffer, fields, end, timestamp - base, offset_bits, out, behind_out
            )
            before, latest, found = delta, max(latest, timestamp), found + 1
        if at != section_end:
            return False
        ends[number] = np.int64(behind_out)
        told[0][number], told[1][number], told[2][number] = base, latest, found
    return True


@part
def _are_fields(buffer: Bytes, at: np.uint64, end: np.uint64) -> bool:
    """Tell whether key, value and headers are there, and lie there as klog writes them."""
    key_bits, key, value_bits, value, behind = _key_and_value(buffer, at, end)
    if behind > end:
        return False
    count, headers = _header_count(buffer, behind, end)
    if count < 0:
        return False
    value_at = key + _size(key_bits)
    return (
        _is_plain(key_bits, key - at)
        and _is_plain(value_bits, value - value_at)
        and headers - behind == _size_of(np.uint64(count) << _ONE)
        and _are_headers(buffer, headers, end, count)
    )


@part
def _are_headers(buffer: Bytes, at: np.uint64, end: np.uint64, count: np.int64) -> bool:
    if count > _MOST_HEADERS:
        return False
    for _ in range(count):
        bits, name = _read_varint(buffer, at, _VARINT_BYTES)
        # The value's length has to follow.
        if name > end or bits & _ONE or not _is_plain(bits, name - at):
            return False
        if _size(bits) >= end - name:
            return False
        at = name + _size(bits)
        while name < at:
            if buffer[name] >= _MORE:
                return False
            name += _ONE
        bits, value = _read_varint(buffer, at, _VARINT_BYTES)
        if value > end or not _is_plain(bits, value - at) or _size(bits) > end - value:
            return False
        at = value + _size(bits)
    return bool(at == end)


@part
def _size(bits: np.uint64) -> np.uint64:
    """Give the bytes of a field whose length these are; null has none."""
    return _ZERO if bits & _ONE else bits >> _ONE


@part
def _is_plain(bits: np.uint64, size: np.uint64) -> bool:
    """Tell whether a length is in as few bytes as it needs, and null's is -1."""
    return bool(size == _size_of(bits) and (not bits & _ONE or bits == _NULL))


@part
def _size_of(bits: np.uint64) -> np.uint64:
    """Give the bytes of a varint."""
    size = _ONE
    while bits >= _MORE:
        bits >>= _SEVEN
        size += _ONE
    return size


@part
def _written(
    buffer: Bytes,
    fields: np.uint64,
    end: np.uint64,
    timestamp_delta: np.int64,
    offset_bits: np.uint64,
    out: Bytes,
    at: np.uint64,
) -> np.uint64:
    """Write a record whose fields from its key on stay as they are; gives where it ends."""
    bits = np.uint64((timestamp_delta << np.int64(1)) ^ (timestamp_delta >> np.int64(63)))
    size = _ONE + _size_of(bits) + _size_of(offset_bits) + (end - fields)
    at = _write_varint(out, at, size << _ONE)
    out[at] = 0
    at = _write_varint(out, at + _ONE, bits)
    at = _write_varint(out, at, offset_bits)
    for place in range(end - fields):
        out[at + place] = buffer[fields + place]
    return at + (end - fields)


@part
def _write_varint(out: Bytes, at: np.uint64, bits: np.uint64) -> np.uint64:
    while bits >= _MORE:
        out[at] = np.uint8(bits & _LOW | _MORE)
        bits >>= _SEVEN
        at += _ONE
    out[at] = np.uint8(bits)
    return at + _ONE


@part
def _read_varint(buffer: Bytes, at: np.uint64, most_bytes: int) -> tuple[np.uint64, np.uint64]:
    """Read one varint: its bits, and the position behind it, `_NOWHERE` if it does not end."""
    byte = np.uint64(buffer[at])
    if byte < _MORE:
        return byte, at + _ONE
    bits, shift = byte & _LOW, _SEVEN
    for _ in range(1, most_bytes):
        at += _ONE
        byte = np.uint64(buffer[at])
        bits |= (byte & _LOW) << shift
        if byte < _MORE:
            return (bits & _INT if most_bytes == _VARINT_BYTES else bits), at + _ONE
        shift += _SEVEN
    return _ZERO, _NOWHERE


@part
def _signed(bits: np.uint64) -> np.int64:
    """Undo zig-zag."""
    return np.int64(bits >> _ONE) ^ -np.int64(bits & _ONE)


@part
def _field_end(length: np.int64, begin: np.uint64, end: np.uint64) -> np.uint64:
    """Give the end of a key or value that begins there; a negative length is null's."""
    if length <= 0:
        return begin
    if begin > end or np.uint64(length) > end - begin:
        return _NOWHERE
    return begin + np.uint64(length)


@part
def _record_end(
    buffer: Bytes, at: np.uint64, section_end: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Give where a record's attributes are and where it ends, `_NOWHERE` if not in its section."""
    bits, begin = _read_varint(buffer, at, _VARINT_BYTES)
    length = _signed(bits)
    if begin > section_end or length < _LEAST_BYTES or np.uint64(length) > section_end - begin:
        return begin, _NOWHERE
    return begin, begin + np.uint64(length)


@part
def _deltas(buffer: Bytes, at: np.uint64, end: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Read the bits of timestamp and offset delta, and give what is behind both."""
    timestamp, at = _read_varint(buffer, at, _VARLONG_BYTES)
    if at > end:
        return _ZERO, _ZERO, _NOWHERE
    offset, at = _read_varint(buffer, at, _VARINT_BYTES)
    return timestamp, offset, at


@part
def _key_and_value(
    buffer: Bytes, at: np.uint64, end: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Give the bits of the key's length, where it begins, the same of the value, and its end.

    The last is `_NOWHERE` unless both end before the record does, as the count of headers follows.
    """
    if at > end:
        return _ZERO, at, _ZERO, at, _NOWHERE
    key_bits, key = _read_varint(buffer, at, _VARINT_BYTES)
    at = _field_end(_signed(key_bits), key, end)
    if at >= end:
        return key_bits, key, _ZERO, at, _NOWHERE
    value_bits, value = _read_varint(buffer, at, _VARINT_BYTES)
    at = _field_end(_signed(value_bits), value, end)
    return key_bits, key, value_bits, value, (at if at < end else _NOWHERE)


@part
def _header_count(buffer: Bytes, at: np.uint64, end: np.uint64) -> tuple[np.int64, np.uint64]:
    """Read how many headers there are, -1 if they cannot be, and where they begin."""
    bits, at = _read_varint(buffer, at, _VARINT_BYTES)
    count = _signed(bits)
    if at > end or count < 0 or np.uint64(count) * np.uint64(2) > end - at:
        return np.int64(-1), at
    if count == 0 and at != end:
        return np.int64(-1), at
    return count, at
