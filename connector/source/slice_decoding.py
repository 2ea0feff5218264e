"""Decode one slice: CRC first, then decompress within limits, then columns, in chunks.

The rule: bytes that are not those of the plan are `SliceChangedError`: the slice has to be planned
again. Damage in the planned bytes is `CorruptRecordError`. Batches that hold no wanted offset need
not be intact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import google_crc32c
import numpy as np

from klog.connector.compiled_kernels import get_legacy_kernels
from klog.connector.decoded_offsets import first_offset_of_message
from klog.connector.segment_chunks import (
    Chunk,
    at_file_position,
    read_chunks,
)
from klog.connector.source.aborted_filter import AbortedTransactionFilter
from klog.connector.source.index_narrowing import narrow
from klog.connector.source.slice_files import open_slice_file
from klog.connector.source.slices import UNKNOWN, Slice, SliceChangedError
from klog.connector.store.readable_store import File, ReadableStore
from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_parts
from klog.logformat.batches.record_columns import RecordColumns


def decode_slice(
    store: ReadableStore, slice_: Slice, column_names: Collection[str]
) -> Iterator[tuple[RecordColumns, int]]:
    """Yield the decoded records of a slice, a few megabytes at a time.

    Args:
        store: The store of the slice's root.
        slice_: The slice.
        column_names: What to decode, as `decode_parts` names it.

    Yields:
        RecordColumns, with offsets of the log, and the offset after them.

    Raises:
        SliceChangedError: If the file holds other bytes than were planned.
        FileNotFoundError: If a committed file has gone.
        CorruptFileError: If the bytes are damaged.
    """
    file = open_slice_file(store, slice_)
    try:
        yield from _decode(store, file, slice_, column_names)
    finally:
        file.close()


def as_in_file(slice_: Slice) -> Slice:
    """Return a slice whose start and end offset are those of the file, not of the log.

    Args:
        slice_: The slice as planned.
    """
    shift = slice_.offset_shift
    return replace(
        slice_, start_offset=slice_.start_offset - shift, end_offset=slice_.end_offset - shift
    )


def _decode(
    store: ReadableStore, file: File, planned: Slice, column_names: Collection[str]
) -> Iterator[tuple[RecordColumns, int]]:
    shift = planned.offset_shift
    slice_ = narrow(store, as_in_file(planned), file)
    aborted_filter = AbortedTransactionFilter(slice_, store, file)
    next_offset, crc = slice_.base_offset, 0
    try:
        for chunk in _slice_chunks(file, slice_):
            if slice_.crc32c != UNKNOWN:
                crc = google_crc32c.extend(crc, chunk.data[: int(chunk.batches.ends[-1])])
                _check_segment_crc(slice_, chunk, crc)
            batches = _overlapping(chunk.batches, slice_)
            kernels = get_legacy_kernels(batches, next_offset)
            with at_file_position(chunk.position):
                check_batch_crcs(chunk.data, batches, kernels)
            batches = _visible(batches, chunk, aborted_filter)
            if not len(batches):
                continue
            parts = decode_parts(
                chunk.data, batches, column_names, first_offset=next_offset, kernels=kernels
            )
            while (columns := _next_part(parts, chunk.position)) is not None:
                next_offset = int(columns.offset[-1]) + 1
                yield _shifted(_bounded(columns, slice_), shift), next_offset + shift
    except CorruptRecordError as exc:
        if slice_.is_committed and not slice_.is_complete_segment:
            raise SliceChangedError(f"cut by its index, {exc}") from exc
        raise exc.in_file(slice_.path, slice_.name) from exc


def _slice_chunks(file: File, slice_: Slice) -> Iterator[Chunk]:
    """Yield the chunks of a slice's byte range, held to what the plan says of its ends."""
    position, expected = slice_.start_position, slice_.first_offset
    is_unconfirmed = slice_.is_committed and slice_.start_position > 0
    for chunk in read_chunks(file, position, slice_.end_position, slice_.base_offset):
        if expected != UNKNOWN and (first_offset := _first_offset(chunk)) != expected:
            raise SliceChangedError(f"offset {first_offset} where {expected} was planned")
        if is_unconfirmed and int(chunk.batches.base_offsets[0]) >= slice_.start_offset:
            raise SliceChangedError("its index leads past the first offset wanted")
        expected, is_unconfirmed, position = UNKNOWN, False, chunk.end_position
        next_offset = int(chunk.batches.next_offsets[-1])
        if next_offset > slice_.limit_offset:
            raise CorruptRecordError(
                f"offset {next_offset - 1} lies after the segment's last offset, "
                f"{slice_.limit_offset - 1}",
                chunk.position + int(chunk.batches.starts[-1]),
            )
        yield chunk
        if next_offset >= slice_.end_offset:
            return
    if slice_.is_committed and slice_.end_position < slice_.segment_size_bytes:
        raise SliceChangedError("its index leads before the end of what is wanted")
    if position < slice_.end_position:
        raise CorruptRecordError("the file ends in the middle of a batch", position)


def _first_offset(chunk: Chunk) -> int:
    """Return the first offset of a chunk, as the plan has it: a wrapper is opened for it."""
    batches = chunk.batches
    if not batches.is_legacy[0]:
        return int(batches.base_offsets[0])
    with at_file_position(chunk.position):
        return first_offset_of_message(chunk.data[int(batches.starts[0]) : int(batches.ends[0])])


def _check_segment_crc(slice_: Slice, chunk: Chunk, crc: int) -> None:
    """Compare the CRC of a segment with its commit's, once its last batch is read."""
    if chunk.end_position == slice_.end_position and crc != slice_.crc32c:
        raise CorruptRecordError(
            f"its CRC-32C is {crc:08x}, its commit says {slice_.crc32c:08x}: it is not the file "
            "that was committed"
        )


def _overlapping(batches: v2.Batches, slice_: Slice) -> v2.Batches:
    """Keep the batches that have wanted offsets; others need not even be intact."""
    mask = batches.next_offsets > slice_.start_offset
    mask &= batches.min_offsets < slice_.end_offset
    return batches if mask.all() else batches.where(mask)


def _visible(
    batches: v2.Batches, chunk: Chunk, aborted_filter: AbortedTransactionFilter
) -> v2.Batches:
    """Keep the data batches that are not of an aborted transaction."""
    mask = ~batches.is_control & (batches.headers["count"] != 0)
    mask &= ~aborted_filter.aborted(batches, chunk)
    return batches if mask.all() else batches.where(mask)


def _next_part(parts: Iterator[RecordColumns], position: int) -> RecordColumns | None:
    """Take the next part; an error in it gets its position in the file."""
    with at_file_position(position):
        return next(parts, None)


def _bounded(columns: RecordColumns, slice_: Slice) -> RecordColumns:
    """Drop the records of the first and last batch that lie outside the wanted offsets."""
    offsets = columns.offset
    first = int(np.searchsorted(offsets, slice_.start_offset, "left"))
    end = int(np.searchsorted(offsets, slice_.end_offset, "left"))
    if first == 0 and end == len(offsets):
        return columns
    return columns.slice(first, end)


def _shifted(columns: RecordColumns, shift: int) -> RecordColumns:
    return replace(columns, offset=columns.offset + shift) if shift else columns
