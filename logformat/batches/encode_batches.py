"""Record batches v2 from Arrow columns: where a batch ends, what its header says.

The rule: a batch takes records until the next one would make it, uncompressed and with its header,
larger than `batch_bytes`; a record that is larger by itself is a batch of its own (Kafka's
`MemoryRecordsBuilder.hasRoomFor`).

Batches come one at a time. Besides input and output, memory holds the records of one batch, or of
as many small ones as fill `JOINED_BYTES`: those are written in one step, because calls of numpy and
Arrow cost more than a small batch's records. It also holds a copy of a batch while gzip or zstd
runs, copies of headers and of rows that lie in several chunks, and the numbers about a group's
records: a hundred and fifty bytes each, whatever the record's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt

from klog.logformat.array_types import Longs
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.arrow_columns import element_bounds, raise_for_row
from klog.logformat.batches.batch_attributes import MAX_LONG, BatchAttributes, check_range
from klog.logformat.batches.batch_header import BatchBounds, add_batch_header
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES, MAX_BATCH_RECORDS
from klog.logformat.batches.encode_records import (
    BatchLayout,
    RecordSizes,
    encode_records,
    lay_out_batch,
    measure_records,
)
from klog.logformat.batches.record_batch import NO_TIMESTAMP
from klog.logformat.batches.record_bounds import MIN_RECORD_BYTES
from klog.logformat.batches.records_to_write import MAX_FIRST_OFFSET, Records
from klog.logformat.batches.sequence_numbers import increment_sequence

GROUP_BYTES = 1 << 20
"""So many bytes of records are measured at once, or those of one larger batch."""
_MAX_GROUP_BATCHES = 1024
_FIRST_ROWS = 4096


def encode_batches(records: Records, attributes: BatchAttributes) -> Iterator[bytes]:
    """Yield records as batches; no records are no batch.

    Args:
        records: The records.
        attributes: What the batches have in common.

    Raises:
        ValueError: A record cannot be written, or compression makes a batch larger than
            `MAX_BATCH_BYTES`; the error names the row. Batches before it may have been yielded.
    """
    row = 0
    window_rows = _FIRST_ROWS
    while row < len(records):
        window = _measure_window(records, row, window_rows, attributes)
        batch_rows = _split_group(window, attributes, row, row + len(window) == len(records))
        used_rows = batch_rows[-1].end
        layouts = [rows.layout for rows in batch_rows]
        payloads = encode_records(records, row, window.slice(0, used_rows), layouts)
        remaining = iter(batch_rows)
        for payload in payloads:  # Not by zip, which would hold it while the next is joined.
            rows = next(remaining)
            sizes = window.slice(rows.start, rows.end)
            base, last = int(sizes.offsets[0]), int(sizes.offsets[-1])
            offset_in_write = base - int(records.offsets(0, 1)[0])
            bounds = _batch_bounds(sizes, attributes, base, last - base, offset_in_write)
            batch = add_batch_header(
                payload, attributes, attributes.attribute_bits, bounds, row + rows.start
            )
            del payload, sizes
            yield batch
            del batch
        row += used_rows
        used_bytes = int(window.min_sizes[:used_rows].sum())
        window_rows = _estimate_group_rows(attributes, used_rows, used_bytes)


def encode_batch(
    records: Records,
    attributes: BatchAttributes,
    base_offset: int | None = None,
    last_offset_delta: int | None = None,
) -> bytes:
    """Return all records as one batch, whatever `batch_bytes` is.

    A rewritten batch keeps its base offset and last offset delta when the records there are gone.

    Args:
        records: The records.
        attributes: What the batch has in common with others.
        base_offset: None for the offset of the first record.
        last_offset_delta: None for that of the last record.

    Raises:
        ValueError: There are no records (see `empty_batch`), a record cannot be written or does not
            lie within these offsets, or the records are too many for a batch.
    """
    if not len(records):
        raise ValueError("a batch needs records; empty_batch returns one without")
    sizes = measure_records(records, 0, len(records))
    first, last = int(sizes.offsets[0]), int(sizes.offsets[-1])
    base = first if base_offset is None else base_offset
    delta = last - base if last_offset_delta is None else last_offset_delta
    if not 0 <= base <= first:
        raise ValueError(f"base offset {base} for records from offset {first}")
    if not last - base <= delta <= v2.MAX_OFFSET_DELTA:
        raise ValueError(f"offset {last} is not within {delta} of base offset {base}")
    layout = lay_out_batch(sizes, 0, len(sizes), _base_timestamp(sizes, 0, attributes), base)
    _check_sizes(layout.sizes, 0)
    size, limit = int(layout.sizes.sum()), MAX_BATCH_BYTES - v2.HEADER_BYTES
    if len(sizes) > MAX_BATCH_RECORDS or size > limit:
        raise ValueError(
            f"{len(sizes)} records of {size} bytes are too many for one batch; "
            f"the limits are {MAX_BATCH_RECORDS} and {limit}"
        )
    bounds = _batch_bounds(sizes, attributes, base, delta, 0)
    (payload,) = encode_records(records, 0, sizes, [layout])
    return add_batch_header(payload, attributes, attributes.attribute_bits, bounds)


def empty_batch(
    attributes: BatchAttributes, base_offset: int, last_offset_delta: int, max_timestamp: int
) -> bytes:
    """Return the 61 bytes that compaction leaves of a batch whose producer still needs it.

    They keep the offsets, flags, producer and maximum timestamp, and have no base timestamp, codec
    or delete horizon (docs/format.md, 2, "An empty batch").

    Args:
        attributes: Those of the batch.
        base_offset: The batch's base offset.
        last_offset_delta: The batch's last offset delta.
        max_timestamp: The batch's maximum timestamp.

    Raises:
        ValueError: A number is out of bounds.
    """
    check_range("base offset", base_offset, 0, MAX_FIRST_OFFSET)
    check_range("last offset delta", last_offset_delta, 0, v2.MAX_OFFSET_DELTA)
    check_range("maximum timestamp", max_timestamp, NO_TIMESTAMP, MAX_LONG)
    bounds = BatchBounds(
        base_offset, last_offset_delta, NO_TIMESTAMP, max_timestamp, attributes.base_sequence, 0
    )
    return add_batch_header([], attributes, attributes.empty_batch_bits, bounds)


def batch_size_bytes(
    records: Records, attributes: BatchAttributes, base_offset: int | None = None
) -> int:
    """Return the bytes of all records as one batch, uncompressed and with its header.

    Args:
        records: The records.
        attributes: What the batch has in common with others.
        base_offset: None for the offset of the first record.

    Raises:
        ValueError: A record cannot be written.
    """
    sizes = measure_records(records, 0, len(records))
    if not len(sizes):
        return 0
    base = int(sizes.offsets[0]) if base_offset is None else base_offset
    layout = lay_out_batch(sizes, 0, len(sizes), _base_timestamp(sizes, 0, attributes), base)
    return v2.HEADER_BYTES + int(layout.sizes.sum())


@dataclass(frozen=True, slots=True)
class _BatchRows:
    """A batch: rows of a window from `start` to before `end`."""

    start: int
    end: int
    layout: BatchLayout


def _group_batches(attributes: BatchAttributes) -> int:
    return min(max(GROUP_BYTES // max(attributes.batch_bytes, 1), 1), _MAX_GROUP_BATCHES)


def _group_bytes(attributes: BatchAttributes) -> int:
    """Return what the records of a group take at most, unless each is too large for its batch."""
    min_batch_bytes = v2.HEADER_BYTES + MIN_RECORD_BYTES
    return _group_batches(attributes) * max(attributes.batch_bytes, min_batch_bytes)


def _measure_window(
    records: Records, row: int, rows: int, attributes: BatchAttributes
) -> RecordSizes:
    """Measure as many rows from `row` on that the batches of a group surely end among them.

    `rows` is an estimate. There are at least two rows, because a batch that is one record ends
    where the next record starts.
    """
    while True:
        end = min(row + min(max(rows, 2), MAX_BATCH_RECORDS + 1), len(records))
        window = measure_records(records, row, end)
        window_bytes = int(window.min_sizes.sum())
        is_enough = window_bytes > _group_bytes(attributes)
        if is_enough or end == len(records) or end - row > MAX_BATCH_RECORDS:
            return window
        rows = _estimate_group_rows(attributes, end - row, window_bytes)


def _estimate_group_rows(attributes: BatchAttributes, rows: int, min_bytes: int) -> int:
    """Estimate how many rows a group takes, if other rows took at least as many bytes.

    The estimate is above the proportional number by what sizes that differ may add.
    """
    proportional = _group_bytes(attributes) * rows // min_bytes
    return proportional + 2 * isqrt(proportional) + 2


def _split_group(
    window: RecordSizes, attributes: BatchAttributes, row: int, is_last: bool
) -> list[_BatchRows]:
    """Return the batches of a group, at least one, of a window that starts at `row`.

    Only rows that can be in a batch at all, by their smallest sizes, are laid out. A batch that
    ends with the window is left to the next window, unless this one is the last.
    """
    max_bytes = attributes.batch_bytes - v2.HEADER_BYTES
    min_bounds = element_bounds(window.min_sizes)
    batches: list[_BatchRows] = []
    start = 0
    while start < len(window) and len(batches) < _group_batches(attributes):
        base = int(window.offsets[start])
        max_bound = min_bounds[start] + max_bytes
        end = max(int(min_bounds.searchsorted(max_bound, "right")) - 1, start + 1)
        end = min(end, start + MAX_BATCH_RECORDS)
        if int(window.offsets[end - 1]) - base > v2.MAX_OFFSET_DELTA:
            end = int(window.offsets.searchsorted(base + v2.MAX_OFFSET_DELTA, "right"))
        base_timestamp = _base_timestamp(window, start, attributes)
        layout = lay_out_batch(window, start, end, base_timestamp, base)
        fitting = int(layout.sizes.cumsum().searchsorted(max_bytes, "right"))
        count = max(fitting, 1)
        _check_sizes(layout.sizes[:count], row + start)
        if start + count == len(window) and batches and not is_last:
            break
        batches.append(_BatchRows(start, start + count, layout.first(count)))
        start += count
    return batches


def _base_timestamp(sizes: RecordSizes, row: int, attributes: BatchAttributes) -> int:
    horizon_ms = attributes.delete_horizon_ms
    return int(sizes.timestamps[row]) if horizon_ms is None else horizon_ms


def _batch_bounds(
    sizes: RecordSizes, attributes: BatchAttributes, base: int, delta: int, offset_in_write: int
) -> BatchBounds:
    """Return what the header of a batch of these rows says; sequences rise as offsets do."""
    append_time_ms = attributes.append_time_ms
    return BatchBounds(
        base_offset=base,
        last_offset_delta=delta,
        base_timestamp=_base_timestamp(sizes, 0, attributes),
        max_timestamp=int(sizes.timestamps.max()) if append_time_ms is None else append_time_ms,
        base_sequence=increment_sequence(attributes.base_sequence, offset_in_write),
        record_count=len(sizes),
    )


def _check_sizes(sizes: Longs, first_row: int) -> None:
    """Refuse a record that is by itself a larger batch than a reader takes, before it is copied."""
    is_wrong = sizes > MAX_BATCH_BYTES - v2.HEADER_BYTES
    reason = f"the record makes a batch of more than {MAX_BATCH_BYTES} bytes"
    raise_for_row(is_wrong, first_row, reason)
