"""Read a committed segment from first byte to last, and check it against its commit.

The rule: the last chunk is given only after the whole file is known to be the committed one: its
size, its CRC-32C, intact batches, and all of them between the entry's offsets. An error names the
file, the position, and the offset of the log from which the data is not known to be good.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import google_crc32c
import numpy as np

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_entries import (
    SegmentEntry,
    file_size_bytes,
    first_offset_in_file,
    partition_directory_of,
)
from klog.connector.segment_chunks import CHUNK_BYTES, Chunk, at_file_position, read_chunks
from klog.connector.store.readable_store import File
from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs


def read_verified(
    root: KlogRoot, entry: SegmentEntry, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """Read a segment in chunks of complete, intact batches.

    Args:
        root: The root of the segment.
        entry: The entry of the segment.
        chunk_bytes: The size of a chunk, about.

    Yields:
        The chunks in order; their offsets are those in the file.

    Raises:
        CorruptFileError: The segment is missing, or is not what its entry says.
    """
    verifier = _Verifier(entry)
    with _open(root, entry, verifier) as file:
        yield from verifier.chunks(file, chunk_bytes)


def read_verified_backwards(
    root: KlogRoot, entry: SegmentEntry, max_held_bytes: int, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """Read a whole segment as `read_verified` does, and then give its chunks, the last one first.

    Args:
        root: The root of the segment.
        entry: The entry of the segment.
        max_held_bytes: A larger segment is not held in memory but read twice: once to verify it,
            and once to give its chunks.
        chunk_bytes: The size of a chunk, about.

    Yields:
        The chunks, last one first.

    Raises:
        CorruptFileError: As `read_verified`.
    """
    if entry["size_bytes"] <= max_held_bytes:
        chunks = list(read_verified(root, entry, chunk_bytes))
        while chunks:
            yield chunks.pop()
        return
    ranges, verifier = [], _Verifier(entry)
    next_offset = verifier.next_offset
    for chunk in read_verified(root, entry, chunk_bytes):
        crc = _headers_crc(chunk.batches)
        ranges.append(_VerifiedRange(chunk.position, chunk.end_position, next_offset, crc))
        next_offset = int(chunk.batches.next_offsets[-1])
    with _open(root, entry, verifier) as file:
        while ranges:
            yield verifier.read_again(file, ranges.pop())


@dataclass(frozen=True, slots=True)
class _VerifiedRange:
    """The positions of a chunk, its first offset in the file, and the CRC-32C of its headers."""

    start: int
    end: int
    next_offset: int
    headers_crc: int


@contextmanager
def _open(root: KlogRoot, entry: SegmentEntry, verifier: _Verifier) -> Iterator[File]:
    """Open a segment; errors name the file, the position and the offset."""
    path = root.segment_path(entry)
    try:
        file = root.store.open(path, file_size_bytes(entry))
        try:
            yield file
        finally:
            file.close()
    except FileNotFoundError as exc:
        reason = (
            "the file is missing, and the topic's log named it. If this has run for longer than "
            "vacuum's grace, run it again"
        )
        raise CorruptRecordError(reason).in_file(path, partition_directory_of(entry)) from exc
    except CorruptRecordError as exc:
        offset = verifier.next_offset + entry["offset_shift"]
        reason = f"{exc.reason}, from offset {offset} on"
        raise CorruptRecordError(reason, exc.position).in_file(
            path, partition_directory_of(entry)
        ) from exc


class _Verifier:
    """Checks the chunks of a segment; the data is good before `next_offset`, as the file says."""

    def __init__(self, entry: SegmentEntry) -> None:
        self._entry = entry
        self.next_offset = first_offset_in_file(entry)

    def chunks(self, file: File, chunk_bytes: int) -> Iterator[Chunk]:
        size_bytes, crc, position = self._entry["size_bytes"], 0, 0
        if file.size_bytes != file_size_bytes(self._entry):
            raise CorruptRecordError(
                f"it has {file.size_bytes} bytes, its commit says {file_size_bytes(self._entry)}",
                min(file.size_bytes, size_bytes),
            )
        for chunk in read_chunks(file, 0, size_bytes, self.next_offset, chunk_bytes):
            self._check(chunk)
            # `frombuffer`, not a slice: a slice of bytes is a copy.
            batch_bytes = np.frombuffer(chunk.data, np.uint8, int(chunk.batches.ends[-1]))
            crc = google_crc32c.extend(crc, batch_bytes)
            position = chunk.end_position
            if position == size_bytes:
                self._check_crc(crc)
            yield chunk
        if position < size_bytes:
            raise CorruptRecordError("the file ends in the middle of a batch", position)

    def read_again(self, file: File, verified: _VerifiedRange) -> Chunk:
        """Read a verified chunk again; the headers have all fields that no batch's CRC covers."""
        self.next_offset = verified.next_offset
        start, end = verified.start, verified.end
        chunk = next(read_chunks(file, start, end, chunk_bytes=end - start), None)
        if (
            chunk is None
            or chunk.end_position != end
            or _headers_crc(chunk.batches) != verified.headers_crc
        ):
            raise CorruptRecordError("the file has changed since it was verified", start)
        self._check(chunk)
        return chunk

    def _check(self, chunk: Chunk) -> None:
        batches = chunk.batches
        with at_file_position(chunk.position):
            try:
                check_batch_crcs(chunk.data, batches)
                self._check_limit(batches)
            except CorruptRecordError as exc:
                good_count = int(np.searchsorted(batches.starts, exc.position))
                if good_count:
                    self.next_offset = int(batches.next_offsets[good_count - 1])
                raise
        self.next_offset = int(batches.next_offsets[-1])

    def _check_limit(self, batches: v2.Batches) -> None:
        limit = self._entry["next_offset"] - self._entry["offset_shift"]
        beyond = np.flatnonzero(batches.next_offsets > limit)
        if len(beyond):
            raise CorruptRecordError(
                f"a batch ends after the segment's last offset, {limit - 1} as the file has it",
                int(batches.starts[beyond[0]]),
            )

    def _check_crc(self, crc: int) -> None:
        if crc != self._entry["crc32c"]:
            self.next_offset = first_offset_in_file(self._entry)
            raise CorruptRecordError(
                f"its CRC-32C is {crc:08x}, its commit says {self._entry['crc32c']:08x}: it is not "
                "the file that was committed"
            )


def _headers_crc(batches: v2.Batches) -> int:
    crc: int = google_crc32c.value(batches.headers.tobytes())
    return crc
