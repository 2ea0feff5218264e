"""Batches encoded by kernels, row by row: memory holds one batch, and a block of rows.

The rule: the batches are, byte for byte, those of the numpy path (`encode_batches`), or there are
fewer: the kernels stop at the first batch with a row that they do not know, and the numpy path,
which goes on from there, decides what the row is or names what is wrong.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import numpy as np

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.arrow_columns import Column, column_chunks, contiguous_slice
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.batch_header import BatchBounds, add_batch_header
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.batches.records_to_write import Records
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.compiled.kernel_arguments import read_only
from klog.logformat.compiled.kernel_types import BinaryColumn, EncodeKernels, KeysAndValues, Rows

_MIN_BUFFER_BYTES = 64 << 10
_MIN_BLOCK_ROWS, _MAX_COPIED_BYTES = 1 << 12, 1 << 20
"""Rows of several chunks are copied into one block, up to so many rows or bytes: a smaller block
costs more calls of the kernels, a larger one more memory."""
_MIN_CHUNK_ROWS = 64
"""Chunks with fewer rows on average are left to the numpy path, which takes less for a chunk."""
_MAX_BLOCK_ROWS = 1 << 16
"""This bounds what Arrow or numpy copies of a block: offsets of another type."""
_ALL_VALID = np.array([1], np.uint8)


def supports_compiled(records: Records) -> bool:
    """Return whether kernels are for these records: no headers, and no very small chunks.

    Args:
        records: The records to encode.
    """
    has_headers = records.headers is not None and records.headers.null_count < len(records)
    columns = records.timestamp_ms, records.key, records.value
    chunks = max(getattr(column, "num_chunks", 1) for column in columns)
    return not has_headers and chunks * _MIN_CHUNK_ROWS <= max(len(records), _MIN_CHUNK_ROWS)


def encode_compiled(
    records: Records, attributes: BatchAttributes, kernels: EncodeKernels
) -> Generator[bytes, None, int]:
    """Yield batches as `encode_batches` does, and return the row from which numpy has to go on.

    Args:
        records: Records that `supports_compiled` is true for.
        attributes: What the batches have in common.
        kernels: The kernels.

    Raises:
        ValueError: Compression makes a batch larger than `MAX_BATCH_BYTES`.
    """
    batch = _OpenBatch(records, attributes, kernels)
    first_row = 0
    for start, end in _blocks(records):
        if records.timestamp_ms.slice(start, end - start).null_count:
            return first_row
        columns = _block_columns(records, start, end)
        row, reason = 0, kernels.FULL
        while reason == kernels.FULL:
            row, reason = batch.add(*columns, row)
            if reason == kernels.REFUSED:
                return first_row
            if reason == kernels.FULL:
                yield batch.finish(first_row)
                first_row = start + row
        del columns  # Before the next block is copied.
    if first_row < len(records):
        yield batch.finish(first_row)
    return len(records)


class _OpenBatch:
    """The batch that takes rows, and the buffer of its records."""

    def __init__(
        self, records: Records, attributes: BatchAttributes, kernels: EncodeKernels
    ) -> None:
        self._attributes, self._kernels = attributes, kernels
        self._first_offset = int(records.offsets(0, 1)[0]) if len(records) else 0
        max_bytes = max(attributes.batch_bytes - v2.HEADER_BYTES, 0)
        horizon_ms = attributes.delete_horizon_ms
        base_timestamp = -1 if horizon_ms is None else horizon_ms
        self._limits = max_bytes, base_timestamp, records.is_from_log
        self._buffer = np.empty(max(max_bytes, _MIN_BUFFER_BYTES), np.uint8)
        self._start(-1)

    def _start(self, last_offset: int) -> None:
        """Start a batch after this offset."""
        self._state = np.zeros(self._kernels.STATE, np.int64)
        self._state[self._kernels.LAST_OFFSET] = last_offset
        self._out = self._buffer

    def add(self, rows: Rows, fields: KeysAndValues, row: int) -> tuple[int, int]:
        """Add rows from `row` on; return the first that does not fit, and the reason."""
        written_bytes = int(self._state[self._kernels.SIZE])
        end, reason = self._kernels.count_fitting_rows(rows, fields, row, self._limits, self._state)
        size = int(self._state[self._kernels.SIZE])
        if size > MAX_BATCH_BYTES - v2.HEADER_BYTES:
            return row, self._kernels.REFUSED
        if size > len(self._out):  # One record that is larger than a batch.
            self._out = np.empty(size, np.uint8)
        self._kernels.encode_records(
            rows, fields, (row, end), self._state, self._out, written_bytes
        )
        return end, reason

    def finish(self, first_row: int) -> bytes:
        """Return the batch, whose first row this is, and start the next one."""
        size, count, base, last, base_timestamp, max_timestamp = self._state.tolist()
        attributes = self._attributes
        append_time_ms = attributes.append_time_ms
        bounds = BatchBounds(
            base_offset=base,
            last_offset_delta=last - base,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp if append_time_ms is None else append_time_ms,
            base_sequence=increment_sequence(attributes.base_sequence, base - self._first_offset),
            record_count=count,
        )
        chunks = [self._out[:size].data]
        batch = add_batch_header(chunks, attributes, attributes.attribute_bits, bounds, first_row)
        self._start(last)
        return batch


def _blocks(records: Records) -> Iterator[tuple[int, int]]:
    """Split rows where a chunk of any column ends; small chunks are copied into one block."""
    columns = records.timestamp_ms, records.key, records.value
    lengths = [[len(chunk) for chunk in column_chunks(column)] for column in columns]
    ends = np.unique(np.concatenate([np.cumsum(column) for column in lengths]))
    start = 0
    while start < len(records):
        chunk_end = int(ends[ends.searchsorted(start, "right")])
        end = min(start + _MIN_BLOCK_ROWS, len(records))
        while end > chunk_end and _size_bytes(columns, start, end) > _MAX_COPIED_BYTES:
            end = start + (end - start) // 2
        end = max(end, min(chunk_end, start + _MAX_BLOCK_ROWS))
        yield start, end
        start = end


def _size_bytes(columns: Sequence[Column], start: int, end: int) -> int:
    return sum(column.slice(start, end - start).nbytes for column in columns)


def _block_columns(records: Records, start: int, end: int) -> tuple[Rows, KeysAndValues]:
    """Return rows and fields as kernels take them; no timestamp is null."""
    timestamps = contiguous_slice(records.timestamp_ms, start, end).to_numpy()
    offsets, first_offset = np.empty(0, np.int64), 0
    if isinstance(records.offset, int):
        first_offset = records.offset + start
    else:
        offsets = records.offsets(start, end)
    fields = _binary_column(records.key, start, end), _binary_column(records.value, start, end)
    return (read_only(timestamps), read_only(offsets), first_offset), fields


def _binary_column(column: Column, start: int, end: int) -> BinaryColumn:
    array = contiguous_slice(column, start, end)
    validity_buffer, bounds_buffer, data_buffer = array.buffers()
    bounds = np.frombuffer(bounds_buffer, np.int32, len(array) + 1, 4 * array.offset)
    validity, bits = _ALL_VALID, (0, 0)
    if array.null_count:
        validity, bits = np.frombuffer(validity_buffer, np.uint8), (array.offset, -1)
    no_data = data_buffer is None
    data = np.empty(0, np.uint8) if no_data else np.frombuffer(data_buffer, np.uint8)
    return read_only(bounds), read_only(validity), bits, read_only(data)
