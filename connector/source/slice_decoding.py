"""Decode one slice: CRC first, then decompress within limits, then columns, in chunks.

The rule: the CRC of every batch that has wanted offsets is checked, whatever the columns. A batch
is decompressed only if its header does not say the columns (`header_records`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import google_crc32c
import numpy as np

from klog.connector.segment_chunks import Chunk, at_file_position
from klog.connector.source.aborted_filter import AbortedTransactionFilter
from klog.connector.source.index_narrowing import narrow
from klog.connector.source.slice_batches import (
    are_wholly_wanted,
    as_in_file,
    damage_of_slice,
    overlapping_batches,
    slice_chunks,
    visible_batches,
)
from klog.connector.source.slice_files import open_slice_file
from klog.connector.source.slices import UNKNOWN, Slice
from klog.connector.store.readable_store import File, ReadableStore
from klog.errors import CorruptRecordError
from klog.logformat.array_types import Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_parts
from klog.logformat.batches.header_records import are_headers_enough, decode_by_headers
from klog.logformat.batches.record_columns import RecordColumns


def decode_slice(
    store: ReadableStore, slice_: Slice, column_names: Collection[str]
) -> Iterator[tuple[RecordColumns, int]]:
    """Yield the decoded records of a slice, a few megabytes at a time.

    Args:
        store: The store of the slice's root.
        slice_: The slice.
        column_names: What to decode, as `decode_parts` names it. Without `offset`, the offsets
            only serve to read on after them.

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


def _decode(
    store: ReadableStore, file: File, planned: Slice, column_names: Collection[str]
) -> Iterator[tuple[RecordColumns, int]]:
    shift = planned.offset_shift
    slice_ = narrow(store, as_in_file(planned), file)
    aborted_filter = AbortedTransactionFilter(slice_, store, file)
    next_offset, crc = slice_.base_offset, 0
    with damage_of_slice(slice_):
        for chunk in slice_chunks(file, slice_):
            if slice_.crc32c != UNKNOWN:
                crc = google_crc32c.extend(crc, chunk.data[: int(chunk.batches.ends[-1])])
                _check_segment_crc(slice_, chunk, crc)
            batches = overlapping_batches(chunk.batches, slice_)
            with at_file_position(chunk.position):
                check_batch_crcs(chunk.data, batches)
            batches = visible_batches(batches, chunk, aborted_filter)
            if not len(batches):
                continue
            is_header_enough = _are_headers_enough(batches, slice_, column_names)
            if is_header_enough.any():
                parts = decode_by_headers(chunk.data, batches, column_names, is_header_enough)
            else:
                parts = decode_parts(chunk.data, batches, column_names, first_offset=next_offset)
            while (columns := _next_part(parts, chunk.position)) is not None:
                next_offset = int(columns.offset[-1]) + 1
                yield _shifted(_bounded(columns, slice_), shift), next_offset + shift


def _are_headers_enough(batches: v2.Batches, slice_: Slice, column_names: Collection[str]) -> Mask:
    """Return which batches are not decompressed; none of those that lie among older formats.

    Of a batch that is wanted in part the offsets are needed, whatever the columns.
    """
    mask = are_headers_enough(batches, column_names)
    if not mask.any() or batches.is_legacy.any():
        return np.zeros(len(batches), np.bool_)
    if "offset" in column_names or (is_whole := are_wholly_wanted(batches, slice_)).all():
        return mask
    return mask & (is_whole | are_headers_enough(batches, {*column_names, "offset"}))


def _check_segment_crc(slice_: Slice, chunk: Chunk, crc: int) -> None:
    """Compare the CRC of a segment with its commit's, once its last batch is read."""
    if chunk.end_position == slice_.end_position and crc != slice_.crc32c:
        raise CorruptRecordError(
            f"its CRC-32C is {crc:08x}, its commit says {slice_.crc32c:08x}: it is not the file "
            "that was committed"
        )


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
