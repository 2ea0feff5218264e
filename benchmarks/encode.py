"""Encode records into batches on one core: klog from Arrow columns, kafka-python from Python bytes.

The rule: each starts from what its callers hold, and ends with whole batches, compressed and with
their CRC, of the same records and the same number of them in a batch. What one gives, the other
reads: a test holds that. The time is the process's CPU time, so threads would count and other
processes do not.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import kafka.record.default_records
import numpy as np
import pyarrow as pa

from benchmarks.logs import FIRST_TIMESTAMP_MS
from benchmarks.peers import KAFKA_PYTHON, kafka_python_reads
from benchmarks.records import KEY_BYTES, Bytes, records
from benchmarks.timing import Times, Work, interleaved
from klog.logformat.batches.arrow_columns import binary_array
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.batch_limits import DEFAULT_BATCH_BYTES
from klog.logformat.batches.encode_batches import batch_size_bytes, encode_batches
from klog.logformat.batches.record_batch import (
    HEADER_BYTES,
)
from klog.logformat.batches.records_to_write import Records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.codecs.codec_names import CODEC_NAMES, NONE
from klog.logformat.codecs.compress import compress
from klog.logformat.indexes.index_building import batches_as_appends, build_indexes
from klog.logformat.indexes.offset_index import encode_offset_index
from klog.logformat.indexes.time_index import encode_time_index

KLOG, CODEC, INDEXES = "klog", "codec alone", "indexes"
LARGE, SMALL = "512 KiB", "150 records"
SMALL_RECORDS = 150
CODECS: dict[str, tuple[str, int | None]] = {
    "none": ("none", None),
    "lz4": ("lz4", None),
    "zstd 1": ("zstd", 1),
    "zstd 3": ("zstd", None),
}
"""Codec and level by the name of a row; kafka-python has its library's default levels only."""
TARGETS = {
    (LARGE, 100, "none"): ("15", "3.0"),
    (LARGE, 100, "lz4"): ("-", "1.8"),
    (LARGE, 100, "zstd 1"): ("-", "1.2"),
    (LARGE, 100, "zstd 3"): ("-", "0.9"),
    (SMALL, 100, "none"): ("-", "0.45"),
}
"""By batch, value bytes and codec: times kafka-python's rate, and million records a second. Where a
codec takes most of the time of both, a ratio tells of the codec."""
PEER_SHARE = 10
"""Kafka-python gets a tenth of the records: it is so much slower."""


@dataclass(frozen=True, slots=True)
class Result:
    """One kind of batch and how fast each writer makes it."""

    batch: str
    batch_records: int
    value_bytes: int
    codec: str
    times: Times


def run(sizes: Sequence[tuple[int, int]], rounds: int) -> Iterator[Result]:
    """Measure every codec and kind of batch for each (value bytes, records)."""
    for value_bytes, count in sizes:
        rows = np.concatenate(list(records(count, value_bytes)))
        columns = arrow_columns(rows)
        pairs = python_pairs(rows[: max(count // PEER_SHARE, 1)])
        for batch in (LARGE, SMALL):
            for name, (codec, level) in CODECS.items():
                form = BatchAttributes(
                    batch_bytes=DEFAULT_BATCH_BYTES
                    if batch == LARGE
                    else small_batch_bytes(columns),
                    codec=CODEC_NAMES.index(codec),
                    level=level,
                )
                size = records_in_a_batch(columns, form)
                yield Result(batch, size, value_bytes, name, measure(columns, pairs, form, rounds))


def measure(
    columns: Records, pairs: list[tuple[bytes, bytes]], form: BatchAttributes, rounds: int
) -> Times:
    """Time both writers, the codec alone on what klog gives it, and indexes of what it wrote."""
    size = records_in_a_batch(columns, form)
    works: dict[str, Work] = {
        KLOG: lambda: _drain(encode_batches(columns, form), len(columns)),
    }
    part = columns.slice(0, max(len(columns) // PEER_SHARE, 1))
    segment = b"".join(encode_batches(columns, form))
    works[INDEXES] = lambda: _index(segment, len(columns))
    if form.codec != NONE:
        uncompressed = replace(form, codec=NONE, level=None)
        plain = [batch[HEADER_BYTES:] for batch in encode_batches(part, uncompressed)]
        works[CODEC] = lambda: _drain(
            (compress(form.codec, [memoryview(batch)], form.level) for batch in plain), len(part)
        )
    if form.level is None and kafka_python_reads(CODEC_NAMES[form.codec]):
        works[KAFKA_PYTHON] = lambda: _drain(kafka_python(pairs, form.codec, size), len(pairs))
    return interleaved(works, rounds, time.process_time)


def arrow_columns(rows: Bytes) -> Records:
    """Make Arrow columns of rows of key and value, 1 ms apart, offsets from 0."""
    count, width = rows.shape
    key, value = (
        binary_array(np.ascontiguousarray(part).reshape(-1), np.arange(count + 1) * part.shape[1])
        for part in (rows[:, :KEY_BYTES], rows[:, KEY_BYTES:width])
    )
    return Records(pa.array(FIRST_TIMESTAMP_MS + np.arange(count)), key, value)


def python_pairs(rows: Bytes) -> list[tuple[bytes, bytes]]:
    """Make Python's bytes of the same rows, before any clock runs."""
    return [(row[:KEY_BYTES].tobytes(), row[KEY_BYTES:].tobytes()) for row in rows]


def small_batch_bytes(columns: Records) -> int:
    """Return the bytes that `SMALL_RECORDS` of these records fill."""
    return batch_size_bytes(columns.slice(0, min(SMALL_RECORDS, len(columns))), BatchAttributes())


def records_in_a_batch(columns: Records, form: BatchAttributes) -> int:
    """Return the number of records in klog's first batch."""
    first = next(encode_batches(columns, form))
    return int.from_bytes(first[57:61], "big")


def kafka_python(
    pairs: list[tuple[bytes, bytes]], codec: int, size: int
) -> Iterator[bytes | bytearray]:
    """Make batches of `size` records as kafka-python's own producer does."""
    make = kafka.record.default_records.DefaultRecordBatchBuilder
    for first in range(0, len(pairs), size):
        builder = make(2, codec, False, -1, -1, -1, 1 << 30)
        timestamp_ms = FIRST_TIMESTAMP_MS + first
        for index, (key, value) in enumerate(pairs[first : first + size]):
            builder.append(index, timestamp_ms + index, key, value, [])
        yield builder.build()


def _index(segment: bytes, count: int) -> int:
    """Make the bytes of a segment's offset and time index from its batches."""
    appends = batches_as_appends(scan_batches(segment, 0, len(segment)))
    offset_index, time_index = build_indexes(appends, 0)
    encode_offset_index(offset_index)
    encode_time_index(time_index)
    return count


def _drain(batches: Iterable[object], count: int) -> int:
    """Take every batch and keep none; return the number of records."""
    for _ in batches:
        pass
    return count
