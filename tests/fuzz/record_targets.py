"""Targets that decode records: segments, the records of one batch, codecs, formats v0 and v1.

What is written by `klog.logformat.batches.encode_batches` must read back as it was given.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat.batches import decode_records
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.encode_batches import encode_batches as write
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.codecs.codec_names import CODEC_NAMES, NONE
from tests.fuzz.seal import sealed_log
from tests.logformat.legacy_logs import LEGACY_CODECS, rows, wrapped_by_hand
from tests.logformat.reference_decoder import ALL, by_hand, to_records
from tests.logformat.written_rows import to_columns
from tests.support import batch_bytes, legacy_bytes
from tests.support.decompression import decompress

_WRAP = 1 << 64
_CODEC_LIMIT = 8 << 20
"""Far above what a small input needs, far below `MAX_BATCH_BYTES`, which costs time."""


def segment(data: bytes) -> None:
    """Take the bytes of a segment as they are, and with right checksums."""
    with suppress(CorruptRecordError, UnsupportedFormatError):
        _decode(data)
    _decode(sealed_log(data))


def _decode(data: bytes) -> None:
    batches = scan_batches(data, 0, len(data))
    _check_tiles(batches, len(data))
    rows, last = 0, -1
    with named(batches):
        check_batch_crcs(data, batches)
        for part in decode_records.decode_parts(data, batches, ALL):
            assert len(to_records(part)) == len(part.offset)
            rows += len(part.offset)
            assert (np.diff(part.offset, prepend=last) > 0).all(), "offsets do not rise"
            last = int(part.offset[-1]) if len(part.offset) else last
    counts = batches.headers["count"].astype(np.int64)
    wrappers = counts == v2.WRAPPER_COUNT  # Only opening them tells how many they hold.
    min_records = int(np.where(wrappers, 1, counts).sum())
    assert rows >= min_records if wrappers.any() else rows == min_records


@contextmanager
def named(batches: v2.Batches) -> Iterator[None]:
    """What is refused is named by the position of its batch."""
    try:
        yield
    except CorruptRecordError as exc:
        if exc.position not in batches.starts.tolist():
            raise AssertionError(f"no batch begins where {exc} says") from exc
        raise


def _check_tiles(batches: v2.Batches, size_bytes: int) -> None:
    """Batches lie one after the other, inside the data."""
    next_start = 0
    for start, end in zip(batches.starts.tolist(), batches.ends.tolist(), strict=True):
        assert start == next_start
        assert start < end <= size_bytes
        next_start = end


def payload(data: bytes) -> None:
    """Take bytes as the records of a batch.

    Byte 0 is the last offset delta, byte 1 the count, byte 2 the codec and the timestamp type.
    """
    if len(data) >= 3:
        _check_records(data[3:], count=data[1], last_offset_delta=data[0], flags=data[2])


def record(data: bytes) -> None:
    """Take bytes as one record after its length, which is right whatever was put in or out."""
    if data:
        whole = batch_bytes.varint(len(data) - 1) + data[1:]
        _check_records(whole, count=1, last_offset_delta=9, flags=data[0])


def _check_records(plain: bytes, count: int, last_offset_delta: int, flags: int) -> None:
    """Decode records bare, in a codec and by a plain reader: all that accept them must agree."""
    codec, kind = flags % len(batch_bytes.CODECS), flags & batch_bytes.LOG_APPEND_TIME
    bare, packed = (
        batch_bytes.batch(
            payload=batch_bytes.compress(each, plain),
            attributes=each | kind,
            count=count,
            base_offset=1000,
            base_timestamp=1000,
            max_timestamp=5000,
            last_offset_delta=last_offset_delta,
        )
        for each in (batch_bytes.NONE, codec)
    )
    records = _decoded(bare)
    if records is not None:
        _check_same(records, by_hand(bare))
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets))
        assert all(1000 <= offset <= 1000 + last_offset_delta for offset in offsets)
    assert _decoded(packed) == records, CODEC_NAMES[codec]


def _decoded(entry: bytes) -> list[batch_bytes.Record] | None:
    try:
        batches = scan_batches(entry, 0, len(entry))
        check_batch_crcs(entry, batches)
        return to_records(decode_records.decode_records(entry, batches, ALL))
    except CorruptRecordError:
        return None


def _check_same(records: list[batch_bytes.Record], by_hand: list[batch_bytes.Record]) -> None:
    """Compare, but for times past 64 bits, which wrap as a broker's do."""
    assert [_wrapped(record) for record in records] == [_wrapped(record) for record in by_hand]


