"""Files of rows with columns: CSV and Parquet.

The rule: a CSV file has a header, and each column of it is text, as CSV has no types. The columns
of a Parquet file have theirs. Rows are read in blocks and row groups, never a file at once. The
files of one range of `to-files`, which are of different hours, are merged by offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from klog.errors import KlogError
from klog.jobs.importing_files.chosen_fields import (
    OTHER_COLUMNS,
    RECORD_COLUMNS,
    RecordFields,
    WrongRowError,
    rows_of,
)

BLOCK_BYTES = 8 << 20
BATCH_ROWS = 1 << 16
MIN_BATCH_ROWS = 1 << 10
"""Of each file, if many are merged."""


def csv_columns(stream: Any, path: str) -> list[str]:
    """Return the names of the columns of a CSV file.

    Args:
        stream: The file, decompressed, at its start.
        path: The path of the file, whose suffix says what separates columns.

    Raises:
        KlogError: It has no header.
    """
    try:
        with pv.open_csv(stream, _read_options(), _parse_options(path)) as reader:
            names: list[str] = reader.schema.names
            return names
    except pa.ArrowInvalid as exc:
        raise KlogError(f"{exc}. Give the file a first line with the names of its columns") from exc


def read_csv(
    stream: Any, path: str, names: Sequence[str], fields: RecordFields
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a CSV file as columns of a write.

    Args:
        stream: The file, decompressed, at its start.
        path: The path of the file.
        names: The names of its columns.
        fields: What becomes what of a record.

    Raises:
        KlogError: A row is wrong; the message has its number.
    """
    as_text = pv.ConvertOptions(
        column_types={name: pa.string() for name in names}, strings_can_be_null=False
    )
    try:
        with pv.open_csv(stream, _read_options(), _parse_options(path), as_text) as reader:
            yield from _converted(reader, fields)
    except pa.ArrowInvalid as exc:
        raise KlogError(f"{exc}. Correct the row, or quote its text") from exc


def read_parquet(file: Any, fields: RecordFields) -> Iterator[pa.RecordBatch]:
    """Yield the records of a Parquet file as columns of a write.

    Args:
        file: The file.
        fields: What becomes what of a record; without any a file with klog's columns has records.

    Raises:
        KlogError: It is not a Parquet file, or damaged.
    """
    try:
        parquet = pq.ParquetFile(file)
        fields = record_fields(parquet.schema_arrow.names, fields)
        yield from _converted(parquet.iter_batches(BATCH_ROWS), fields)
    except (pa.ArrowException, OSError) as exc:
        raise KlogError(f"it cannot be read as Parquet: {exc}. Restore it from a copy") from exc


def read_range(files: Sequence[Any], fields: RecordFields) -> Iterator[pa.RecordBatch]:
    """Yield the records of the files of one range of offsets, in the order of their offsets.

    Args:
        files: The files, open.
        fields: What becomes what of a record.

    Raises:
        KlogError: A file is not a Parquet file, or damaged.
    """
    batch_rows = max(BATCH_ROWS // len(files), MIN_BATCH_ROWS)
    try:
        opened = [pq.ParquetFile(file) for file in files]
        fields = record_fields(opened[0].schema_arrow.names, fields)
        cursors = [_Cursor(parquet.iter_batches(batch_rows)) for parquet in opened]
        yield from _converted(_merged(cursors), fields)
    except (pa.ArrowException, OSError) as exc:
        raise KlogError(f"it cannot be read as Parquet: {exc}. Restore it from a copy") from exc


class _Cursor:
    """The next rows of a file that is merged with others."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._batch: pa.RecordBatch = next(batches, None)

    def has_rows(self) -> bool:
        """Read on if all rows were taken; return False at the end of the file."""
        while self._batch is not None and not len(self._batch):
            self._batch = next(self._batches, None)
        return self._batch is not None

    def last_offset(self) -> int:
        """Return the offset of the last row that was read."""
        offset: int = self._batch.column("offset")[-1].as_py()
        return offset

    def take(self, last_offset: int) -> pa.RecordBatch:
        """Return the rows up to an offset, itself included."""
        offsets = self._batch.column("offset").to_numpy()
        count = int(np.searchsorted(offsets, last_offset, "right"))
        taken, self._batch = self._batch.slice(0, count), self._batch.slice(count)
        return taken


def _merged(cursors: Sequence[_Cursor]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files that are sorted by offset, in the order of all offsets."""
    while open_cursors := [cursor for cursor in cursors if cursor.has_rows()]:
        last_offset = min(cursor.last_offset() for cursor in open_cursors)
        parts = [cursor.take(last_offset) for cursor in open_cursors]
        table = pa.Table.from_batches([part for part in parts if len(part)])
        yield from table.sort_by("offset").to_batches(BATCH_ROWS)


def record_fields(names: Sequence[str], fields: RecordFields) -> RecordFields:
    """Return what becomes what: a file that has klog's columns and no others has records.

    Args:
        names: The columns of the file.
        fields: What the user has said.
    """
    if fields.names or not set(names) <= {*RECORD_COLUMNS, *OTHER_COLUMNS}:
        return fields
    return RecordFields(is_records=True) if "value" in names else fields


def _converted(batches: Iterable[pa.RecordBatch], fields: RecordFields) -> Iterator[pa.RecordBatch]:
    """Yield rows as columns of a write; a wrong one is named by its number in the file."""
    row_count = 0
    for batch in batches:
        if not len(batch):
            continue
        try:
            yield rows_of(batch, fields)
        except WrongRowError as exc:
            raise KlogError(f"row {row_count + exc.row + 1}: {exc}") from exc
        row_count += len(batch)


def _read_options() -> Any:
    # With threads a wrong row has no number.
    return pv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES)


def _parse_options(path: str) -> Any:
    delimiter = "\t" if ".tsv" in path.rpartition("/")[2] else ","
    return pv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
