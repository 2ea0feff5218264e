"""The Parquet files of one range of offsets: one for each hour (`partition_by`) that it has.

The rule: an hour has one file, in whatever order records of hours come. Records wait until a file
has enough for a row group, or all files together have too many; so what waits is bounded, and so is
what is encoded: a range has about as many bytes of the log as a file may have. No loop runs over
records. Rows of a file are in the order of their offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from klog.connector.source.row_schema import arrow_schema
from klog.jobs.shared.parquet_paths import buckets_of

COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
)
"""The columns of a file, in order."""
COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "none")
ROW_GROUP_BYTES = 32 << 20
MAX_WAITING_BYTES = 64 << 20
_DICTIONARIES = ["topic", "partition", "timestampType", "key"]
"""Columns whose values repeat; the others are not worth a dictionary."""


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """A file that is ready to be put."""

    bucket: int
    data: bytes
    records: int
    start_offset: int
    end_offset: int


@dataclass(slots=True)
class _Bucket:
    """The file of one hour, while records come."""

    sink: Any
    writer: Any
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_bytes: int = 0
    records: int = 0
    start_offset: int = -1
    end_offset: int = -1

    def add(self, batch: pa.RecordBatch) -> None:
        offsets = batch.column("offset")
        if not self.records:
            self.start_offset = offsets[0].as_py()
        self.end_offset = offsets[-1].as_py() + 1
        self.records += len(batch)
        self.waiting.append(batch)
        self.waiting_bytes += batch.nbytes

    def flush(self) -> None:
        if self.waiting:
            table = pa.Table.from_batches(self.waiting)
            self.writer.write_table(table, row_group_size=len(table))
        self.waiting, self.waiting_bytes = [], 0


class BucketWriters:
    """Splits the records of a range by hour, and encodes them."""

    def __init__(self, partition_by: str, compression: str) -> None:
        """Take the layout and the compression."""
        self._partition_by, self._compression = partition_by, compression
        self._buckets: dict[int, _Bucket] = {}
        self._waiting_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the next records.

        Args:
            batch: The records, of `COLUMNS`.
        """
        if not len(batch):
            return
        buckets = buckets_of(batch.column("timestamp"), self._partition_by)
        if buckets[0] == buckets[-1] and (buckets == buckets[0]).all():
            self._add(int(buckets[0]), batch)
            return
        order = np.argsort(buckets, kind="stable")
        ordered = batch.take(pa.array(order))
        numbers, firsts = np.unique(buckets[order], return_index=True)
        ends = np.append(firsts[1:], len(order))
        for number, first, end in zip(
            numbers.tolist(), firsts.tolist(), ends.tolist(), strict=True
        ):
            self._add(number, ordered.slice(first, end - first))

    def finish(self) -> Iterator[EncodedFile]:
        """Yield the files, each encoded when it is asked for."""
        for number in sorted(self._buckets):
            bucket = self._buckets.pop(number)
            bucket.flush()
            bucket.writer.close()
            yield EncodedFile(
                number,
                bucket.sink.getvalue().to_pybytes(),
                bucket.records,
                bucket.start_offset,
                bucket.end_offset,
            )

    def _add(self, number: int, batch: pa.RecordBatch) -> None:
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = self._open()
        bucket.add(batch)
        self._waiting_bytes += batch.nbytes
        if bucket.waiting_bytes >= ROW_GROUP_BYTES:
            self._flush(bucket)
        while self._waiting_bytes > MAX_WAITING_BYTES:
            self._flush(max(self._buckets.values(), key=lambda item: item.waiting_bytes))

    def _flush(self, bucket: _Bucket) -> None:
        self._waiting_bytes -= bucket.waiting_bytes
        bucket.flush()

    def _open(self) -> _Bucket:
        sink = pa.BufferOutputStream()
        writer = pq.ParquetWriter(
            sink,
            arrow_schema(COLUMNS),
            compression=self._compression,
            use_dictionary=_DICTIONARIES,
        )
        return _Bucket(sink, writer)
