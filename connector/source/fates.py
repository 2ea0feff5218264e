"""Which batches of a slice belong to aborted transactions: the marker that follows decides.

Most markers lie in the same chunk as their data. A transaction that is still undecided there is
followed forward through the headers, in this segment and the next ones, up to the last stable
offset that bounds the read, below which every transaction is decided. What a `.txnindex` calls
aborted is believed without looking.
"""

from __future__ import annotations

from collections.abc import Iterator

from klog.connector.log.directory import read_directory
from klog.connector.log.segment import Chunk, chunks
from klog.connector.source.plan import Slice
from klog.connector.store.files import File, Store
from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat import transactions
from klog.logformat.transactions import Mask


class Fates:
    """What became of the transactions in one slice; remembers the markers it has met ahead."""

    def __init__(self, piece: Slice, store: Store, file: File) -> None:
        """Take the slice, and the open file it lies in."""
        self._slice = piece
        self._store = store
        self._file = file
        self._ahead: dict[int, tuple[int, int]] = {}

    def aborted(self, chunk: Chunk) -> Mask:
        """Tell which data batches of a chunk are aborted."""
        batches = chunk.batches
        mask = transactions.aborted_by_index(batches, self._slice["aborted"])
        if not transactions.is_transactional_data(batches.where(~mask)).any():
            return mask
        decided = transactions.markers(chunk.data, batches)
        open_ids = transactions.undecided(batches.where(~mask), decided)
        return mask | transactions.aborted(batches, decided, self._markers_ahead(open_ids, chunk))

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
        return {p: self._ahead[p][1] for p in producers if p in self._ahead and p not in unknown}

    def _scan(self, position: int) -> Iterator[list[tuple[int, int, int]]]:
        """Give the markers behind a position, chunk by chunk, up to the last stable offset."""
        for file, begin, own in self._files(position):
            try:
                for chunk in chunks(file, begin, file.size_bytes):
                    control = chunk.batches.where(transactions.is_control(chunk.batches))
                    v2.check_crcs(chunk.data, control)
                    yield transactions.markers(chunk.data, control)
                    if int(chunk.batches.next_offsets[-1]) >= self._slice["stable_offset"]:
                        return
            except CorruptRecordError as exc:
                # Damage further on is for the slice that reads it, unless it hides a marker.
                raise CorruptRecordError(
                    f"a transaction's marker cannot be found behind damage ({exc.reason})", position
                ) from exc
            finally:
                if not own:
                    file.close()

    def _files(self, position: int) -> Iterator[tuple[File, int, bool]]:
        yield self._file, position, True
        path = self._slice["path"].rpartition("/")[0]
        directory = read_directory(path, self._store.entries(path), lambda swap: 0)
        for segment in directory.segments:
            if self._slice["base_offset"] < segment.base_offset < self._slice["stable_offset"]:
                yield self._store.open(segment.log.path), 0, False
