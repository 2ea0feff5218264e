"""Read one segment's log: complete batches, a few megabytes at a time.

The rule: batches are found by their headers alone, in order of rising offsets. The caller decides
about bytes after the last complete batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from klog.connector.store.readable_store import File
from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.segments.torn_tail import scan_to_damage

CHUNK_BYTES = 4 << 20
"""How much is read at a time: enough batches to decode side by side, and little to keep."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Complete batches of one file.

    Attributes:
        data: Bytes that start with the first batch; part of another one may follow the last.
        position: Where `data` starts in the file.
        batches: The batches, by their positions in `data`.
    """

    data: bytes
    position: int
    batches: v2.Batches

    @property
    def batch_data(self) -> bytes:
        """Return the bytes of the batches alone; `data` itself if nothing follows them."""
        end = int(self.batches.ends[-1])
        return self.data if end == len(self.data) else self.data[:end]

    @property
    def end_position(self) -> int:
        """Return the position in the file after the last batch."""
        return self.position + (int(self.batches.ends[-1]) if len(self.batches) else 0)


def read_chunks(
    file: File,
    start_position: int,
    end_position: int,
    first_offset: int = 0,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Chunk]:
    """Yield the complete batches between two positions.

    It stops if no complete batch fits before `end_position`; the caller compares positions.

    Args:
        file: The open log.
        start_position: Where a batch begins.
        end_position: No byte at or after it is read.
        first_offset: The first batch has this base offset or a higher one.
        chunk_bytes: About how much is read at a time; a larger batch is read at once.

    Raises:
        CorruptRecordError: If bytes are not a batch or offsets do not rise, with the position in
            the file.
    """
    position, size = start_position, chunk_bytes
    while position < end_position:
        data = file.read(position, min(position + size, end_position))
        batches, damage = scan_to_damage(data)
        if len(batches) and int(batches.base_offsets[0]) < first_offset:
            raise CorruptRecordError(
                f"batch at offset {int(batches.base_offsets[0])} after offset {first_offset - 1}",
                position,
            )
        if damage is not None:
            if len(batches):
                yield Chunk(data, position, batches)
            raise CorruptRecordError(damage.reason, position + damage.position) from damage
        if len(batches):
            yield Chunk(data, position, batches)
            position += int(batches.ends[-1])
            first_offset = int(batches.next_offsets[-1])
            size = chunk_bytes
        else:
            size = _batch_bytes(data)
            if position + size > end_position or len(data) < min(size, v2.HEADER_BYTES):
                return
            if size > MAX_BATCH_BYTES:
                raise CorruptRecordError(
                    f"a batch of {size} bytes is refused, the limit is {MAX_BATCH_BYTES}",
                    position,
                )


@contextmanager
def at_file_position(position: int) -> Iterator[None]:
    """Raise a `CorruptRecordError` of a chunk again with its position in the file.

    Args:
        position: Where the chunk starts in the file.
    """
    try:
        yield
    except CorruptRecordError as exc:
        raise CorruptRecordError(exc.reason, position + exc.position) from exc


def _batch_bytes(data: bytes) -> int:
    """Return the size of the batch whose header begins `data`."""
    if len(data) < v2.HEADER_BYTES:
        return v2.HEADER_BYTES
    return v2.FRAME_BYTES + int(np.frombuffer(data, v2.HEADER, 1)["length"][0])
