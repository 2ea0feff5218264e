"""Write a segment of batches that are in other segments: what compaction, merge and import need.

The rule: batches are written in the order in which they come, the log before its indexes, as in a
write of records. Memory holds only what the indexes need of each batch. The caller gives the
offsets of the entry: if records were removed, a segment stands for more offsets than its file has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import google_crc32c
import numpy as np

from klog.connector.commit_log.segment_entries import MAX_PRODUCERS, SegmentEntry
from klog.connector.commit_log.segment_entry_builder import build_segment_entry
from klog.connector.commit_log.segment_path import SegmentPath, index_file_path
from klog.connector.compiled_kernels import legacy_kernels_if_loaded
from klog.connector.store.writable_store import WritableStore
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.record_counts import (
    MAX_TIMESTAMP_MS,
    data_record_counts,
    header_timestamp_range,
)
from klog.logformat.batches.rewrite_offsets import BatchRun
from klog.logformat.codecs.codec_names import CODEC_NAMES
from klog.logformat.indexes.index_building import (
    Appends,
    batches_as_appends,
    build_indexes,
    concat_appends,
)
from klog.logformat.indexes.offset_index import encode_offset_index
from klog.logformat.indexes.time_index import encode_time_index

UNINDEXED_INTERVALS = 16
"""A segment smaller than this many `index.interval.bytes` has no index files: it is read whole."""


@dataclass(frozen=True, slots=True)
class SegmentBounds:
    """What a segment stands for: its offsets in the log, and the lowest timestamp of its inputs.

    `origin` is one of `segment_entries.ORIGINS`, and `aborted` is the column of an entry. Records
    of these transactions are counted: only their writer knows which records they are.
    """

    base_offset: int
    next_offset: int
    min_timestamp_ms: int
    origin: str
    aborted: Sequence[int] = ()


class SegmentWriter:
    """Writes one segment."""

    def __init__(
        self, store: WritableStore, root: str, path: SegmentPath, interval_bytes: int
    ) -> None:
        """Take the path of the segment; nothing is written yet.

        Args:
            store: The store of the root.
            root: The path of the root.
            path: The path of the segment's `.log` file.
            interval_bytes: `index.interval.bytes` of the topic.
        """
        self._store, self._path, self._interval_bytes = store, path, interval_bytes
        self._file = f"{root}/{path}"
        self._appends: list[Appends] = []
        self._crc32c = self._record_count = 0
        self._producer_ids: set[int] = set()
        self._codec = self._leader_epoch = -1
        self._min_timestamp_ms = MAX_TIMESTAMP_MS

    def write(self, runs: Iterator[BatchRun], bounds: SegmentBounds) -> SegmentEntry | None:
        """Write the segment and its indexes.

        Args:
            runs: The batches.
            bounds: What the segment stands for.

        Returns:
            The entry; None, and no file, if there are no batches.
        """
        first_run = next(runs, None)
        if first_run is None:
            return None
        self._store.put(self._file, self._read_runs(first_run, runs))
        appends = concat_appends(self._appends)
        size_bytes, index, time_index = int(appends.size_bytes.sum()), b"", b""
        if size_bytes >= self._interval_bytes * UNINDEXED_INTERVALS:
            index, time_index = self._write_indexes(appends)
        min_timestamp_ms = max(self._min_timestamp_ms, v2.NO_TIMESTAMP)
        return build_segment_entry(
            file=str(self._path),
            partition=self._path.partition,
            base_offset=bounds.base_offset,
            next_offset=bounds.next_offset,
            size_bytes=size_bytes,
            index_bytes=len(index),
            time_index_bytes=len(time_index),
            crc32c=self._crc32c,
            record_count=self._record_count,
            batch_count=len(appends),
            min_timestamp_ms=min(bounds.min_timestamp_ms, min_timestamp_ms),
            max_timestamp_ms=int(appends.max_timestamps.max()),
            leader_epoch=self._leader_epoch,
            codec=CODEC_NAMES[self._codec],
            producer_ids=sorted(self._producer_ids)[:MAX_PRODUCERS],
            origin=bounds.origin,
            aborted=bounds.aborted,
        )

    def _write_indexes(self, appends: Appends) -> tuple[bytes, bytes]:
        offset_index, time_index = build_indexes(
            appends, self._path.first_offset, self._interval_bytes
        )
        index_data, time_index_data = (
            encode_offset_index(offset_index),
            encode_time_index(time_index),
        )
        self._store.put(index_file_path(self._file, "index"), [index_data])
        self._store.put(index_file_path(self._file, "timeindex"), [time_index_data])
        return index_data, time_index_data

    def _read_runs(self, first_run: BatchRun, runs: Iterator[BatchRun]) -> Iterator[bytes]:
        for run in chain([first_run], runs):
            self._count(run)
            yield run.data

    def _count(self, run: BatchRun) -> None:
        headers = run.batches.headers
        self._appends.append(batches_as_appends(run.batches))
        self._crc32c = google_crc32c.extend(self._crc32c, np.frombuffer(run.data, np.uint8))
        kernels = legacy_kernels_if_loaded()
        self._record_count += int(data_record_counts(run.data, run.batches, kernels).sum())
        # If a batch has lost its first record, the next one may be older.
        self._min_timestamp_ms = min(self._min_timestamp_ms, header_timestamp_range(run.batches)[0])
        producer_ids = np.unique(headers["producer_id"])
        self._producer_ids.update(producer_ids[producer_ids >= 0].tolist())
        self._codec = int(headers["attributes"][-1]) & v2.CODEC_MASK
        self._leader_epoch = max(self._leader_epoch, int(headers["leader_epoch"].max()))
