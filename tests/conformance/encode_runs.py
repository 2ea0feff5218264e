"""Write and read batches for the cases on encoding and decoding.

Rows are tuples (offset, timestamp, key, value) or (..., headers); `form` holds keyword
arguments of `BatchAttributes`.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_parts, decode_records
from klog.logformat.batches.encode_batches import (
    batch_size_bytes,
    empty_batch,
    encode_batch,
    encode_batches,
)
from klog.logformat.batches.encode_records import lay_out_batch, measure_records
from klog.logformat.batches.rewrite_offsets import rewrite_offsets
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.codecs.codec_names import check_level
from klog.logformat.codecs.compress import (
    compress,
)
from klog.logformat.producers import control_batches
from klog.logformat.producers.control_batches import AppendInfo
from klog.logformat.producers.transaction_outcomes import transaction_markers
from tests.logformat.reference_decoder import ALL, decode_with_klog, to_records
from tests.logformat.written_rows import to_columns
from tests.support.batch_bytes import Record, batch, varint
from tests.support.decompression import decompress

Row = tuple[Any, ...]
Form_ = dict[str, Any]


def write(
    rows: Sequence[Row], form: Form_, base: int | None = None, delta: int | None = None
) -> bytes:
    """Encode rows as one batch; `encode_batches` must write the same bytes."""
    records, attributes = (
        to_columns([Record(*row) for row in rows], gaps=True),
        BatchAttributes(**form),
    )
    data = encode_batch(records, attributes, base, delta)
    if base is None and delta is None:
        limited = replace(attributes, batch_bytes=batch_size_bytes(records, attributes))
        assert list(encode_batches(records, limited)) == [data]
    return data


def written(
    rows: Sequence[Row], form: Form_, base: int | None = None, delta: int | None = None
) -> str:
    """Encode rows as one batch, in hex."""
    return write(rows, form, base, delta).hex()


def written_empty(form: Form_, base: int, delta: int, latest: int) -> str:
    """Make a batch without records, in hex."""
    return empty_batch(BatchAttributes(**form), base, delta, latest).hex()


def written_control(name: str, at: tuple[int, int, int], *fields: Any) -> str:
    """Make a control batch by the name of its function, in hex."""
    data: bytes = getattr(control_batches, name)(AppendInfo(*at), *fields)
    return data.hex()


def written_fields(
    rows: Sequence[Row], form: Form_, fields: str, base: int | None = None, delta: int | None = None
) -> tuple[Any, ...]:
    """Encode rows as one batch, check its CRC, and return the named fields."""
    return _batch_fields(write(rows, form, base, delta), fields)


def written_empty_fields(
    form: Form_, base: int, delta: int, latest: int, fields: str
) -> tuple[Any, ...]:
    """Make a batch without records, check its CRC, and return the named fields."""
    return _batch_fields(empty_batch(BatchAttributes(**form), base, delta, latest), fields)


def _batch_fields(data: bytes, names: str) -> tuple[Any, ...]:
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches)
    (header,) = batches.headers
    base, delta = int(header["base_offset"]), int(header["last_offset_delta"])
    sequence = int(header["base_sequence"])
    columns = decode_records(data, batches, ALL)
    facts = {name: int(header[name]) for name in v2.HEADER.names or ()}
    facts |= {
        "last_offset": base + delta,
        "last_sequence": increment_sequence(sequence, delta),
    }
    lists: dict[str, Any] = {
        "offsets": columns.offset.tolist(),
        "timestamps": columns.timestamp_ms.tolist() if columns.timestamp_ms is not None else None,
        "types": columns.timestamp_type.tolist() if columns.timestamp_type is not None else None,
        "sequences": [
            increment_sequence(sequence, offset - base) for offset in columns.offset.tolist()
        ],
    }
    return tuple((facts | lists)[name] for name in names.split())


def counts(rows: Sequence[Row], batch_bytes: int) -> list[int]:
    """Return the number of records of each batch that rows are cut into."""
    records, attributes = (
        to_columns([Record(*row) for row in rows]),
        BatchAttributes(batch_bytes=batch_bytes),
    )
    batches = list(encode_batches(records, attributes))
    return [int.from_bytes(data[57:61], "big") for data in batches]


def round_trip(rows: Sequence[Row], form: Form_) -> list[Row]:
    """Encode rows and read them back, all at once and record by record."""
    data = write(rows, form)
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches)
    whole = to_records(decode_records(data, batches, ALL))
    single = [
        record for part in decode_parts(data, batches, ALL, 1, 1) for record in to_records(part)
    ]
    assert whole == single
    return [
        (record.offset, record.timestamp, record.key, record.value, record.headers)
        for record in whole
    ]


def size_difference(rows: Sequence[Row]) -> int:
    """Return the size of the encoded batch minus the size computed before encoding."""
    whole = to_columns([Record(*row) for row in rows])
    return len(encode_batch(whole, BatchAttributes())) - batch_size_bytes(whole, BatchAttributes())


def record_sizes(rows: Sequence[Row]) -> list[int]:
    """Return the size of each record in one batch, in bytes."""
    rows_of = measure_records(to_columns([Record(*row) for row in rows]), 0, len(rows))
    base = int(rows_of.offsets[0])
    sizes: list[int] = lay_out_batch(
        rows_of, 0, len(rows), int(rows_of.timestamps[0]), base
    ).sizes.tolist()
    return sizes


def restamped(
    rows: Sequence[Row], form: Form_, offset: int | None, epoch: int | None, fields: str
) -> tuple[Any, ...]:
    """Rewrite offset and epoch of a batch in place; nothing from the CRC on may change."""
    before = write(rows, form)
    data = bytearray(before)
    offsets = None if offset is None else np.array([offset], np.int64)
    rewrite_offsets(data, scan_batches(before, 0, len(before)), offsets, epoch)
    assert data[16:] == before[16:]
    return _batch_fields(bytes(data), fields)


def recoded(rows: Sequence[Row], form: Form_, codec: int) -> tuple[int, list[Row]]:
    """Read a batch and write its records with another codec: (codec, rows)."""
    plain = decode_with_klog(write(rows, form))
    data = encode_batch(to_columns(plain), BatchAttributes(codec=codec))
    back = [
        (record.offset, record.timestamp, record.key, record.value)
        for record in decode_with_klog(data)
    ]
    return int(scan_batches(data, 0, len(data)).attributes[0]) & v2.CODEC_MASK, back


def marker_read(kind: int, coordinator_epoch: int) -> tuple[Any, ...]:
    """Write a transaction marker and read it: (markers found, attributes, coordinator epoch)."""
    data = control_batches.end_transaction(AppendInfo(0, 1000, 0), kind, 10, 3, coordinator_epoch)
    batches = scan_batches(data, 0, len(data))
    (record,) = decode_with_klog(data)
    assert record.value is not None
    markers = transaction_markers(data, batches)
    return markers, int(batches.attributes[0]), struct.unpack(">hi", record.value)[1]


def control_value(name: str, at: tuple[int, int, int], *fields: Any) -> str:
    """Make a control batch and give the value of its record, in hex."""
    (record,) = decode_with_klog(bytes.fromhex(written_control(name, at, *fields)))
    return (record.value or b"").hex()


def read(data: bytes) -> list[int]:
    """Check and decode batches; return the offsets."""
    return [record.offset for record in decode_with_klog(data)]


def read_unchecked(data: bytes) -> list[int]:
    """Decode batches without checking their CRC; return the offsets."""
    offsets: list[int] = decode_records(data, scan_batches(data, 0, len(data)), ALL).offset.tolist()
    return offsets


def read_record(
    body: bytes,
    length: int | None = None,
    columns: Collection[str] = ALL,
    next_record: bytes = b"",
) -> list[int]:
    """Decode columns of a batch with one record of this body; `length` may be wrong.

    `next_record` are the bytes of a second record. The last offset delta of the batch is 10, so
    that no record is rejected for its offset.
    """
    payload = varint(len(body) if length is None else length) + body + next_record
    data = batch(payload=payload, count=2 if next_record else 1, last_offset_delta=10)
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches)
    offsets: list[int] = decode_records(data, batches, columns).offset.tolist()
    return offsets


def level(codec: int, config_level: int | None) -> int:
    """Return the compression level used for a level of a config."""
    return check_level(codec, config_level)


def compressed_and_back(codec: int, level: int | None, data: bytes) -> bytes:
    """Compress and decompress."""
    return decompress(codec, b"".join(compress(codec, [memoryview(data)], level)))
