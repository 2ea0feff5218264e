"""Which batches of a slice belong to aborted transactions.

The rule: what the slice calls aborted is aborted. In a klog root that is all: a commit names every
aborted transaction of its segments. A `.txnindex` may be lost, or lack entries, so in a raw root
the markers before `markers_end_offset` decide the rest. Most markers lie in the same chunk as their
data. A transaction that is still open there is followed through the headers, in this segment and
the next ones, up to the log end: what begins below the last stable offset has ended, but its marker
may lie after it. Without a marker it was committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klog.connector.kafka_dir.partition_directory import list_consistently, read_directory
from klog.connector.segment_chunks import Chunk, at_file_position, read_chunks
from klog.connector.source.slices import UNKNOWN, Slice, SliceChangedError
from klog.connector.store.readable_store import File, ReadableStore
from klog.errors import CorruptRecordError
from klog.logformat.array_types import Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.producers import transaction_outcomes
from klog.logformat.producers.control_records import COMMIT
from klog.logformat.producers.transaction_outcomes import TransactionMarker

_READ_AHEAD_BYTES = 256 << 10
"""Most transactions end soon: what is read ahead is read again when its turn comes."""


@dataclass(frozen=True, slots=True)
class _SegmentTail:
    """An open segment, its path, and the position from which its markers count."""

    file: File
    path: str
    position: int


class AbortedTransactionFilter:
    """The outcomes of the transactions in one slice; keeps the markers that it met ahead."""

    def __init__(self, slice_: Slice, store: ReadableStore, file: File) -> None:
        """Take the slice, whose wanted offsets are as the file has them, and its open file."""
        self._slice = slice_
        self._store = store
        self._file = file
        self._aborted = transaction_outcomes.aborted_rows(slice_.aborted)
        self._markers_ahead: dict[int, tuple[int, int]] = {}
        """By producer id the offset and the kind of a marker."""

    def aborted(self, batches: v2.Batches, chunk: Chunk) -> Mask:
        """Return which of some batches of a chunk are data of an aborted transaction.

        Args:
            batches: Batches of the chunk that have wanted offsets.
            chunk: The chunk, whose other batches may be markers.

        Raises:
            SliceChangedError: If the log was cleaned, and with it a marker.
            CorruptFileError: If a marker that decides cannot be read.
        """
        if not self._slice.committed_only:
            return np.zeros(len(batches), np.bool_)
        mask = transaction_outcomes.is_aborted_by_index(batches, self._aborted)
        if self._slice.markers_end_offset == UNKNOWN:
            return mask
        undecided = batches.where(~mask)
        if not undecided.is_transactional_data.any():
            return mask
        markers = self._markers(chunk, self._slice.path)
        producers = transaction_outcomes.undecided_producers(undecided, markers)
        later_markers = self._kinds_ahead(producers, chunk)
        return mask | transaction_outcomes.is_aborted(batches, markers, later_markers)

    def _markers(self, chunk: Chunk, path: str) -> list[TransactionMarker]:
        """Return the transaction markers in a chunk of a segment, once their CRCs hold."""
        control = chunk.batches.where(chunk.batches.is_control)
        control = control.where(control.next_offsets > self._slice.start_offset)
        try:
            with at_file_position(chunk.position):
                check_batch_crcs(chunk.data, control)
                return transaction_outcomes.transaction_markers(chunk.data, control)
        except CorruptRecordError as exc:
            raise self._unreadable(exc, path) from exc

    def _unreadable(self, exc: CorruptRecordError, path: str) -> CorruptRecordError:
        reason = f"{exc.reason}, and the marker that ends a transaction lies there or later"
        return CorruptRecordError(reason, exc.position).in_file(path, self._slice.name)

    def _kinds_ahead(self, producers: set[int], chunk: Chunk) -> dict[int, int]:
        """Return the kind of the first marker after a chunk of each producer id."""
        next_offset = int(chunk.batches.next_offsets[-1])
        unknown = {
            producer
            for producer in producers
            if self._markers_ahead.get(producer, (-1, 0))[0] < next_offset
        }
        for markers in self._scan_markers(chunk.end_position) if unknown else ():
            for offset, producer, kind in markers:
                if producer in unknown and offset >= next_offset:
                    self._markers_ahead[producer] = (offset, kind)
                    unknown.discard(producer)
            if not unknown:
                break
        if unknown and not self._is_file_in_place():
            raise SliceChangedError("the log was cleaned, and with it the marker of a transaction")
        for producer in unknown:  # Its marker lies after the ones that may be needed.
            self._markers_ahead[producer] = (self._slice.markers_end_offset, COMMIT)
        return {producer: self._markers_ahead[producer][1] for producer in producers}

    def _is_file_in_place(self) -> bool:
        """Return whether the slice's file still has its name: then no marker is missing."""
        try:
            file = self._store.open(self._slice.path)
        except FileNotFoundError:
            return False
        file.close()
        return file.identity == self._file.identity

    def _scan_markers(self, position: int) -> Iterator[list[TransactionMarker]]:
        """Yield the markers after a position, chunk by chunk, up to `markers_end_offset`."""
        for tail in self._tails_from(position):
            file = tail.file
            try:
                for chunk in read_chunks(
                    file, tail.position, file.size_bytes, chunk_bytes=_READ_AHEAD_BYTES
                ):
                    yield self._markers(chunk, tail.path)
                    if int(chunk.batches.next_offsets[-1]) >= self._slice.markers_end_offset:
                        return
            except CorruptRecordError as exc:
                raise self._unreadable(exc, tail.path) from exc
            finally:
                if file is not self._file:
                    file.close()

    def _tails_from(self, position: int) -> Iterator[_SegmentTail]:
        """Yield the rest of the slice's file, and the files of later segments."""
        yield _SegmentTail(self._file, self._slice.path, position)
        if self._slice.markers_end_offset <= self._slice.limit_offset:
            return
        path = self._slice.path.rpartition("/")[0]
        directory = read_directory(path, list_consistently(self._store, path), lambda swap: 0)
        for segment in directory.segments:
            if self._slice.base_offset < segment.base_offset < self._slice.markers_end_offset:
                yield _SegmentTail(self._store.open(segment.log.path), segment.log.path, 0)
