"""A committed segment from its first byte to its last, held to what its commit says of it.

The rule: nothing of the last chunk is given before the whole file is known to be the one that was
committed: its size, its CRC-32C, batches that are intact and lie between the entry's offsets. What
is wrong is told with the file, the position and the offset of the log from which on it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import google_crc32c
import numpy as np

from klog.connector.log.entries import Entry, file_bytes
from klog.connector.log.lookup import file_partition, first_in_file, path_of
from klog.connector.log.root import KlogRoot
from klog.connector.log.segment import CHUNK_BYTES, Chunk, chunks, located
from klog.connector.store.files import File
from klog.errors import CorruptRecordError
from klog.logformat import batch as v2


def whole_segment(root: KlogRoot, entry: Entry, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Read a segment in chunks of whole, intact batches; offsets are as the file says them.

    Raises `CorruptFileError`, for a file that is missing too.
    """
    path, reading = path_of(root, entry), _Reading(entry)
    try:
        file = root.store.open(path, file_bytes(entry))
        try:
            yield from reading.chunks(file, chunk_bytes)
        finally:
            file.close()
    except FileNotFoundError as exc:
        reason = (
            "the file is missing, and the topic's log named it. If this has run for longer than "
            "vacuum's grace, run it again"
        )
        raise CorruptRecordError(reason).in_file(path, file_partition(entry)) from exc
    except CorruptRecordError as exc:
        offset = reading.reached + entry["offset_shift"]
        reason = f"{exc.reason}, from offset {offset} on"
        raise CorruptRecordError(reason, exc.position).in_file(path, file_partition(entry)) from exc


class _Reading:
    """How far a segment is known to be sound: up to offset `reached`, as the file says it."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self.reached = first_in_file(entry)

    def chunks(self, file: File, chunk_bytes: int) -> Iterator[Chunk]:
        size, crc, position = self._entry["size_bytes"], 0, 0
        if file.size_bytes != file_bytes(self._entry):
            raise CorruptRecordError(
                f"it has {file.size_bytes} bytes, its commit says {file_bytes(self._entry)}",
                min(file.size_bytes, size),
            )
        for chunk in chunks(file, 0, size, self.reached, chunk_bytes):
            self._check(chunk)
            whole = np.frombuffer(chunk.data, np.uint8, int(chunk.batches.ends[-1]))
            crc = google_crc32c.extend(crc, whole)  # Not a slice of the bytes, which is a copy.
            position = chunk.end
            if position == size:
                self._check_crc(crc)
            yield chunk
        if position < size:
            raise CorruptRecordError("the file ends in the middle of a batch", position)

    def _check(self, chunk: Chunk) -> None:
        batches = chunk.batches
        with located(chunk.position):
            try:
                v2.check_crcs(chunk.data, batches)
                self._check_limit(batches)
            except CorruptRecordError as exc:
                good = int(np.searchsorted(batches.starts, exc.position))
                if good:
                    self.reached = int(batches.next_offsets[good - 1])
                raise
        self.reached = int(batches.next_offsets[-1])

    def _check_limit(self, batches: v2.Batches) -> None:
        limit = self._entry["next_offset"] - self._entry["offset_shift"]
        beyond = np.flatnonzero(batches.next_offsets > limit)
        if len(beyond):
            raise CorruptRecordError(
                f"a batch reaches behind the segment's last offset, {limit - 1} as the file has it",
                int(batches.starts[beyond[0]]),
            )

    def _check_crc(self, crc: int) -> None:
        if crc != self._entry["crc32c"]:
            self.reached = first_in_file(self._entry)
            raise CorruptRecordError(
                f"its CRC-32C is {crc:08x}, its commit says {self._entry['crc32c']:08x}: it is not "
                "the file that was committed"
            )
