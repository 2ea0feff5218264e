"""Arrow columns to records of batches v2: how many bytes each takes, and the bytes.

    record   length varint | attributes int8 | timestampDelta varlong | offsetDelta varint
             | key length varint, key | value length varint, value
             | header count varint | headers                                  (docs/format.md, 3)

The rule: no step is taken for one record. What does not depend on a batch's base offset and
timestamp is measured for many rows at once (`measure_records`); a batch then adds the deltas of its
rows (`lay_out_batch`); and `encode_records` encodes the records of a large batch, or of several
small ones, at once. numpy encodes the varints around keys and values into two columns of short
strings, and Arrow joins them with the columns of the caller: the data of the joined column is the
records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from klog.logformat.array_types import Longs, UnsignedLongs
from klog.logformat.batches.arrow_columns import (
    byte_lengths,
    contiguous_slice,
    field_sizes,
    join_columns,
    raise_for_row,
    varint_column,
)
from klog.logformat.batches.record_batch import NO_TIMESTAMP
from klog.logformat.batches.record_headers import encode_headers, header_sizes
from klog.logformat.batches.records_to_write import MAX_FIRST_OFFSET, Records
from klog.logformat.batches.varint import varint_sizes, zigzag_encode

JOINED_BYTES = 1 << 19
"""So many bytes of small batches are written in one step; a larger batch is a step by itself."""
MIN_PREFIX_BYTES = 4
"""Length, attributes and two deltas, a byte each."""

_NO_HEADERS = memoryview(bytes(1))
_ATTRIBUTES_BYTES, _ONE_BIT = np.int8(1), np.uint64(1)


@dataclass(frozen=True, slots=True)
class RecordSizes:
    """What of rows does not depend on their batch.

    Attributes:
        timestamps: In ms.
        offsets: The offsets.
        key_lengths: Zig-zags; null has length -1.
        value_lengths: Zig-zags; null has length -1.
        field_bytes: The bytes of a record from its key's length to its end.
    """

    timestamps: Longs
    offsets: Longs
    key_lengths: UnsignedLongs
    value_lengths: UnsignedLongs
    field_bytes: Longs

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.field_bytes)

    def slice(self, start: int, end: int) -> RecordSizes:
        """Return the rows from `start` to before `end`.

        Args:
            start: The first row.
            end: The row after the last one.
        """
        rows = slice(start, end)
        return RecordSizes(
            self.timestamps[rows],
            self.offsets[rows],
            self.key_lengths[rows],
            self.value_lengths[rows],
            self.field_bytes[rows],
        )

    @property
    def min_sizes(self) -> Longs:
        """Return the fewest bytes that each record may take in a batch."""
        return self.field_bytes + MIN_PREFIX_BYTES


@dataclass(frozen=True, slots=True)
class BatchLayout:
    """What stands before the keys of one batch, as zig-zags, and the bytes of each record.

    Attributes:
        lengths: The length of each record.
        timestamp_deltas: The timestamps, from the base timestamp.
        offset_deltas: The offsets, from the base offset.
        sizes: The bytes of each record, with its length.
    """

    lengths: UnsignedLongs
    timestamp_deltas: UnsignedLongs
    offset_deltas: UnsignedLongs
    sizes: Longs

    def first(self, count: int) -> BatchLayout:
        """Return the first rows.

        Args:
            count: How many rows.
        """
        return BatchLayout(
            self.lengths[:count],
            self.timestamp_deltas[:count],
            self.offset_deltas[:count],
            self.sizes[:count],
        )


def measure_records(records: Records, start: int, end: int) -> RecordSizes:
    """Measure rows, and refuse those that Kafka's writer refuses (`MemoryRecordsBuilder`).

    Args:
        records: The records.
        start: The first row.
        end: The row after the last one.

    Raises:
        ValueError: A timestamp is null, or negative and not -1; an offset is negative or does not
            rise; a header has no key, or a record has more headers than klog reads
            (docs/format.md, 2, 3 and 17). The error names the row.
    """
    timestamps = _check_timestamps(records, start, end)
    offsets = records.offsets(start, end)
    _check_offsets(records, offsets, start)
    keys = byte_lengths(records.key.slice(start, end - start))
    values = byte_lengths(records.value.slice(start, end - start))
    key_lengths, value_lengths = zigzag_encode(keys), zigzag_encode(values)
    field_bytes = field_sizes(keys, key_lengths) + field_sizes(values, value_lengths)
    if records.headers is None:
        field_bytes += 1
    else:
        field_bytes += header_sizes(records.headers.slice(start, end - start), start)
    return RecordSizes(timestamps, offsets, key_lengths, value_lengths, field_bytes)


def lay_out_batch(
    rows: RecordSizes, start: int, end: int, base_timestamp: int, base_offset: int
) -> BatchLayout:
    """Return rows as they are in a batch; timestamp deltas wrap as Java's longs do.

    Args:
        rows: Measured rows.
        start: The first row of the batch.
        end: The row after the last one.
        base_timestamp: The batch's base timestamp.
        base_offset: The batch's base offset.
    """
    timestamp_deltas = zigzag_encode(rows.timestamps[start:end] - np.int64(base_timestamp))
    offset_deltas = _zigzag_unsigned(rows.offsets[start:end] - np.int64(base_offset))
    prefix = varint_sizes(timestamp_deltas) + varint_sizes(offset_deltas) + _ATTRIBUTES_BYTES
    body = rows.field_bytes[start:end] + prefix
    lengths = _zigzag_unsigned(body)
    return BatchLayout(lengths, timestamp_deltas, offset_deltas, body + varint_sizes(lengths))


def encode_records(
    records: Records, start: int, rows: RecordSizes, layouts: Sequence[BatchLayout]
) -> Iterator[Sequence[memoryview]]:
    """Yield the encoded records of consecutive batches, each as chunks that follow each other.

    Nothing is copied: as many batches as fill `JOINED_BYTES` share memory, which is released when
    the caller releases the chunks. The chunks are the records, and, if they have no headers and no
    batch follows in the same memory, the header count of the last record, 0.

    Args:
        records: The records.
        start: The row at which the first batch starts.
        rows: The measured rows of these batches, and no others.
        layouts: The layout of each batch.
    """
    zeros = np.zeros(len(rows), np.uint64)
    prefixes = [
        np.concatenate([layout.lengths for layout in layouts]),
        zeros,
        np.concatenate([layout.timestamp_deltas for layout in layouts]),
        np.concatenate([layout.offset_deltas for layout in layouts]),
        rows.key_lengths,
    ]
    if records.headers is None:
        # Their count, 0, goes before the next record's length: a column less to join.
        prefixes.insert(0, zeros)
    before_key = varint_column(*prefixes)
    before_value = varint_column(rows.value_lengths)
    del zeros, prefixes
    sizes = [int(layout.sizes.sum()) for layout in layouts]
    first = row = 0
    while first < len(layouts):
        joined_batches = int(np.cumsum(sizes[first:]).searchsorted(JOINED_BYTES, "right"))
        end = first + max(joined_batches, 1)
        count = sum(len(layout.sizes) for layout in layouts[first:end])
        data = _join_rows(
            records, start + row, before_key.slice(row, count), before_value.slice(row, count)
        )
        for size in sizes[first:end]:
            chunks, data = [data[:size]], data[size:]
            if len(chunks[0]) < size:
                chunks.append(_NO_HEADERS)
            yield chunks
            del chunks
        del data
        first, row = end, row + count


def _join_rows(
    records: Records, start: int, before_key: pa.BinaryArray, before_value: pa.BinaryArray
) -> memoryview:
    """Join as many rows as there are varints for; `encode_records` explains the last byte."""
    end = start + len(before_key)
    key = contiguous_slice(records.key, start, end)
    value = contiguous_slice(records.value, start, end)
    columns = [before_key, key, before_value, value]
    if records.headers is None:
        return join_columns(columns).data[1:]
    columns += encode_headers(contiguous_slice(records.headers, start, end))
    return join_columns(columns).data


def _zigzag_unsigned(numbers: Longs) -> UnsignedLongs:
    """Return the zig-zags of numbers that are not negative, in one step."""
    zigzags: UnsignedLongs = numbers.view(np.uint64) << _ONE_BIT
    return zigzags


def _check_timestamps(records: Records, start: int, end: int) -> Longs:
    column = records.timestamp_ms.slice(start, end - start)
    if column.null_count:
        raise_for_row(column.is_null().to_numpy(False), start, "the timestamp is null")
    timestamps: Longs = column.to_numpy()
    is_wrong = timestamps < NO_TIMESTAMP
    if is_wrong.any() and not records.is_from_log:
        first = timestamps[int(np.argmax(is_wrong))]
        reason = f"the timestamp {first} is negative and not {NO_TIMESTAMP}"
        raise_for_row(is_wrong, start, reason)
    return timestamps


def _check_offsets(records: Records, offsets: Longs, start: int) -> None:
    if isinstance(records.offset, int):
        return
    is_out_of_range = (offsets < 0) | (offsets > MAX_FIRST_OFFSET)
    raise_for_row(is_out_of_range, start, "the offset is out of range")
    previous_row = max(start - 1, 0)
    does_not_rise = np.diff(records.offsets(previous_row, start + len(offsets))) <= 0
    reason = "the offset is not above that of the row before"
    raise_for_row(does_not_rise, previous_row + 1, reason)
