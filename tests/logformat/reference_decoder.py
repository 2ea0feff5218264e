"""Two ways to read a batch: klog's, and one so plain that it can be checked by eye."""

from __future__ import annotations

import struct

from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import (
    decode_records,
)
from klog.logformat.batches.record_columns import RecordColumns
from klog.logformat.batches.scan_batches import scan_batches
from tests.support.batch_bytes import HEADER_BYTES, LOG_APPEND_TIME, Record

ALL = ("timestamp_ms", "timestamp_type", "key", "value", "headers")


def decode_with_klog(data: bytes) -> list[Record]:
    """Scan, check and decode everything in `data`."""
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches)
    assert len(batches), "nothing to decode"
    return to_records(decode_records(data, batches, ALL))


def to_records(columns: RecordColumns) -> list[Record]:
    """Make records of columns."""
    assert columns.timestamp_ms is not None
    assert columns.key is not None
    assert columns.value is not None
    assert columns.headers is not None
    rows = zip(
        columns.offset.tolist(),
        columns.timestamp_ms.tolist(),
        columns.key.to_pylist(),
        columns.value.to_pylist(),
        columns.headers.to_pylist(),
        strict=True,
    )
    return [
        Record(offset, timestamp, key, value, tuple((h["key"], h["value"]) for h in headers or ()))
        for offset, timestamp, key, value, headers in rows
    ]


class Plodder:
    """Reads fields one after the other from the front of some bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        assert size >= 0
        assert self.at + size <= len(self.data)
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self, bits: int = 32) -> int:
        raw = shift = 0
        while True:
            byte = self.take(1)[0]
            raw |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                raw &= (1 << bits) - 1
                return raw >> 1 if raw % 2 == 0 else -(raw + 1) // 2

    def nullable(self) -> bytes | None:
        length = self.varint()
        return None if length < 0 else self.take(length)


def by_hand(data: bytes) -> list[Record]:
    """Decode whole, uncompressed batches in the order of docs/format.md, 2 and 3."""
    records = []
    while data:
        base, length = struct.unpack(">qi", data[:12])
        attributes, _, base_timestamp, max_timestamp = struct.unpack(">hiqq", data[21:43])
        (count,) = struct.unpack(">i", data[57:61])
        section = Plodder(data[HEADER_BYTES : 12 + length])
        for _ in range(count):
            record = Plodder(section.take(section.varint()))
            record.take(1)
            timestamp = base_timestamp + record.varint(64)
            if attributes & LOG_APPEND_TIME:
                timestamp = max_timestamp
            offset = base + record.varint()
            key, value = record.nullable(), record.nullable()
            headers = []
            for _ in range(record.varint()):
                name = record.take(record.varint())
                headers.append((name.decode(), record.nullable()))
            assert record.at == len(record.data)
            records.append(Record(offset, timestamp, key, value, tuple(headers)))
        assert count == 0 or section.at == len(section.data)
        data = data[12 + length :]
    return records
