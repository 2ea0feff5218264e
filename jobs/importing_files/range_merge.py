"""The files of one range of `to-files`, which are of different hours, merged by offset.

The rule: a step takes the rows of the next so many offsets, from the files that have any of them.
So a file is opened when its first offset is next and closed after its last row, and the time grows
with the rows and not with the number of files. How many offsets a step has follows from the bytes
of the step before, so memory is bounded for large records too.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from klog.errors import KlogError
from klog.jobs.importing_files.chosen_fields import RecordFields
from klog.jobs.importing_files.table_files import (
    BLOCK_BYTES,
    batch_rows,
    converted,
    record_fields,
)

START_OFFSETS, MAX_OFFSETS = 1 << 8, 1 << 16
"""Offsets of the first step, and of the longest."""
MIN_BATCH_ROWS = 1 << 10
"""Rows of one file that are read at a time, if many files are open and its rows are not large."""
OFFSET = "offset"


@dataclass(frozen=True, slots=True)
class RangeFile:
    """A file of a range.

    Attributes:
        path: Its path, for errors.
        open: Opens it.
        start_offset: No row has a lower offset.
    """

    path: str
    open: Callable[[], AbstractContextManager[Any]]
    start_offset: int


def read_range(files: Sequence[RangeFile], fields: RecordFields) -> Iterator[pa.RecordBatch]:
    """Yield the records of the files of one range of offsets, in the order of their offsets.

    Args:
        files: The files, each sorted by offset.
        fields: What becomes what of a record.

    Raises:
        KlogError: A file is not a Parquet file of to-files, or damaged.
    """
    batches = _merged([_Cursor(file, len(files)) for file in files])
    for first in batches:
        yield from converted(chain([first], batches), record_fields(first.schema.names, fields))


class _Cursor:
    """The next rows of a file."""

    def __init__(self, file: RangeFile, file_count: int) -> None:
        self.next_offset = file.start_offset
        self._batches = _batches(file, file_count)
        self._batch: pa.RecordBatch | None = None

    def take(self, end_offset: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows before an offset, and read on until there is a later one."""
        while (batch := self._next_rows()) is not None:
            offsets = batch.column(OFFSET).to_numpy()
            count = int(np.searchsorted(offsets, end_offset))
            if count:
                yield batch.slice(0, count)
            if count < len(batch):
                self._batch, self.next_offset = batch.slice(count), int(offsets[count])
                return

    def has_rows(self) -> bool:
        """Return whether rows are left after `take`."""
        return self._batch is not None

    def _next_rows(self) -> pa.RecordBatch | None:
        batch, self._batch = self._batch, None
        return next(self._batches, None) if batch is None else batch


def _merged(cursors: Sequence[_Cursor]) -> Iterator[pa.RecordBatch]:
    heap = [(cursor.next_offset, number) for number, cursor in enumerate(cursors)]
    heapq.heapify(heap)
    step = START_OFFSETS
    while heap:
        end_offset = heap[0][0] + step
        parts: list[pa.RecordBatch] = []
        while heap and heap[0][0] < end_offset:
            number = heapq.heappop(heap)[1]
            parts += cursors[number].take(end_offset)
            if cursors[number].has_rows():
                heapq.heappush(heap, (cursors[number].next_offset, number))
        if parts:
            table = pa.Table.from_batches(parts)
            yield from table.sort_by(OFFSET).to_batches(MAX_OFFSETS)
            step = max(step // 2, 1) if table.nbytes > BLOCK_BYTES else min(step * 2, MAX_OFFSETS)


def _batches(file: RangeFile, file_count: int) -> Iterator[pa.RecordBatch]:
    try:
        with file.open() as opened:
            parquet = pq.ParquetFile(opened)
            if (OFFSET, pa.int64()) not in [
                (field.name, field.type) for field in parquet.schema_arrow
            ]:
                raise KlogError(
                    f"{file.path}: it has the name of a file of to-files, and no column {OFFSET} "
                    "of int64. Restore it from a copy, or rename it"
                )
            rows = batch_rows(parquet.metadata)
            yield from parquet.iter_batches(min(rows, max(rows // file_count, MIN_BATCH_ROWS)))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as exc:
        raise KlogError(
            f"{file.path}: it cannot be read as Parquet: {exc}. Restore it from a copy"
        ) from exc
