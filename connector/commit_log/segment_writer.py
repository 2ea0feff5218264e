"""Write a segment of batches that are in other segments: what compaction, merge and import need.

The rule: batches are written in the order in which they come, the log before its indexes, as in a
write of records. Memory holds only what the indexes need of each batch. The caller gives the
offsets of the entry: if records were removed, a segment stands for more offsets than its file has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import google_crc32c
import numpy as np

from klog.connector.commit_log.segment_entries import MAX_PRODUCERS, SegmentEntry
from klog.connector.commit_log.segment_entry_builder import build_segment_entry
from klog.connector.commit_log.segment_path import SegmentPath, index_file_path
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


def write_segment(
    store: WritableStore,
    root: str,
    path: SegmentPath,
    interval_bytes: int,
    runs: Iterator[BatchRun],
    bounds: SegmentBounds,
) -> SegmentEntry | None:
    """Write a segment and its indexes.

    Args:
        store: The store of the root.
        root: The path of the root.
        path: The path of the segment's `.log` file.
        interval_bytes: `index.interval.bytes` of the topic.
        runs: The batches.
        bounds: What the segment stands for.

    Returns:
        The entry; None, and no file, if there are no batches.
    """
    first_run = next(runs, None)
    if first_run is None:
        return None
    file, counts = f"{root}/{path}", _RunCounts()
    store.put(file, counts.data_of(chain([first_run], runs)))
    appends = concat_appends(counts.appends)
    size_bytes, index, time_index = int(appends.size_bytes.sum()), b"", b""
    if size_bytes >= interval_bytes * UNINDEXED_INTERVALS:
        offset_entries, time_entries = build_indexes(appends, path.first_offset, interval_bytes)
        index, time_index = encode_offset_index(offset_entries), encode_time_index(time_entries)
        store.put(index_file_path(file, "index"), [index])
        store.put(index_file_path(file, "timeindex"), [time_index])
    min_timestamp_ms = max(counts.min_timestamp_ms, v2.NO_TIMESTAMP)
    return build_segment_entry(
        file=str(path),
        partition=path.partition,
        base_offset=bounds.base_offset,
        next_offset=bounds.next_offset,
        size_bytes=size_bytes,
        index_bytes=len(index),
        time_index_bytes=len(time_index),
        crc32c=counts.crc32c,
        record_count=counts.record_count,
        batch_count=len(appends),
        min_timestamp_ms=min(bounds.min_timestamp_ms, min_timestamp_ms),
        max_timestamp_ms=int(appends.max_timestamps.max()),
        leader_epoch=counts.leader_epoch,
        codec=CODEC_NAMES[counts.codec],
        producer_ids=sorted(counts.producer_ids)[:MAX_PRODUCERS],
        origin=bounds.origin,
        aborted=bounds.aborted,
    )


class _RunCounts:
    """What an entry says of its batches, counted while they are written."""

    def __init__(self) -> None:
        self.appends: list[Appends] = []
        self.crc32c = self.record_count = 0
        self.producer_ids: set[int] = set()
        self.codec = self.leader_epoch = -1
        self.min_timestamp_ms = MAX_TIMESTAMP_MS

    def data_of(self, runs: Iterable[BatchRun]) -> Iterator[bytes]:
        """Count each run and yield its bytes."""
        for run in runs:
            self._count(run)
            yield run.data

    def _count(self, run: BatchRun) -> None:
        headers = run.batches.headers
        self.appends.append(batches_as_appends(run.batches))
        self.crc32c = google_crc32c.extend(self.crc32c, np.frombuffer(run.data, np.uint8))
        self.record_count += int(data_record_counts(run.data, run.batches).sum())
        # If a batch has lost its first record, the next one may be older.
        self.min_timestamp_ms = min(self.min_timestamp_ms, header_timestamp_range(run.batches)[0])
        producer_ids = np.unique(headers["producer_id"])
        self.producer_ids.update(producer_ids[producer_ids >= 0].tolist())
        self.codec = int(headers["attributes"][-1]) & v2.CODEC_MASK
        self.leader_epoch = max(self.leader_epoch, int(headers["leader_epoch"].max()))
