"""Read entries of any format with klog, and logs of mixed formats for hypothesis to draw."""

from __future__ import annotations

import struct
from dataclasses import replace

from hypothesis import strategies as st

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import (
    PART_BYTES,
    PART_RECORDS,
    decode_parts,
    decode_records,
)
from klog.logformat.batches.record_columns import RecordColumns
from klog.logformat.batches.scan_batches import scan_batches
from tests.logformat.reference_decoder import Plodder
from tests.support.batch_bytes import GZIP, LOG_APPEND_TIME, LZ4, NONE, SNAPPY, Record, batch
from tests.support.legacy_bytes import (
    APPEND_TIME,
    CREATE_TIME,
    NO_TIMESTAMP_TYPE,
    Seen,
    plain,
    seen,
    wrapper,
)

ALL = ("timestamp_ms", "timestamp_type", "key", "value", "headers")
LEGACY_CODECS = (GZIP, SNAPPY, LZ4)

Entry = tuple[bytes, list[Seen]]


def decode_with_klog(data: bytes) -> list[Seen]:
    """Scan, check and decode everything in `data`."""
    batches = scan_batches(data, 0, len(data))
    assert int(batches.ends[-1]) == len(data)
    check_batch_crcs(data, batches)
    return rows(decode_records(data, batches, ALL))


def parts_of(
    data: bytes,
    batches: v2.Batches,
    part_bytes: int = PART_BYTES,
    part_records: int = PART_RECORDS,
    first_offset: int = 0,
) -> list[list[Seen]]:
    """Decode in parts, the rows of each."""
    parts = decode_parts(data, batches, ALL, part_bytes, part_records, first_offset)
    return [rows(part) for part in parts]


def rows(columns: RecordColumns) -> list[Seen]:
    """Make rows of columns."""
    assert columns.timestamp_ms is not None
    assert columns.timestamp_type is not None
    assert columns.key is not None
    assert columns.value is not None
    fields = (
        columns.offset.tolist(),
        columns.timestamp_ms.tolist(),
        columns.timestamp_type.tolist(),
        columns.key.to_pylist(),
        columns.value.to_pylist(),
    )
    return [Seen(*row) for row in zip(*fields, strict=True)]


@st.composite
def entries(draw: st.DrawFn, first_offset: int) -> Entry:
    """Draw one entry, or a run of plain ones, of any format, with gaps between offsets."""
    offsets, offset = [], first_offset
    for _ in range(draw(st.integers(1, 5))):
        offset += draw(st.integers(0, 3))
        offsets.append(offset)
        offset += 1
    field = st.none() | st.binary(max_size=12)
    records = [
        Record(at, draw(st.integers(-1, 1 << 60)), draw(field), draw(field)) for at in offsets
    ]
    magic, codec = draw(st.integers(0, 2)), draw(st.sampled_from([NONE, *LEGACY_CODECS]))
    late = draw(st.none() | st.integers(0, 1 << 60)) if magic else None
    attributes = 0 if late is None else LOG_APPEND_TIME
    if magic == 2:
        data = batch(records, attributes=attributes | codec, max_timestamp=late)
        return data, seen(records, 2, late)
    if codec:
        data = wrapper(records, magic, codec, attributes=attributes, timestamp=late)
        return data, seen(records, magic, late)
    if late is None:
        return plain(records, magic), seen(records, magic)
    stamped = [Record(record.offset, late, record.key, record.value) for record in records]
    return plain(stamped, magic, attributes=attributes), seen(stamped, magic, late)


@st.composite
def logs(draw: st.DrawFn) -> list[Entry]:
    """Draw a log of some entries of any mix of formats."""
    entries_made: list[Entry] = []
    offset = draw(st.integers(1, 1 << 40))
    for _ in range(draw(st.integers(1, 6))):
        entries_made.append(draw(entries(offset)))
        offset = entries_made[-1][1][-1].offset + 1
    return entries_made


def whole_entries(data: bytes) -> list[bytes]:
    """Split a log into its entries by their lengths."""
    entries = []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        entries.append(data[:size])
        data = data[size:]
    return entries


def wrapped_by_hand(inner: bytes, magic: int, offset: int, append_time: int | None) -> list[Seen]:
    """Decode the messages of a wrapper in the order of docs/format.md, 4."""
    records = []
    while inner:
        at, length, _, own_magic, _ = struct.unpack(">qiIbB", inner[:18])
        message, inner = Plodder(inner[18 : 12 + length]), inner[12 + length :]
        time, kind = -1, NO_TIMESTAMP_TYPE
        if own_magic == 1:
            (time,) = struct.unpack(">q", message.take(8))
            kind = NO_TIMESTAMP_TYPE if magic == 0 else CREATE_TIME
            if append_time is not None:
                time, kind = append_time, APPEND_TIME
        fields = []
        for _ in range(2):
            (size,) = struct.unpack(">i", message.take(4))
            fields.append(None if size < 0 else message.take(size))
        records.append(Seen(at, time, kind, *fields))
    base = offset - records[-1].offset if magic == 1 and offset else 0
    return [replace(message, offset=base + message.offset) for message in records]
