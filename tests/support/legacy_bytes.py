"""Entries of message formats v0 and v1 for tests, byte by byte; a test may set any field wrongly.

They follow docs/format.md, 4. The module uses nothing of klog, as `batch_bytes`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import xxhash

from tests.support.batch_bytes import LZ4, Record, compress

NO_TIMESTAMP = -1
NO_TIMESTAMP_TYPE, CREATE_TIME, APPEND_TIME = -1, 0, 1


@dataclass(frozen=True, slots=True)
class Seen:
    """A record as a reader of formats v0 and v1 sees it: v0 has neither time nor type."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None


def nullable(value: bytes | None) -> bytes:
    """Write a length and its bytes; null is length -1."""
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def message(
    record: Record,
    magic: int,
    *,
    attributes: int = 0,
    crc: int | None = None,
    length: int | None = None,
    fields: bytes | None = None,
) -> bytes:
    """Write one entry; `fields` replace key and value."""
    checked = struct.pack(">bB", magic, attributes)
    if magic == 1:
        checked += struct.pack(">q", record.timestamp)
    checked += nullable(record.key) + nullable(record.value) if fields is None else fields
    if crc is None:
        crc = zlib.crc32(checked)
    if length is None:
        length = 4 + len(checked)
    return struct.pack(">qiI", record.offset, length, crc) + checked


def sealed(entry: bytes) -> bytes:
    """Return a changed entry with its right CRC."""
    return entry[:12] + struct.pack(">I", zlib.crc32(entry[16:])) + entry[16:]


def plain(records: Sequence[Record], magic: int, *, attributes: int = 0) -> bytes:
    """Write uncompressed entries, one per record."""
    return b"".join(message(record, magic, attributes=attributes) for record in records)


def wrapper(
    records: Sequence[Record],
    magic: int,
    codec: int,
    *,
    attributes: int = 0,
    offset: int | None = None,
    timestamp: int | None = None,
    inner_magic: int | None = None,
    inner_offsets: Sequence[int] | None = None,
    inner: bytes | None = None,
    value: bytes | None = b"",
) -> bytes:
    """Write a compressed entry; `inner` replaces the entries in it, `value` their bytes.

    Inner offsets of v1 are relative to the first record, as a producer and a cleaner write them.
    """
    if inner_magic is None:
        inner_magic = magic
    if inner_offsets is None:
        base = records[0].offset if magic == 1 and records else 0
        inner_offsets = [record.offset - base for record in records]
    if inner is None:
        inner = b"".join(
            message(Record(at, record.timestamp, record.key, record.value), inner_magic)
            for at, record in zip(inner_offsets, records, strict=True)
        )
    if value == b"":
        value = packed(inner, magic, codec)
    if offset is None:
        offset = records[-1].offset
    if timestamp is None:
        timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    return message(Record(offset, timestamp, None, value), magic, attributes=attributes | codec)


def packed(data: bytes, magic: int, codec: int) -> bytes:
    """Compress as Kafka does for a format: v0's lz4 frames have a wrong header checksum.

    That checksum covers the frame's magic too (docs/format.md, 5).
    """
    frame = compress(codec, data)
    if codec == LZ4 and magic == 0:
        return frame[:6] + bytes([xxhash.xxh32_intdigest(frame[:6]) >> 8 & 0xFF]) + frame[7:]
    return frame


def seen(records: Sequence[Record], magic: int, append_time: int | None = None) -> list[Seen]:
    """Return what a reader sees of records in a format; `append_time` means LogAppendTime."""
    if magic == 0:
        return [
            Seen(record.offset, -1, NO_TIMESTAMP_TYPE, record.key, record.value)
            for record in records
        ]
    if append_time is not None:
        return [
            Seen(record.offset, append_time, APPEND_TIME, record.key, record.value)
            for record in records
        ]
    return [
        Seen(record.offset, record.timestamp, CREATE_TIME, record.key, record.value)
        for record in records
    ]
