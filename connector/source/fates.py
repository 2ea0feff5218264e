"""Which batches of a slice belong to aborted transactions: the marker that follows decides.

Most markers lie in the same chunk as their data. A transaction that is still undecided there is
followed forward through the headers, in this segment and the next ones, up to the log end: what
begins below the last stable offset is decided, but its marker may lie behind it. What a `.txnindex`
calls aborted is believed without looking. A commit says of a segment all that was aborted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from klog.connector.log.directory import list_consistently, read_directory
from klog.connector.log.segment import Chunk, chunks, located
from klog.connector.source.slices import ChangedError, Slice
from klog.connector.store.files import File, Store
from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat import transactions
from klog.logformat.index import Mask

_AHEAD_BYTES = 256 << 10
"""Most transactions end soon: what is read ahead is read again when its turn comes."""


class Fates:
    """What became of the transactions in one slice; remembers the markers it has met ahead."""

    def __init__(self, piece: Slice, store: Store, file: File) -> None:
        """Take the slice, and the open file it lies in."""
        self._slice = piece
        self._store = store
        self._file = file
        self._aborted = transactions.rows_of(piece["aborted"])
        self._ahead: dict[int, tuple[int, int]] = {}

    def aborted(self, batches: v2.Batches, chunk: Chunk) -> Mask:
        """Tell which of these batches of a chunk, the wanted ones, are data of an aborted one."""
        if not self._slice["committed_only"]:
            return np.zeros(len(batches), np.bool_)
        mask = transactions.aborted_by_index(batches, self._aborted)
        if self._slice["markers_until"] < 0:
            return mask
        unsure = batches.where(~mask)
        if not transactions.is_transactional_data(unsure).any():
            return mask
        decided = self._markers(chunk, self._slice["path"])
        open_ids = transactions.undecided(unsure, decided)
        ahead = self._markers_ahead(open_ids, chunk)
        return mask | transactions.aborted(batches, decided, ahead)

    def _markers(self, chunk: Chunk, path: str) -> list[tuple[int, int, int]]:
        """Give the transaction markers in a chunk of a segment, once their CRCs hold."""
        control = chunk.batches.where(transactions.is_control(chunk.batches))
        control = control.where(control.next_offsets > self._slice["start_offset"])
        try:
            with located(chunk.position):
                v2.check_crcs(chunk.data, control)
                return transactions.markers(chunk.data, control)
        except CorruptRecordError as exc:
            raise self._unreadable(exc, path) from exc

    def _unreadable(self, exc: CorruptRecordError, path: str) -> CorruptRecordError:
        reason = f"{exc.reason}, and what became of a transaction stands there or behind"
        topic_partition = f"{self._slice['topic']}-{self._slice['partition']}"
        return CorruptRecordError(reason, exc.position).in_file(path, topic_partition)

    def _markers_ahead(self, producers: set[int], chunk: Chunk) -> dict[int, int]:
        """Give the kind of the first marker of each producer id behind a chunk."""
        behind = int(chunk.batches.next_offsets[-1])
        unknown = {p for p in producers if self._ahead.get(p, (-1, 0))[0] < behind}
        for markers in self._scan(chunk.end) if unknown else ():
            for offset, producer, kind in markers:
                if producer in unknown and offset >= behind:
                    self._ahead[producer] = (offset, kind)
                    unknown.discard(producer)
            if not unknown:
                break
        if unknown and not self._is_in_place():
            raise ChangedError("the log was cleaned, and with it the marker of a transaction")
        return {p: self._ahead[p][1] for p in producers if p in self._ahead and p not in unknown}

    def _is_in_place(self) -> bool:
        """Tell whether the slice's file still has its name: then no marker is missing."""
        try:
            file = self._store.open(self._slice["path"])
        except FileNotFoundError:
            return False
        file.close()
        return file.identity == self._file.identity

    def _scan(self, position: int) -> Iterator[list[tuple[int, int, int]]]:
        """Give the markers behind a position, chunk by chunk, up to the log end."""
        for file, path, begin in self._files(position):
            try:
                for chunk in chunks(file, begin, file.size_bytes, chunk_bytes=_AHEAD_BYTES):
                    yield self._markers(chunk, path)
                    if int(chunk.batches.next_offsets[-1]) >= self._slice["markers_until"]:
                        return
            except CorruptRecordError as exc:
                raise self._unreadable(exc, path) from exc
            finally:
                if file is not self._file:
                    file.close()

    def _files(self, position: int) -> Iterator[tuple[File, str, int]]:
        yield self._file, self._slice["path"], position
        folder = self._slice["path"].rpartition("/")[0]
        directory = read_directory(folder, list_consistently(self._store, folder), lambda swap: 0)
        for segment in directory.segments:
            if self._slice["base_offset"] < segment.base_offset < self._slice["markers_until"]:
                yield self._store.open(segment.log.path), segment.log.path, 0
