"""Record batches v2 for tests, byte by byte, in plain Python; a test may set any field wrongly.

They follow docs/format.md, 2 and 3. The module uses nothing of klog, so that it and klog's decoder
check each other.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import cramjam
import google_crc32c
import lz4.frame
import zstandard

NONE, GZIP, SNAPPY, LZ4, ZSTD = CODECS = range(5)
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40
ABORT, COMMIT = 0, 1
HEADER_BYTES = 61


@dataclass(frozen=True, slots=True)
class Record:
    """One record with its own offset and timestamp."""

    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def unsigned(number: int, size: int = 1) -> bytes:
    """Write LEB128, in at least `size` bytes: more than needed is legal and not canonical."""
    out = bytearray()
    while number >= 0x80 or len(out) + 1 < size:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def varint(number: int, size: int = 1) -> bytes:
    """Write a zig-zag varint or varlong, in at least `size` bytes."""
    return unsigned(2 * number if number >= 0 else -2 * number - 1, size)


def nullable(value: bytes | None, size: int = 1) -> bytes:
    """Write a length and its bytes; null is length -1."""
    return varint(-1, size) if value is None else varint(len(value), size) + value


def record(
    fields: Record,
    base_offset: int,
    base_timestamp: int,
    *,
    attributes: int = 0,
    wide: tuple[int, int, int] = (1, 1, 1),
) -> bytes:
    """Write one record; `wide` has the minimum sizes of varints: length, varlong, all others."""
    length_size, long_size, size = wide
    body = struct.pack("B", attributes)
    body += varint(fields.timestamp - base_timestamp, long_size)
    body += varint(fields.offset - base_offset, size)
    body += (
        nullable(fields.key, size)
        + nullable(fields.value, size)
        + varint(len(fields.headers), size)
    )
    for name, value in fields.headers:
        body += nullable(name.encode(), size) + nullable(value, size)
    return varint(len(body), length_size) + body


def compress(codec: int, data: bytes) -> bytes:
    """Compress with a codec, framed as Kafka frames it (docs/format.md, 5)."""
    if codec == GZIP:
        return gzip.compress(data, mtime=0)
    if codec == SNAPPY:
        return xerial(data)
    if codec == LZ4:
        return bytes(lz4.frame.compress(data, block_linked=False, store_size=False))
    if codec == ZSTD:
        return zstandard.ZstdCompressor(write_content_size=False).compress(data)
    return data


def xerial(data: bytes, block_bytes: int = 32768) -> bytes:
    """Write xerial's snappy stream: a header, then the length and the bytes of each block."""
    out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for begin in range(0, len(data), block_bytes):
        block = bytes(cramjam.snappy.compress_raw(data[begin : begin + block_bytes]))
        out += struct.pack(">i", len(block)) + block
    return out


def batch(
    records: Sequence[Record] = (),
    *,
    base_offset: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    last_offset_delta: int | None = None,
    attributes: int = 0,
    leader_epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    count: int | None = None,
    magic: int = 2,
    length: int | None = None,
    crc: int | None = None,
    payload: bytes | None = None,
    wide: tuple[int, int, int] = (1, 1, 1),
) -> bytes:
    """Write a batch. Arguments that are None follow from the records; `payload` replaces them.

    The codec is the low three bits of `attributes`.
    """
    if base_offset is None:
        base_offset = records[0].offset if records else 0
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else -1
    if max_timestamp is None:
        max_timestamp = max((item.timestamp for item in records), default=-1)
    if last_offset_delta is None:
        last_offset_delta = records[-1].offset - base_offset if records else 0
    if payload is None:
        plain = b"".join(record(item, base_offset, base_timestamp, wide=wide) for item in records)
        payload = compress(attributes & 7, plain)
    checked = struct.pack(
        ">hiqqqhii",
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records) if count is None else count,
    )
    checked += payload
    if length is None:
        length = 9 + len(checked)
    if crc is None:
        crc = google_crc32c.value(checked)
    return struct.pack(">qiibI", base_offset, length, leader_epoch, magic, crc) + checked


def sealed(data: bytes) -> bytes:
    """Return a changed batch with its right CRC."""
    return data[:17] + struct.pack(">I", google_crc32c.value(data[21:])) + data[21:]


def control(
    offset: int,
    kind: int,
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    timestamp: int = 0,
    attributes: int = CONTROL,
    key: bytes | None = None,
    value: bytes = b"\0\0\0\0\0\0",
) -> bytes:
    """Write a control batch of any type (docs/format.md, 6)."""
    named = struct.pack(">hh", 0, kind) if key is None else key
    return batch(
        [Record(offset, timestamp, named, value)],
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def marker(offset: int, producer_id: int, kind: int, producer_epoch: int = 0) -> bytes:
    """Write a transaction's COMMIT or ABORT marker, 78 bytes."""
    return control(
        offset,
        kind,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=TRANSACTIONAL | CONTROL,
    )


def transactional(offset: int, producer_id: int, values: Sequence[bytes] = (b"v",)) -> bytes:
    """Write a batch of a transaction."""
    return batch(
        [Record(offset + i, 1000 + offset + i, b"k", value) for i, value in enumerate(values)],
        attributes=TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )


def plain(offset: int, values: Sequence[bytes | None] = (b"v",), timestamp: int = 1000) -> bytes:
    """Write a batch without a producer: consecutive offsets, one timestamp each a ms later."""
    return batch([Record(offset + i, timestamp + i, b"k", value) for i, value in enumerate(values)])
