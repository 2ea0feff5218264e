"""A committed segment from its first byte to its last, held to what its commit says of it.

The rule: nothing of the last chunk is given before the whole file is known to be the one that was
committed: its size, its CRC-32C, batches that are intact and lie between the entry's offsets. What
is wrong is told with the file, the position and the offset of the log from which on it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
    reading = _Reading(entry)
    with _opened(root, entry, reading) as file:
        yield from reading.chunks(file, chunk_bytes)


def whole_segment_backwards(
    root: KlogRoot, entry: Entry, held_bytes: int, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """Read a segment as `whole_segment` does, all of it, and only then give the chunks, last first.

    One of more than `held_bytes` is read twice: to be checked, and for what is given.
    """
    if entry["size_bytes"] <= held_bytes:
        held = list(whole_segment(root, entry, chunk_bytes))
        while held:
            yield held.pop()
        return
    places, reading = [], _Reading(entry)
    reached = reading.reached
    for chunk in whole_segment(root, entry, chunk_bytes):
        places.append((chunk.position, chunk.end, reached, _headers_crc(chunk.batches)))
        reached = int(chunk.batches.next_offsets[-1])
    with _opened(root, entry, reading) as file:
        while places:
            yield reading.chunk(file, *places.pop())


@contextmanager
def _opened(root: KlogRoot, entry: Entry, reading: _Reading) -> Iterator[File]:
    """Open a segment, and tell what is wrong with it by file, position and offset."""
    path = path_of(root, entry)
    try:
        file = root.store.open(path, file_bytes(entry))
        try:
            yield file
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

    def chunk(self, file: File, begin: int, end: int, reached: int, headers_crc: int) -> Chunk:
        """Read again what was one chunk; what of a batch is under no CRC, its header has."""
        self.reached = reached
        found = next(chunks(file, begin, end, chunk_bytes=end - begin), None)
        if found is None or found.end != end or _headers_crc(found.batches) != headers_crc:
            raise CorruptRecordError("the file is not what it was a moment ago", begin)
        self._check(found)
        return found

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


def _headers_crc(batches: v2.Batches) -> int:
    found: int = google_crc32c.value(batches.headers.tobytes())
    return found
