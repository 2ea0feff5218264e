"""Files of rows with columns: CSV and Parquet.

The rule: a CSV file has a header, and each column of it is text, as CSV has no types. The columns
of a Parquet file have theirs. Rows are read in blocks that are bounded by bytes, never a file at
once. A file that has no rows, not even a header, has no records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from klog.errors import KlogError
from klog.jobs.importing_files.chosen_fields import (
    OTHER_COLUMNS,
    RECORD_COLUMNS,
    RecordFields,
    rows_of,
)
from klog.jobs.importing_files.field_times import WrongRowError
from klog.jobs.importing_files.source_files import without_codec

BLOCK_BYTES = 8 << 20
MAX_HEADER_BYTES = 1 << 20
BATCH_ROWS = 1 << 13
"""Few, as values that repeat are long only when they are decoded."""
_TOO_LONG = "straddling"
"""How Arrow says that a row is longer than a block."""


def csv_columns(stream: Any, path: str) -> list[str]:
    """Return the names of the columns of a CSV file; none if it has a line at most.

    Args:
        stream: The file, decompressed, at its start.
        path: The path of the file, whose suffix says what separates columns.

    Raises:
        KlogError: It has no header.
    """
    head = stream.read(MAX_HEADER_BYTES)
    if len(head.strip(b"\r\n").splitlines()) < 2 and not stream.read(1):
        return []
    header = pa.BufferReader(_header(head))
    try:
        with pv.open_csv(header, _read_options(), _parse_options(path)) as reader:
            names: list[str] = reader.schema.names
            return names
    except (pa.ArrowInvalid, UnicodeDecodeError) as exc:
        raise KlogError(
            f"{exc}. Give the file a first line with the names of its columns, in UTF-8"
        ) from exc


def _header(head: bytes) -> bytes:
    """Return the first line that is not empty, to the end of its quotes."""
    header = b""
    for line in head.splitlines(keepends=True):
        header += line
        if header.strip() and header.count(b'"') % 2 == 0:
            break
    return header


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
            yield from converted(reader, fields)
    except pa.ArrowInvalid as exc:
        if _TOO_LONG in str(exc):
            raise KlogError(
                f"a row has more than {BLOCK_BYTES} bytes, or a quote has no end. Correct the "
                "quotes, or import long texts as JSON lines or Parquet"
            ) from exc
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
        batches = parquet.iter_batches(batch_rows(parquet.metadata))
        yield from converted(batches, record_fields(parquet.schema_arrow.names, fields))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as exc:
        raise KlogError(f"it cannot be read as Parquet: {exc}. Restore it from a copy") from exc


def record_fields(names: Sequence[str], fields: RecordFields) -> RecordFields:
    """Return what becomes what: a file that has klog's columns and no others has records.

    Args:
        names: The columns of the file.
        fields: What the user has said.
    """
    if fields.names or not set(names) <= {*RECORD_COLUMNS, *OTHER_COLUMNS}:
        return fields
    return RecordFields(is_records=True) if "value" in names else fields


def batch_rows(metadata: Any) -> int:
    """Return how many rows of a Parquet file are read at a time: some `BLOCK_BYTES`.

    Args:
        metadata: The metadata of the file.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    row_bytes = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=1)
    return int(min(max(BLOCK_BYTES / max(row_bytes, 1), 1), BATCH_ROWS))


def converted(batches: Iterable[pa.RecordBatch], fields: RecordFields) -> Iterator[pa.RecordBatch]:
    """Yield rows as columns of a write; a wrong one is named by its number in the file.

    Args:
        batches: The rows.
        fields: What becomes what of a record.

    Raises:
        KlogError: A row is wrong.
    """
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
    delimiter = "\t" if without_codec(path).endswith(".tsv") else ","
    return pv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
