"""Batches with a correct CRC that exhaust the memory or time of a reader.

The rule: only the decompressed size is wrong, so only a bound on it can reject them. Each
is appended to the active segment of a COPY, returns its spot, and is small on disk. klog: refuses
with an error that names file and position, in bounded memory and time. A broker never looks
inside; Java's consumer allocates until it dies.
"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import google_crc32c
import lz4.frame

from tests.corpus.damage import Spot, batches, segments

TWO_GIB = 1 << 31
BOMB_BYTES = TWO_GIB - 4096  # the longest record a batch can hold is a bit under 2 GiB
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
MEMBER_BYTES = 32 << 20
LZ4_BLOCK_BYTES = 4 << 20
ZSTD_BLOCK_BYTES = 128 << 10


def append_bomb(partition: Path, codec: int, size: int = BOMB_BYTES) -> Spot:
    """Append one record whose value is about `size` zero bytes; decompressing gives them all.

    On disk: gzip 2 MB (several members), lz4 8 MB, zstd 64 KB. Every frame is well formed.
    """
    prefix = _record_prefix(size)
    payload = {GZIP: _gzip, LZ4: _lz4, ZSTD: _zstd}[codec](prefix, size)
    return append_batch(partition, codec, payload)


def append_claim(partition: Path, codec: int, size: int = TWO_GIB - 1) -> Spot:
    """Append a batch whose compressed header claims `size` bytes that are not there.

    A reader that allocates by the claim allocates 2 GiB for a few bytes.
    """
    if codec == ZSTD:  # frame header with an 8-byte content size, then an empty last raw block
        payload = b"\x28\xb5\x2f\xfd\xc0\x58" + struct.pack("<Q", size) + b"\x01\x00\x00"
    elif codec == LZ4:  # content size in the descriptor, then the end mark
        descriptor = b"\x68\x70" + struct.pack("<Q", size)
        payload = b"\x04\x22\x4d\x18" + descriptor + _lz4_check(descriptor) + bytes(4)
    elif codec == SNAPPY:  # a raw block: its length, then one literal byte
        payload = _varint_unsigned(size) + b"\x00z"
    else:
        raise ValueError(f"codec {codec} claims no size")
    return append_batch(partition, codec, payload)


def append_record_count(partition: Path, count: int = TWO_GIB - 1) -> Spot:
    """Append an uncompressed batch of one empty record that claims `count` records."""
    record = b"\x0c\x00\x00\x00\x01\x01\x00"
    return append_batch(partition, 0, record, count)


def append_batch(partition: Path, attributes: int, payload: bytes, count: int = 1) -> Spot:
    """Append a v2 batch with the next offset, the correct CRC and any payload."""
    log = segments(partition)[-1]
    log_batches = batches(log)
    offset = log_batches[-1].last_offset + 1 if log_batches else int(log.stem)
    body = struct.pack(">hiqqqhii", attributes, 0, 0, 0, -1, -1, -1, count) + payload
    crc = google_crc32c.value(body)
    head = struct.pack(">qiibI", offset, 9 + len(body), 0, 2, crc)
    position = log.stat().st_size
    with log.open("ab") as file:
        file.write(head + body)
    return Spot(log, position, offset)


def _record_prefix(value_bytes: int) -> bytes:
    """Return a record's bytes before its value; the header count after it is a zero byte too."""
    after_length = b"\x00\x00\x00\x01" + _varint(value_bytes)  # attributes, deltas, null key
    return _varint(len(after_length) + value_bytes + 1) + after_length


def _gzip(prefix: bytes, zeros: int) -> bytes:
    member = gzip.compress(bytes(MEMBER_BYTES), mtime=0)
    whole, rest = divmod(zeros + 1, MEMBER_BYTES)
    return gzip.compress(prefix, mtime=0) + member * whole + gzip.compress(bytes(rest), mtime=0)


def _lz4(prefix: bytes, zeros: int) -> bytes:
    whole, rest = divmod(zeros + 1, LZ4_BLOCK_BYTES)
    descriptor = b"\x60\x70"  # independent blocks of up to 4 MiB
    return (
        b"\x04\x22\x4d\x18" + descriptor + _lz4_check(descriptor)
        + struct.pack("<I", len(prefix) | 1 << 31) + prefix
        + _lz4_block(LZ4_BLOCK_BYTES) * whole + _lz4_block(rest) + bytes(4)
    )  # fmt: skip


def _lz4_block(zeros: int) -> bytes:
    """A block with its length in front, cut out of a frame that holds nothing else."""
    if zeros == 0:
        return b""
    frame: bytes = lz4.frame.compress(
        bytes(zeros), block_size=lz4.frame.BLOCKSIZE_MAX4MB, block_linked=False, store_size=False
    )
    return frame[7:-4]


def _lz4_check(descriptor: bytes) -> bytes:
    return bytes([_xxh32(descriptor) >> 8 & 0xFF])


def _zstd(prefix: bytes, zeros: int) -> bytes:
    whole, rest = divmod(zeros + 1, ZSTD_BLOCK_BYTES)
    blocks = _zstd_block(0, len(prefix), prefix, last=False)
    blocks += _zstd_block(1, ZSTD_BLOCK_BYTES, b"\x00", last=False) * whole
    return b"\x28\xb5\x2f\xfd\x00\x58" + blocks + _zstd_block(1, rest, b"\x00", last=True)


def _zstd_block(kind: int, size: int, content: bytes, *, last: bool) -> bytes:
    return struct.pack("<I", int(last) | kind << 1 | size << 3)[:3] + content


def _varint(value: int) -> bytes:
    return _varint_unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def _varint_unsigned(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _xxh32(data: bytes) -> int:
    """Return xxHash32 with seed 0 of fewer than 16 bytes."""
    mask = 0xFFFFFFFF
    state = 0x165667B1 + len(data)
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        state = _rotate(state + word * 0xC2B2AE3D & mask, 17) * 0x27D4EB2F & mask
    for byte in data[whole:]:
        state = _rotate(state + byte * 0x165667B1 & mask, 11) * 0x9E3779B1 & mask
    state = (state ^ state >> 15) * 0x85EBCA77 & mask
    state = (state ^ state >> 13) * 0xC2B2AE3D & mask
    return state ^ state >> 16


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & 0xFFFFFFFF
