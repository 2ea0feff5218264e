"""Walk a segment's log to its end, past what is wrong in it.

A reader of records stops at the first batch that cannot be; `klog dump` is there to show it. So
where a batch has a size that can be, it is shown as it stands and the walk goes on behind it; where
it has not, the rest of the file is nothing that can be shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klog.connector.log.segment import CHUNK_BYTES, Chunk, chunks
from klog.connector.store.files import File
from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat import batch as v2
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.recovery import is_padding

NEAR_BYTES = 4096
"""How much is read behind a fault: where one is, the next is near."""


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
    size, stop = CHUNK_BYTES, end
    while position < end:
        try:
            chunk = next(chunks(file, position, stop, first_offset, size), None)
            size, stop, odd = CHUNK_BYTES, end, False
        except (CorruptRecordError, UnsupportedFormatError) as exc:
            if (exc.position or 0) > position:
                stop = exc.position or end  # What is good before it comes first.
                continue
            chunk = _as_it_stands(file, position, end)
            if chunk is not None or not _is_padded(file, position, end):
                yield Fault(position, exc.reason)
            size, stop, odd = NEAR_BYTES, end, True
        if chunk is None:
            break
        yield chunk
        position = chunk.end
        # What an odd batch says of its offset is no measure for those behind it.
        first_offset = 0 if odd else int(chunk.batches.next_offsets[-1])
    if position < end:
        yield Rest(position, end - position)


def _as_it_stands(file: File, position: int, end: int) -> Chunk | None:
    """Give the batch at a position, whatever it says; None if its size cannot be."""
    head = file.read(position, position + v2.HEADER_BYTES)
    if len(head) < v2.HEADER_BYTES:
        return None
    header = np.frombuffer(head, v2.HEADER, 1)
    size = v2.FRAME_BYTES + int(header["length"][0])
    believable = int(header["magic"][0]) >= 2 and v2.HEADER_BYTES <= size <= MAX_BATCH_BYTES
    if not believable or position + size > end:
        return None
    batches = v2.Batches(np.zeros(1, np.int64), np.full(1, size, np.int64), header)
    return Chunk(file.read(position, position + size), position, batches)


def _is_padded(file: File, position: int, end: int) -> bool:
    """Tell whether only the zeros of a preallocated file are left."""
    return all(
        is_padding(file.read(begin, min(begin + CHUNK_BYTES, end)))
        for begin in range(position, end, CHUNK_BYTES)
    )
