"""Walk a segment's log to its end, past what is wrong in it.

A reader of records stops at the first batch that cannot be; `klog dump` is there to show it. So
where a batch has a size that can be, it is shown as it stands and the walk goes on behind it; where
it has not, the rest of the file is nothing that can be shown.
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
"""How much is read behind a fault: where one is, the next is near. From there it doubles."""
RUN_BYTES = 64 << 10
"""How much is read for a run of faults."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at a position of a log."""

    position: int
    reason: str


@dataclass(frozen=True, slots=True)
class Rest:
    """Bytes behind the last batch, up to the end."""

    position: int
    size_bytes: int


def walk(file: File, end: int) -> Iterator[Chunk | Fault | Rest]:
    """Give the batches before `end` in chunks, with what is wrong between them, and the rest."""
    position = first_offset = 0
    size = CHUNK_BYTES
    while position < end:
        try:
            chunk = next(read_chunks(file, position, end, first_offset, size), None)
        except CorruptRecordError as exc:
            chunk, reasons = _as_they_stand(file, position, end, exc.reason)
            if chunk is None and _is_padded(file, position, end):
                break
            for start, reason in reasons:
                yield Fault(position + start, reason)
            # What an odd batch says of its offset is no measure for those behind it.
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


def _as_they_stand(
    file: File, position: int, end: int, reason: str
) -> tuple[Chunk | None, list[tuple[int, str]]]:
    """Give the batch at a position, whatever it says, and those behind it that cannot be either.

    All of them lie within one read of `RUN_BYTES`, so that a log full of faults is not read anew
    for each. With the start of each in the chunk comes what is wrong there, `reason` at the first.
    The chunk is None if the size of the first cannot be.
    """
    data = file.read(position, min(position + RUN_BYTES, end))
    size = _believable_size(data, 0)
    if size is None or position + size > end:
        return None, [(0, reason)]
    if size > len(data):
        data = file.read(position, position + size)
    starts, reasons, at = [0], [reason], size
    while (size := _believable_size(data, at)) is not None and at + size <= len(data):
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


def _believable_size(data: bytes, at: int) -> int | None:
    """Give the size of the batch that begins there in `data`; None if it cannot be one."""
    if len(data) - at < v2.HEADER_BYTES or data[at + v2.MAGIC_AT] < v2.MAGIC:
        return None
    size = v2.FRAME_BYTES + int.from_bytes(data[at + 8 : at + v2.FRAME_BYTES], "big", signed=True)
    return size if v2.HEADER_BYTES <= size <= MAX_BATCH_BYTES else None


def _is_padded(file: File, position: int, end: int) -> bool:
    """Tell whether only the zeros of a preallocated file are left."""
    return all(
        is_padding(file.read(begin, min(begin + CHUNK_BYTES, end)))
        for begin in range(position, end, CHUNK_BYTES)
    )
