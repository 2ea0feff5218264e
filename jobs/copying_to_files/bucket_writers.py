"""The Parquet files of one range of offsets: one for each hour (`partition_by`) that it has.

The rule: an hour has one file, in whatever order records of hours come. Records wait, all hours
together and in one copy, until they are too many; then the hours that have most of them get a row
group each, and the rest is copied, so that it keeps nothing else in memory. So what waits is
bounded, and so is what is encoded: a range has about as many bytes of the log as a file may have.
No loop runs over records. Rows of a file are in the order of their offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
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
_SCHEMA = arrow_schema(COLUMNS)


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

    sink: BytesIO
    writer: Any
    records: int = 0
    start_offset: int = -1
    end_offset: int = -1

    def write(self, batch: pa.RecordBatch) -> None:
        offsets = batch.column("offset")
        if not self.records:
            self.start_offset = offsets[0].as_py()
        self.end_offset = offsets[-1].as_py() + 1
        self.records += len(batch)
        rows = max(len(batch) * ROW_GROUP_BYTES // max(batch.nbytes, 1), 1)
        self.writer.write_table(pa.Table.from_batches([batch]), row_group_size=rows)


class BucketWriters:
    """Splits the records of a range by hour, and encodes them."""

    def __init__(self, partition_by: str, compression: str) -> None:
        """Take the layout and the compression."""
        self._partition_by, self._compression = partition_by, compression
        self._files: dict[int, _Bucket] = {}
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the next records.

        Args:
            batch: The records, of `COLUMNS`.
        """
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self._flush(kept_share=0.5)

    def finish(self) -> Iterator[EncodedFile]:
        """Yield the files, each encoded when it is asked for."""
        self._flush(kept_share=0)
        for number in sorted(self._files):
            file = self._files.pop(number)
            file.writer.close()
            yield EncodedFile(
                number, file.sink.getvalue(), file.records, file.start_offset, file.end_offset
            )

    def _flush(self, kept_share: float) -> None:
        """Write the hours that have most of the records, until no more than a share waits."""
        batches, self._waiting, self._waiting_bytes = self._waiting, [], 0
        for batch in pa.Table.from_batches(batches, _SCHEMA).combine_chunks().to_batches():
            buckets = buckets_of(batch.column("timestamp"), self._partition_by)
            order = np.argsort(buckets, kind="stable")
            numbers, firsts = np.unique(buckets[order], return_index=True)
            groups = dict(zip(numbers.tolist(), np.split(order, firsts[1:]), strict=True))
            waiting = len(batch)
            for number in sorted(groups, key=lambda number: -len(groups[number])):
                if waiting <= kept_share * len(batch):
                    break
                rows = groups.pop(number)
                waiting -= len(rows)
                self._file(number).write(batch.take(pa.array(rows)))
            if groups:
                rest = batch.take(pa.array(np.sort(np.concatenate(list(groups.values())))))
                self._waiting.append(rest)
                self._waiting_bytes += rest.nbytes

    def _file(self, number: int) -> _Bucket:
        if number not in self._files:
            sink = BytesIO()  # Its value is not copied.
            writer = pq.ParquetWriter(
                sink, _SCHEMA, compression=self._compression, use_dictionary=_DICTIONARIES
            )
            self._files[number] = _Bucket(sink, writer)
        return self._files[number]
