"""Golden cases of what a batch holds: records, headers, timestamps, gaps and damage."""

from __future__ import annotations

from dataclasses import replace

from klog.connector.source.slice_contract import to_dict
from klog.connector.source.slices import UNKNOWN
from tests.contracts.slice_case import (
    LARGEST_SECONDS_MS,
    RECORDS,
    Case,
    Cases,
    Files,
    batches_of,
    rows_of,
)
from tests.support.batch_bytes import (
    LOG_APPEND_TIME,
    Record,
    batch,
)

CASES = Cases()


@CASES.add
def headers(files: Files) -> Case:
    records = [
        Record(0, 5, b"k", b"v", (("h", None), ("h", b"2"), ("größe", b""))),
        Record(1, 6),
        Record(2, 7, None, b"v", (("", b"\x00\xff"),)),
    ]
    return Case("headers: none, several of one name, null and empty values",
                [to_dict(files.committed([batch(records)]))], rows_of(records))  # fmt: skip


@CASES.add
def nulls(files: Files) -> Case:
    records = [
        Record(0, 1, None, None),
        Record(1, 1, b"", b""),
        Record(2, 1, b"k", None),
        Record(3, 1, None, b"\x00"),
    ]
    return Case("null and empty keys and values", [to_dict(files.committed([batch(records)]))],
                rows_of(records))  # fmt: skip


@CASES.add
def timestamps(files: Files) -> Case:
    times = [(1 << 63) - 1, LARGEST_SECONDS_MS, -1, 0, -LARGEST_SECONDS_MS, -(1 << 63)]
    records = [Record(number, time) for number, time in enumerate(times)]
    slice_ = files.committed([batch([record]) for record in records])
    largest = LARGEST_SECONDS_MS
    clipped = [
        replace(record, timestamp=max(-largest, min(record.timestamp, largest)))
        for record in records
    ]
    return Case("times that microseconds cannot hold become the first or last that they can",
                [to_dict(slice_)], rows_of(clipped))  # fmt: skip


@CASES.add
def log_append_time(files: Files) -> Case:
    batches = batches_of(RECORDS, attributes=LOG_APPEND_TIME, max_timestamp=1_800_000_000_000)
    records = [replace(record, timestamp=1_800_000_000_000) for record in RECORDS]
    return Case("LogAppendTime: all records of a batch have its time",
                [to_dict(files.committed(batches))], rows_of(records, 1))  # fmt: skip


@CASES.add
def compacted_gaps(files: Files) -> Case:
    kept = [record for record in RECORDS if record.offset % 7 in (1, 2) and record.offset > 10]
    batches = [
        batch(kept[:4], base_offset=8, last_offset_delta=15),
        batch(base_offset=24, last_offset_delta=3),
        batch(kept[4:], base_offset=28, last_offset_delta=11),
    ]
    slice_ = replace(files.committed(batches), first_offset=UNKNOWN, start_offset=3, end_offset=36)
    return Case(
        "gaps within batches and between them, an emptied batch, a start in a gap",
        [to_dict(slice_)],
        rows_of([record for record in kept if record.offset < 36]),
    )


@CASES.add
def damaged_records(files: Files) -> Case:
    batches = [*batches_of(RECORDS[:4]), batch(base_offset=4, count=1, payload=b"\xff" * 20)]
    return Case("a batch whose CRC holds and whose records do not decode",
                [to_dict(files.committed(batches))], error="corrupt")  # fmt: skip


@CASES.add
def damaged_compression(files: Files) -> Case:
    batches = [
        batch(base_offset=0, count=1, attributes=4, payload=b"not zstd, though its CRC holds")
    ]
    return Case("a batch whose CRC holds and that does not decompress",
                [to_dict(files.raw(batches))], error="corrupt")  # fmt: skip


@CASES.add
def header_name_not_utf8(files: Files) -> Case:
    name = b"n\xffme"
    record = b"\x00\x00\x00\x01\x01\x02" + bytes([2 * len(name)]) + name + b"\x01"
    batches = [batch(base_offset=0, count=1, payload=bytes([2 * len(record)]) + record)]
    return Case("a header whose name is not UTF-8",
                [to_dict(files.raw(batches))], error="corrupt")  # fmt: skip


@CASES.add
def offsets_that_do_not_rise(files: Files) -> Case:
    batches = [*batches_of(RECORDS[4:8]), *batches_of(RECORDS[:4])]
    return Case("a batch with a lower offset than the one before it",
                [to_dict(files.raw(batches))], error="corrupt")  # fmt: skip


@CASES.add
def delete_horizon(files: Files) -> Case:
    records = [Record(0, 1_000, b"k1", None), Record(1, 2_000, b"k2", b"v")]
    batches = [batch(records, attributes=64, base_timestamp=86_401_000)]
    return Case("a delete horizon: timestamps count from it, and tombstones are rows",
                [to_dict(files.committed(batches))], rows_of(records))  # fmt: skip


@CASES.add
def emptied_batch(files: Files) -> Case:
    batches = [
        batch(base_offset=0, last_offset_delta=4, payload=b"\xff"),
        *batches_of(RECORDS[5:8]),
    ]
    return Case("an empty batch, whose other bytes mean nothing",
                [to_dict(files.committed(batches))], rows_of(RECORDS[5:8]))  # fmt: skip
