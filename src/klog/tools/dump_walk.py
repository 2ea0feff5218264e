"""Walk a segment's log to its end, past damaged batches.

A reader of records stops at the first invalid batch; `klog dump` shows it. If the batch's size is
plausible, the walk returns the batch unchanged and goes on after it. Otherwise the rest of the file
cannot be shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klog.connector.segment_chunks import CHUNK_BYTES, Chunk, read_chunks
from klog.connector.store.readable_store import File
from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.segments.torn_tail import is_padding

NEAR_BYTES = 512
"""Bytes read after a fault, as the next one is often near; each later read is twice as long."""
RUN_BYTES = 64 << 10
"""Bytes read for a run of faults."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at a position of a log."""

    position: int
    reason: str


@dataclass(frozen=True, slots=True)
class Rest:
    """Bytes after the last batch, up to the end."""

    position: int
    size_bytes: int


def walk(file: File, end: int) -> Iterator[Chunk | Fault | Rest]:
    """Yield the batches before `end` in chunks, the faults between them, and the rest."""
    position = first_offset = 0
    size = CHUNK_BYTES
    while position < end:
        try:
            chunk = next(read_chunks(file, position, end, first_offset, size), None)
        except CorruptRecordError as exc:
            chunk, reasons = _invalid_batches(file, position, end, exc.reason)
            if chunk is None and _is_padded(file, position, end):
                break
            for start, reason in reasons:
                yield Fault(position + start, reason)
            # The offset of an invalid batch says nothing about the batches after it.
            size, first_offset = NEAR_BYTES, 0
        else:
            size = min(2 * size, CHUNK_BYTES)
            first_offset = int(chunk.batches.next_offsets[-1]) if chunk else 0
        if chunk is None:
            break
        yield chunk
        position = chunk.end_position
    if position < end:
        yield Rest(position, end - position)


def _invalid_batches(
    file: File, position: int, end: int, reason: str
) -> tuple[Chunk | None, list[tuple[int, str]]]:
    """Return the invalid batch at a position and the invalid batches that follow it, as a chunk.

    All of them lie within one read of `RUN_BYTES`, so that a log full of faults is not read again
    for each. The list has the start of each in the chunk with its fault, `reason` for the first.
    The chunk is None if the size of the first batch is implausible.
    """
    data = file.read(position, min(position + RUN_BYTES, end))
    size = _plausible_size(data, 0)
    if size is None or position + size > end:
        return None, [(0, reason)]
    if size > len(data):
        data = file.read(position, position + size)
    starts, reasons, at = [0], [reason], size
    while (size := _plausible_size(data, at)) is not None and at + size <= len(data):
        try:
            scan_batches(data, at, at + size)
        except CorruptRecordError as exc:
            starts.append(at)
            reasons.append(exc.reason)
            at += size
        else:
            break
    begins = np.array(starts, np.int64)
    heads = b"".join(data[start : start + v2.HEADER_BYTES] for start in starts)
    batches = v2.Batches(begins, np.append(begins[1:], at), np.frombuffer(heads, v2.HEADER))
    return Chunk(data[:at], position, batches), list(zip(starts, reasons, strict=True))


def _plausible_size(data: bytes, at: int) -> int | None:
    """Return the size of the batch at `at` in `data`; None if it cannot be one."""
    if len(data) - at < v2.HEADER_BYTES or data[at + v2.MAGIC_AT] < v2.MAGIC:
        return None
    size = v2.FRAME_BYTES + int.from_bytes(data[at + 8 : at + v2.FRAME_BYTES], "big", signed=True)
    return size if v2.HEADER_BYTES <= size <= MAX_BATCH_BYTES else None


def _is_padded(file: File, position: int, end: int) -> bool:
    """Return whether only the zeros of a preallocated file are left."""
    return all(
        is_padding(file.read(begin, min(begin + CHUNK_BYTES, end)))
        for begin in range(position, end, CHUNK_BYTES)
    )
