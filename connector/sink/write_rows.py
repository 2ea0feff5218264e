"""Rows to write: columns of uniform types, and what a writer has to know of each row, checked.

The rule: rows that no partition of the topic could take are rejected here, before a byte is staged.
They fail the write with an error that names the row, or go to a rejecter. The checks are a broker's
(docs/format.md, 9; Kafka's `LogValidator`): a compacted topic needs keys; timestamps lie within
`message.timestamp.before.max.ms` and `.after.max.ms`, both bounds included, or are -1 for "none".
Whether a record is too large for `max.message.bytes` is known only after it is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.sink.write_columns import (
    as_bytes,
    as_headers,
    as_milliseconds,
    as_partitions,
    check_columns,
)
from klog.errors import KlogError
from klog.logformat.array_types import Longs
from klog.logformat.batches.arrow_columns import Column, byte_lengths, column_chunks
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.batches.record_batch import NO_TIMESTAMP
from klog.logformat.batches.record_bounds import MIN_RECORD_BYTES
from klog.logformat.batches.record_headers import HEADERS_TYPE, header_sizes

MAX_CHUNK_ROWS, MAX_CHUNK_BYTES = 1 << 16, 16 << 20
"""Rows are read in chunks of at most so many rows, and bytes of keys and values, or of one row."""
_MAX_RECORD_BYTES = MAX_BATCH_BYTES - 128
"""Leaves room for the batch's header and for the varints of its only record."""
_TOO_LARGE = f"the record has more than {_MAX_RECORD_BYTES} bytes, which no batch holds; split it"


@dataclass(frozen=True, slots=True)
class RowRules:
    """A topic's rules for rows.

    Attributes:
        topic: The topic.
        partitions: How many partitions it has.
        now_ms: The timestamp of rows that have none.
        needs_key: Whether rows without a key are rejected.
        min_timestamp_ms: The earliest timestamp, included; None if there is no bound.
        max_timestamp_ms: The latest timestamp, included; None if there is no bound.
        task: The task in error messages; empty if the write has only one.
    """

    topic: str
    partitions: int
    now_ms: int
    needs_key: bool = False
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None
    task: str = ""

    def place(self, row: int) -> str:
        """Return how error messages name a row.

        Args:
            row: The number of the row among all rows of the task.
        """
        return f"{self.topic}: row {row}{self.task and f' of {self.task}'}"


class RejectedRowsError(Exception):
    """Rows cannot be written.

    Attributes:
        is_rejected: For each of the checked rows, whether it cannot be written.
        reason: Returns why one of them cannot be written, by its index.
    """

    def __init__(self, is_rejected: npt.NDArray[np.bool_], reason: Callable[[int], str]) -> None:
        """Take a mask over the rows, and a function that returns the reason for a row."""
        super().__init__()
        self.is_rejected, self.reason = is_rejected, reason


Rejecter: TypeAlias = Callable[[Mapping[str, Column], RejectedRowsError, Longs], None]
"""Takes rejected rows: columns, which of their rows are rejected, the numbers of all of them."""


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


def read_rows(
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
    if int(sizes.max(initial=0)) > _MAX_RECORD_BYTES:
        row = int(numbers[np.argmax(sizes > _MAX_RECORD_BYTES)])
        raise KlogError(f"{rules.place(row)}: {_TOO_LARGE}")
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
        yield from _accepted(chunk, sizes[start:end], numbers[start:end], rules, rejecter)
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


def _accepted(
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
    _check_timestamps(timestamps, rules)
    if rules.needs_key and chunk["key"].null_count:
        reason = "it has no key, which a compacted topic needs; set it, or write to another topic"
        _reject(chunk["key"].is_null().to_numpy(False), reason)
    headers = as_headers(chunk["headers"])
    _check_headers(headers)
    try:
        min_bytes = sizes + MIN_RECORD_BYTES
        if headers is not None:  # The smallest record has the header count, one byte.
            min_bytes += header_sizes(headers, 0) - 1
    except ValueError as exc:  # "row 3: the record has more than 65536 headers"
        row, _, reason = str(exc).removeprefix("row ").partition(": ")
        raise RejectedRowsError(np.arange(len(numbers)) == int(row), lambda _: reason) from exc
    _reject(min_bytes > _MAX_RECORD_BYTES, _TOO_LARGE)
    return Rows(
        chunk["key"],
        chunk["value"],
        headers,
        timestamps,
        _check_partitions(chunk["partition"], rules),
        numbers,
        min_bytes,
    )


def _check_headers(headers: pa.Array | None) -> None:
    if headers is None:
        return
    is_nameless = pc.struct_field(headers.flatten(), "key").is_null().to_numpy(False)
    if is_nameless.any():
        counts = pc.list_value_length(headers).fill_null(0).to_numpy()
        is_rejected = np.zeros(len(headers), bool)
        is_rejected[np.repeat(np.arange(len(headers)), counts)[is_nameless]] = True
        _reject(is_rejected, "a header without a key; give it one, or leave it out")


def _check_partitions(column: pa.Array, rules: RowRules) -> pa.Array | None:
    if column.null_count == len(column):
        return None
    partitions = as_partitions(column)
    numbers = partitions.fill_null(0).to_numpy()
    _reject(
        (numbers < 0) | (numbers >= rules.partitions),
        lambda row: f"there is no partition {numbers[row]}, only 0 to {rules.partitions - 1}",
    )
    return partitions


def _check_timestamps(timestamps: Longs, rules: RowRules) -> None:
    min_ms, max_ms = int(timestamps.min()), int(timestamps.max())
    if min_ms < NO_TIMESTAMP:
        _reject(
            timestamps < NO_TIMESTAMP,
            lambda row: (
                f"the timestamp, {timestamps[row]} ms, is before 1970, or does not fit "
                "into milliseconds"
            ),
        )
    if rules.min_timestamp_ms is not None and min_ms < rules.min_timestamp_ms:
        is_rejected = (timestamps < rules.min_timestamp_ms) & (timestamps != NO_TIMESTAMP)
        _reject(is_rejected, lambda row: _out_of_bounds(int(timestamps[row]), "before", rules))
    if rules.max_timestamp_ms is not None and max_ms > rules.max_timestamp_ms:
        is_rejected = timestamps > rules.max_timestamp_ms
        _reject(is_rejected, lambda row: _out_of_bounds(int(timestamps[row]), "after", rules))


def _out_of_bounds(timestamp_ms: int, side: str, rules: RowRules) -> str:
    return (
        f"the timestamp, {timestamp_ms} ms, lies further {side} now ({rules.now_ms} ms) than "
        f"message.timestamp.{side}.max.ms allows; correct it, or raise that config of the topic"
    )


def _reject(is_rejected: npt.NDArray[np.bool_], reason: str | Callable[[int], str]) -> None:
    if is_rejected.any():
        raise RejectedRowsError(
            is_rejected, (lambda row: reason) if isinstance(reason, str) else reason
        )
