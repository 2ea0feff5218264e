"""Walk one segment's log: batches a few megabytes at a time, positions by offset and by time.

The offset index is a hint that has to prove itself: the batch at the position it gives must be
whole and hold the offset the entry speaks of, else the index is replaced in memory by one made from
the log's own headers, as a broker rebuilds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from klog.connector.log.beside import read_beside
from klog.connector.log.directory import Segment
from klog.connector.store.files import File, Store
from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.columnar import decode
from klog.logformat.index import MAX_RELATIVE_OFFSET
from klog.logformat.indexing import appends_of, no_entries
from klog.logformat.offset_index import OffsetIndex, read_offset_index
from klog.logformat.segment_recovery import scan_to_fault
from klog.logformat.time_index import TimeIndex, read_time_index

CHUNK_BYTES = 4 << 20
"""How much is read at a time: enough batches to decode side by side, little enough to hold."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole batches that lie in `data`; `position` is that of `data[0]` in the file."""

    data: bytes
    position: int
    batches: v2.Batches

    @property
    def end(self) -> int:
        """Give the position in the file behind the last batch."""
        return self.position + (int(self.batches.ends[-1]) if len(self.batches) else 0)


def chunks(
    file: File, begin: int, end: int, first_offset: int = 0, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """Read the batches between two positions, whole batches in chunks of about `chunk_bytes`.

    Stops where no whole batch fits before `end`; the caller compares positions. Raises
    `CorruptRecordError` (position in the file) at what is no batch, and where offsets do not rise
    or begin below `first_offset`.
    """
    position, wanted = begin, chunk_bytes
    while position < end:
        data = file.read(position, min(position + wanted, end))
        batches, fault = scan_to_fault(data)
        if len(batches) and int(batches.base_offsets[0]) < first_offset:
            raise CorruptRecordError(
                f"batch at offset {int(batches.base_offsets[0])} behind offset {first_offset - 1}",
                position,
            )
        if fault is not None:
            if len(batches):
                yield Chunk(data, position, batches)
            raise CorruptRecordError(fault.reason, position + fault.position) from fault
        if len(batches):
            yield Chunk(data, position, batches)
            position += int(batches.ends[-1])
            first_offset = int(batches.next_offsets[-1])
            wanted = chunk_bytes
        else:
            wanted = _length_at(data)
            if position + wanted > end or len(data) < min(wanted, v2.HEADER_BYTES):
                return
            if wanted > MAX_BATCH_BYTES:
                raise CorruptRecordError(
                    f"a batch of {wanted} bytes is refused, the limit is {MAX_BATCH_BYTES}",
                    position,
                )


def first_offset(entry: bytes) -> int:
    """Give the first offset of one whole message of format v0 or v1, once its CRC holds."""
    batches = v2.scan(entry, 0, len(entry))
    v2.check_crcs(entry, batches)
    return int(decode(entry, batches, ()).offset[0])


@contextmanager
def located(position: int) -> Iterator[None]:
    """Restate what is wrong in a chunk that begins at `position` by its position in the file."""
    try:
        yield
    except CorruptRecordError as exc:
        raise CorruptRecordError(exc.reason, position + exc.position) from exc


def _length_at(data: bytes) -> int:
    """Give the whole size of the batch whose header begins `data`."""
    if len(data) < v2.HEADER_BYTES:
        return v2.HEADER_BYTES
    return v2.FRAME_BYTES + int(np.frombuffer(data, v2.HEADER, 1)["length"][0])


class SegmentReader:
    """One open segment. Indexes are read at first use; `close` gives the file back."""

    def __init__(self, store: Store, segment: Segment) -> None:
        """Open the segment's log.

        Raises `FileNotFoundError` if it is gone, or if its name belongs to another file by now: the
        cleaner merges segments, so the offset bounds that were listed with it no longer hold.
        """
        self.segment = segment
        self.file = store.open(segment.log.path)
        if segment.log.identity not in ("", self.file.identity):
            self.file.close()
            raise FileNotFoundError(f"{segment.log.path} was replaced after it was listed")
        self._store = store
        self._index: OffsetIndex | None = None

    def close(self) -> None:
        """Close the log."""
        self.file.close()

    def position_before(self, offset: int) -> int:
        """Give a position from which a scan meets every batch that reaches `offset` or beyond."""
        if offset <= self.segment.base_offset:
            return 0
        position = self.index().position_before(offset)
        if position and not self.is_batch(position, offset):
            self._index = self._rebuilt()
            position = self._index.position_before(offset)
        return position

    def cut_at(self, position: int) -> int | None:
        """Give the first offset of the batch that begins at `position`; None if none does.

        A message of format v0 or v1 is read for it: a wrapper's offset is that of its last message.
        """
        header = self.header(position)
        if header is None:
            return None
        if int(header["magic"]) == v2.MAGIC:
            return int(header["base_offset"])
        size = v2.FRAME_BYTES + int(header["length"])
        if size > MAX_BATCH_BYTES:
            return None
        try:
            return first_offset(self.file.read(position, position + size))
        except CorruptRecordError:
            return None

    def is_batch(self, position: int, reached: int) -> bool:
        """Tell whether a batch begins at `position` whose offset is at most `reached`."""
        header = self.header(position)
        return header is not None and int(header["base_offset"]) <= reached

    def index(self) -> OffsetIndex:
        """Give the offset index: the file's if it is well-formed, else one made from the log."""
        if self._index is None:
            self._index = self._read_index() or self._rebuilt()
        return self._index

    def replace_index(self) -> OffsetIndex:
        """Give up the index file: it does not fit its log."""
        self._index = self._rebuilt()
        return self._index

    def time_index(self) -> TimeIndex | None:
        """Give the time index, None where it is missing or malformed."""
        entry = self.segment.indexes.get("timeindex")
        if entry is None:
            return None
        data = read_beside(self._store, entry.path)
        return None if data is None else read_time_index(data, self.segment.base_offset)

    def _read_index(self) -> OffsetIndex | None:
        entry = self.segment.indexes.get("index")
        if entry is None:
            return None
        data = read_beside(self._store, entry.path)
        if data is None:
            return None
        found = read_offset_index(data, self.segment.base_offset, self.file.size_bytes)
        if found is None or not len(found.positions):
            return found if found is not None and entry.size_bytes == 0 else None
        # An index that was cut, or belongs to other bytes, betrays itself at its last entry.
        last = int(found.positions[-1])
        return found if self.is_batch(last, int(found.offsets[-1])) else None

    def _rebuilt(self) -> OffsetIndex:
        """Index the log by its headers as a broker's recovery does, as far as it is readable."""
        indexes = no_entries(self.segment.base_offset)
        try:
            for chunk in chunks(self.file, 0, self.file.size_bytes):
                indexes = indexes.with_appends(appends_of(chunk.batches))
        except CorruptRecordError:
            pass
        return indexes.offset_index

    def batch_end(self, position: int) -> tuple[int, int] | None:
        """Return the next offset and the position after the v2 batch at `position`; else None."""
        header = self.header(position)
        if header is None or int(header["magic"]) != v2.MAGIC:
            return None
        next_offset = int(header["base_offset"]) + int(header["last_offset_delta"]) + 1
        return next_offset, position + v2.FRAME_BYTES + int(header["length"])

    def header(self, position: int) -> v2.Headers | None:
        """Give the header of the batch that begins at `position`; None if none of this segment."""
        data = self.file.read(position, position + v2.HEADER_BYTES)
        header = v2.header_of(data)
        if header is None:
            return None
        base = int(header["base_offset"]) - self.segment.base_offset
        behind = position + v2.FRAME_BYTES + int(header["length"])
        if not 0 <= base <= MAX_RELATIVE_OFFSET or behind > self.file.size_bytes:
            return None
        return header
