"""The batches of a slice that have wanted offsets: what decoding and counting have in common.

The rule: bytes that are not those of the plan are `SliceChangedError`: the slice has to be planned
again. Damage in the planned bytes is `CorruptRecordError`. Batches that hold no wanted offset need
not be intact.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from klog.connector.decoded_offsets import first_offset_of_message
from klog.connector.segment_chunks import Chunk, at_file_position, read_chunks
from klog.connector.source.aborted_filter import AbortedTransactionFilter
from klog.connector.source.slices import UNKNOWN, Slice, SliceChangedError
from klog.connector.store.readable_store import File
from klog.errors import CorruptRecordError
from klog.logformat.array_types import Mask
from klog.logformat.batches import record_batch as v2


def as_in_file(slice_: Slice) -> Slice:
    """Return a slice whose start and end offset are those of the file, not of the log.

    Args:
        slice_: The slice as planned.
    """
    shift = slice_.offset_shift
    return replace(
        slice_, start_offset=slice_.start_offset - shift, end_offset=slice_.end_offset - shift
    )


@contextmanager
def damage_of_slice(slice_: Slice) -> Iterator[None]:
    """Raise damage again with its file, or as a changed slice if an index cut the slice wrongly.

    Args:
        slice_: The slice that is read.

    Raises:
        SliceChangedError: The slice has to be planned again, without its index.
        CorruptFileError: The bytes are damaged.
    """
    try:
        yield
    except CorruptRecordError as exc:
        if slice_.is_committed and not slice_.is_complete_segment:
            raise SliceChangedError(f"cut by its index, {exc}") from exc
        raise exc.in_file(slice_.path, slice_.name) from exc


def slice_chunks(file: File, slice_: Slice) -> Iterator[Chunk]:
    """Yield the chunks of a slice's byte range, held to what the plan says of its ends.

    Args:
        file: The open file of the slice.
        slice_: The slice; its wanted offsets are as the file has them.

    Raises:
        SliceChangedError: The file holds other bytes than were planned.
        CorruptRecordError: The bytes are damaged.
    """
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


def overlapping_batches(batches: v2.Batches, slice_: Slice) -> v2.Batches:
    """Return the batches that have wanted offsets; others need not even be intact.

    Args:
        batches: Batches of the slice.
        slice_: The slice; its wanted offsets are as the file has them.
    """
    mask = batches.next_offsets > slice_.start_offset
    mask &= batches.min_offsets < slice_.end_offset
    return batches if mask.all() else batches.where(mask)


def visible_batches(
    batches: v2.Batches, chunk: Chunk, aborted_filter: AbortedTransactionFilter
) -> v2.Batches:
    """Return the data batches that are not of an aborted transaction.

    Args:
        batches: Batches of the chunk that have wanted offsets.
        chunk: The chunk, whose other batches may be markers.
        aborted_filter: The filter of the slice.
    """
    mask = ~batches.is_control & (batches.headers["count"] != 0)
    mask &= ~aborted_filter.aborted(batches, chunk)
    return batches if mask.all() else batches.where(mask)


def are_wholly_wanted(batches: v2.Batches, slice_: Slice) -> Mask:
    """Return which batches have wanted offsets only.

    Args:
        batches: Batches of the slice.
        slice_: The slice; its wanted offsets are as the file has them.
    """
    mask: Mask = batches.min_offsets >= slice_.start_offset
    mask &= batches.next_offsets <= slice_.end_offset
    return mask


def _first_offset(chunk: Chunk) -> int:
    """Return the first offset of a chunk, as the plan has it: a wrapper is opened for it."""
    batches = chunk.batches
    if not batches.is_legacy[0]:
        return int(batches.base_offsets[0])
    with at_file_position(chunk.position):
        return first_offset_of_message(chunk.data[int(batches.starts[0]) : int(batches.ends[0])])
