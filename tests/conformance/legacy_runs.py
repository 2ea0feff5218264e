"""Read and write bytes for the cases of message formats v0 and v1."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.producers import transaction_outcomes
from tests.logformat.legacy_logs import ALL, rows
from tests.support import batch_bytes, legacy_bytes
from tests.support.batch_bytes import Record

Row = tuple[int, int, int, bytes | None, bytes | None]


def read(data: bytes) -> list[Row]:
    """Scan, check and decode everything: (offset, timestamp, its type, key, value) of a record."""
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches)
    columns = decode_records(data, batches, ALL)
    return [dataclasses.astuple(row) for row in rows(columns)]


def offsets(data: bytes) -> list[int]:
    """Return the offsets of the records."""
    return [row[0] for row in read(data)]


def times(data: bytes) -> list[tuple[int, int]]:
    """Return the (timestamp, type) of the records."""
    return [(row[1], row[2]) for row in read(data)]


def headers(data: bytes, names: Sequence[str]) -> list[tuple[int, ...]]:
    """Return fields of every batch's header; `last_offset` and `codec` follow from others."""
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches)
    derived = {
        "last_offset": (batches.next_offsets - 1).tolist(),
        "codec": (batches.attributes & v2.CODEC_MASK).tolist(),
    }
    columns = [
        derived[name] if name in derived else batches.headers[name].astype(int).tolist()
        for name in names
    ]
    return list(zip(*columns, strict=True))


def first_checksum(magic: int, codec: int, records: Sequence[Record]) -> int:
    """Return the CRC of the first batch after klog has verified it."""
    data = written(magic, codec, records)
    ((checksum,), *_) = headers(data, ("crc",))
    return int(checksum)


def written(magic: int, codec: int, records: Sequence[Record], **fields: Any) -> bytes:
    """Write records in a format: v0 and v1 without a codec as one message a record."""
    if magic == 2:
        return batch_bytes.batch(records, attributes=codec, **fields)
    if codec:
        return legacy_bytes.wrapper(records, magic, codec)
    return legacy_bytes.plain(records, magic)


def iterated(magic: int, codec: int, records: Sequence[Record], **fields: Any) -> list[Row]:
    """Read back what was written."""
    return read(written(magic, codec, records, **fields))


def accepted_changes(data: bytes, first: int, byte: int) -> list[int]:
    """List the positions from `first` at which a changed byte goes unnoticed."""
    accepted = []
    for at in range(first, len(data)):
        changed = data[:at] + bytes([byte]) + data[at + 1 :]
        try:
            read(changed)
        except CorruptRecordError:
            continue
        if changed != data and len(scan_batches(changed, 0, len(changed))):
            accepted.append(at)
    return accepted


def moved(data: bytes, last_offset: int) -> list[int]:
    """Set another last offset of a wrapper, which its CRC does not cover, and read it."""
    return offsets(last_offset.to_bytes(8, "big") + data[8:])


def controls(data: bytes) -> list[tuple[int, int | None]]:
    """Return (base offset, control type) of each control batch."""
    batches = scan_batches(data, 0, len(data))
    check_batch_crcs(data, batches)
    control = batches.where(batches.is_control)
    spans = zip(control.starts.tolist(), control.ends.tolist(), strict=True)
    kinds = [transaction_outcomes.control_type(data, start, end) for start, end in spans]
    return list(zip(control.base_offsets.tolist(), kinds, strict=True))