def _wrapped(record: batch_bytes.Record) -> tuple[object, ...]:
    return record.offset, record.timestamp % _WRAP, record.key, record.value, record.headers


def codec(data: bytes) -> None:
    """Decompress the bytes after byte 0, which names the codec."""
    if data:
        out = decompress(data[0] & v2.CODEC_MASK, data[1:], _CODEC_LIMIT)
        assert len(out) <= max(_CODEC_LIMIT, len(data))


def wrapper(data: bytes) -> None:
    """Take bytes as the messages in a wrapper, with right checksums, in each codec.

    Byte 0 says magic (bit 0), LogAppendTime (bit 1) and offset (the others); what is accepted must
    be the same in all codecs, and what a plain reader finds.
    """
    if not data:
        return
    magic, late, offset = data[0] & 1, data[0] & 2, data[0] >> 2
    attributes = batch_bytes.LOG_APPEND_TIME if late else 0
    inner = sealed_log(data[1:])
    wrappers = [
        legacy_bytes.wrapper(
            [], magic, each, attributes=attributes, offset=offset, timestamp=777, inner=inner
        )
        for each in LEGACY_CODECS
    ]
    results = [_seen(each) for each in wrappers]
    assert all(result == results[0] for result in results)
    if results[0] is not None:
        append_time = 777 if late and magic == 1 else None
        assert results[0] == wrapped_by_hand(inner, magic, offset, append_time)


def _seen(entry: bytes) -> list[legacy_bytes.Seen] | None:
    try:
        batches = scan_batches(entry, 0, len(entry))
        check_batch_crcs(entry, batches)
        return rows(decode_records.decode_records(entry, batches, ALL))
    except CorruptRecordError:
        return None


def encoded(data: bytes) -> None:
    """Write records made of the input with each codec; what is read must be what was written.

    Byte 0 is the size of a batch, byte 1 says which, and by bit 3 to leave headers out; then come
    the records of `_rows`.
    """
    if len(data) < 2:
        return
    rows = list(_rows(data[2:]))
    if data[1] & 8:
        rows = [replace(row, headers=()) for row in rows]
    for each in batch_bytes.CODECS:
        form = BatchAttributes(
            batch_bytes=16 * data[0],
            codec=each,
            leader_epoch=data[1] - 1,
            append_time_ms=777 if data[1] & 1 else None,
            delete_horizon_ms=1 << 40 if data[1] & 2 else None,
        )
        columns = to_columns(rows, gaps=bool(data[1] & 4))
        written = b"".join(write(columns, form))
        expected = [
            batch_bytes.Record(row.offset, 777, row.key, row.value, row.headers)
            if form.append_time_ms
            else row
            for row in rows
        ]
        assert _decoded(written) == expected, CODEC_NAMES[each]
        if each == NONE:
            _check_same(expected, by_hand(written))


def _rows(data: bytes) -> Iterator[batch_bytes.Record]:
    """Make records: a byte of what is there, one of length, a timestamp, then the fields."""
    at, offset = 0, 5
    while at + 10 <= len(data):
        flags, size = data[at], data[at + 1]
        (time,) = struct.unpack_from(">Q", data, at + 2)
        field = data[at + 10 : at + 10 + size]
        at += 10 + size
        yield batch_bytes.Record(
            offset,
            -1 if flags & 1 else time >> (1 + (flags >> 5) * 8),
            None if flags & 2 else field,
            None if flags & 4 else field * (1 + (flags >> 3 & 1) * 20),
            ((field.decode("utf-8", "replace"), field), ("", None))[: flags >> 3 & 3],
        )
        offset += 1
