"""Rows to write: columns of uniform types, and what a writer has to know of each row, checked.

The rule: what `row_checks` rejects fails the write with an error that names the row, or goes to a
rejecter, and the remaining rows are checked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from klog.connector.sink.row_checks import (
    MAX_RECORD_BYTES,
    TOO_LARGE,
    RejectedRowsError,
    Rejecter,
    RowRules,
    check_headers,
    check_keys,
    check_partitions,
    check_timestamps,
    reject,
)
from klog.connector.sink.write_columns import (
    as_bytes,
    as_headers,
    as_milliseconds,
    check_columns,
)
from klog.errors import KlogError
from klog.logformat.array_types import Longs
from klog.logformat.batches.arrow_columns import Column, byte_lengths, column_chunks
from klog.logformat.batches.record_bounds import MIN_RECORD_BYTES
from klog.logformat.batches.record_headers import HEADERS_TYPE, header_sizes

MAX_CHUNK_ROWS, MAX_CHUNK_BYTES = 1 << 16, 16 << 20
"""Rows are read in chunks of at most so many rows, and bytes of keys and values, or of one row."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in order, checked.

    Attributes:
        key: Binary.
        value: Binary.
        headers: Of `HEADERS_TYPE`; None if no row has headers.
        timestamp_ms: The timestamps.
        partition: int64, null if the partitioner decides; None if it decides for all rows.
        numbers: The numbers of the rows among all rows of the task.
        min_bytes: The least bytes that each row takes as a record in any batch.
    """

    key: Column
    value: Column
    headers: Column | None
    timestamp_ms: Longs
    partition: pa.Array | None
    numbers: Longs
    min_bytes: Longs

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.numbers)

    def take(self, indices: npt.NDArray[np.int64]) -> Rows:
        """Return a copy of these rows, in this order and without their partitions.

        Args:
            indices: The rows to copy, by their places among these rows, in the order of the copy.
        """
        return Rows(
            _take(self.key, indices),
            _take(self.value, indices),
            None if self.headers is None else _take(self.headers, indices),
            self.timestamp_ms[indices],
            None,
            self.numbers[indices],
            self.min_bytes[indices],
        )

    def slice(self, start: int, end: int) -> Rows:
        """Return consecutive rows, without copying and without partitions.

        Args:
            start: The place of the first row.
            end: The place after the last row.
        """
        count = end - start
        return Rows(
            self.key.slice(start, count),
            self.value.slice(start, count),
            None if self.headers is None else self.headers.slice(start, count),
            self.timestamp_ms[start:end],
            None,
            self.numbers[start:end],
            self.min_bytes[start:end],
        )


def concat_rows(parts: Sequence[Rows]) -> Rows:
    """Concatenate rows; keys, values and headers are not copied but become chunks.

    Args:
        parts: The rows, one after another; at least one item.
    """
    if len(parts) == 1:
        return parts[0]
    headers = None
    if any(part.headers is not None for part in parts):
        headers = _concat_columns(
            [
                pa.nulls(len(part), HEADERS_TYPE) if part.headers is None else part.headers
                for part in parts
            ]
        )
    return Rows(
        _concat_columns([part.key for part in parts]),
        _concat_columns([part.value for part in parts]),
        headers,
        np.concatenate([part.timestamp_ms for part in parts]),
        None,
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.min_bytes for part in parts]),
    )


def check_rows(
    batch: pa.RecordBatch, numbers: Longs, rules: RowRules, rejecter: Rejecter | None = None
) -> Iterator[Rows]:
    """Check the rows of a batch.

    Args:
        batch: The rows, with the columns of a write (`write_columns.py`).
        numbers: The numbers of the rows among all rows of the task.
        rules: The topic's rules.
        rejecter: Takes the rows that cannot be written; None if they are an error.

    Yields:
        The accepted rows, in chunks.

    Raises:
        OptionError: A column is wrong.
        KlogError: A row cannot be written and there is no rejecter, or no batch could hold it. The
            message names the first such row.
    """
    check_columns(batch.schema)
    columns = {name: batch.column(name) for name in batch.schema.names}
    nulls = pa.nulls(len(batch))
    key, value = as_bytes(columns.get("key", nulls)), as_bytes(columns["value"])
    sizes = np.maximum(byte_lengths(key), 0) + np.maximum(byte_lengths(value), 0)
    if int(sizes.max(initial=0)) > MAX_RECORD_BYTES:
        row = int(numbers[np.argmax(sizes > MAX_RECORD_BYTES)])
        raise KlogError(f"{rules.place(row)}: {TOO_LARGE}")
    end_bytes = sizes.cumsum()
    start = 0
    while start < len(batch):
        start_bytes = int(end_bytes[start - 1]) if start else 0
        fitting = int(np.searchsorted(end_bytes, start_bytes + MAX_CHUNK_BYTES, "right"))
        end = min(max(fitting, start + 1), start + MAX_CHUNK_ROWS, len(batch))
        count = end - start
        chunk = {
            name: columns.get(name, nulls).slice(start, count)
            for name in ("headers", "partition", "timestamp")
        }
        chunk["key"] = key.slice(start, count).cast(pa.binary())
        chunk["value"] = value.slice(start, count).cast(pa.binary())
        yield from _check_chunk(chunk, sizes[start:end], numbers[start:end], rules, rejecter)
        start = end


def input_columns(rows: Rows) -> dict[str, Column]:
    """Return rows as columns of a write; timestamps that were null have their values.

    Args:
        rows: Rows that were checked.
    """
    return {
        "key": rows.key,
        "value": rows.value,
        "headers": pa.nulls(len(rows), HEADERS_TYPE) if rows.headers is None else rows.headers,
        "partition": pa.nulls(len(rows)) if rows.partition is None else rows.partition,
        "timestamp": pa.array(rows.timestamp_ms, pa.timestamp("ms")),
    }


def _check_chunk(
    chunk: dict[str, pa.Array],
    sizes: Longs,
    numbers: Longs,
    rules: RowRules,
    rejecter: Rejecter | None,
) -> Iterator[Rows]:
    """Yield the rows that can be written; after a rejection the remaining rows are checked."""
    while len(numbers):
        try:
            yield _check_rows(chunk, sizes, numbers, rules)
        except RejectedRowsError as error:
            if rejecter is None:
                first = int(np.argmax(error.is_rejected))
                place = rules.place(int(numbers[first]))
                raise KlogError(f"{place}: {error.reason(first)}") from None
            rejecter(chunk, error, numbers)
            is_accepted = ~error.is_rejected
            chunk = {name: column.filter(pa.array(is_accepted)) for name, column in chunk.items()}
            sizes, numbers = sizes[is_accepted], numbers[is_accepted]
        else:
            return


def _take(column: Column, indices: npt.NDArray[np.int64]) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.take(pa.array(indices))


def _concat_columns(columns: Sequence[Column]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for column in columns for chunk in column_chunks(column)])


def _check_rows(chunk: dict[str, pa.Array], sizes: Longs, numbers: Longs, rules: RowRules) -> Rows:
    """Return rows with uniform types; `sizes` are the bytes of key and value.

    Raises `RejectedRowsError` for those that the topic cannot take.
    """
    timestamps = as_milliseconds(chunk["timestamp"], rules.now_ms)
    check_timestamps(timestamps, rules)
    check_keys(chunk["key"], rules)
    headers = as_headers(chunk["headers"])
    check_headers(headers)
    try:
        min_bytes = sizes + MIN_RECORD_BYTES
        if headers is not None:  # The smallest record has the header count, one byte.
            min_bytes += header_sizes(headers, 0) - 1
    except ValueError as exc:  # "row 3: the record has more than 65536 headers"
        row, _, reason = str(exc).removeprefix("row ").partition(": ")
        is_rejected = np.arange(len(numbers)) == int(row)
        raise RejectedRowsError(is_rejected, lambda _: f"{reason}; leave some out") from exc
    reject(min_bytes > MAX_RECORD_BYTES, TOO_LARGE)
    return Rows(
        chunk["key"],
        chunk["value"],
        headers,
        timestamps,
        check_partitions(chunk["partition"], rules),
        numbers,
        min_bytes,
    )
