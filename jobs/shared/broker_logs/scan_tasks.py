"""The tasks that read a broker's segments: one that scans them, and one that copies them too.

The rule: a file is read once, from its start to its end as the log has it, in chunks of whole
batches. A broker's index is taken if all its entries fit the batches; a preallocated one that was
never closed is not. A copy gets new indexes.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.segment_writer import SegmentBounds, write_segment
from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions
from klog.connector.segment_chunks import Chunk, read_chunks
from klog.connector.store.readable_store import ReadableStore
from klog.connector.store.store_for_url import store_for
from klog.errors import CorruptRecordError
from klog.jobs.shared.broker_logs.adopted_entries import AdoptedFile, ScannedFile
from klog.jobs.shared.broker_logs.readable_segments import ReadableSegment
from klog.jobs.shared.index_entry_check import INDEX, TIME_INDEX, IndexCheck
from klog.jobs.shared.segment_scan import SegmentScan
from klog.logformat.batches.rewrite_offsets import BatchRun
from klog.logformat.indexes.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.indexes.offset_index import parse_offset_index
from klog.logformat.indexes.time_index import ENTRY as TIME_ENTRY
from klog.logformat.indexes.time_index import parse_time_index
from klog.logformat.producers.transaction_outcomes import aborted_rows


@dataclass(frozen=True, slots=True)
class ScanTask:
    """A segment to be scanned.

    `directory` is the log directory, as the caller gave it. `indexed` has the producer id, first
    and last offset of each aborted transaction in the broker's transaction indexes.
    """

    directory: str
    storage: StorageOptions
    topic: str
    partition: int
    readable: ReadableSegment
    indexed: tuple[tuple[int, int, int], ...]

    @property
    def base_offset(self) -> int:
        """Return the segment's base offset."""
        return self.readable.segment.base_offset


@dataclass(frozen=True, slots=True)
class CopyTask:
    """A segment to be copied to a klog root; `base_version` is part of its new file's name."""

    scan: ScanTask
    root: str
    base_version: int
    interval_bytes: int


def scan_segment(task: ScanTask) -> ScannedFile:
    """Scan a segment where it is.

    Args:
        task: The segment.

    Returns:
        The segment's file in the klog root, and what its bytes show.

    Raises:
        CorruptFileError: It is damaged.
    """
    store, _ = store_for(task.directory, task.storage)
    indexes = _BrokerIndexes(store, task)
    readable = task.readable
    scan = SegmentScan(task.base_offset, readable.end_offset, aborted_rows(task.indexed))
    for chunk in _read_chunks(store, task, scan):
        indexes.add(chunk)
    index_bytes, time_index_bytes = indexes.sizes()
    file = AdoptedFile(
        str(SegmentPath(task.topic, task.partition, task.base_offset)),
        task.base_offset,
        readable.end_offset,
        readable.file_bytes - readable.size_bytes,
        index_bytes,
        time_index_bytes,
    )
    return ScannedFile(file, scan.result())


def copy_segment(task: CopyTask) -> ScannedFile:
    """Copy a segment, and scan it meanwhile.

    Args:
        task: The segment and its destination.

    Returns:
        The new file in the klog root, and what its bytes show.

    Raises:
        CorruptFileError: It is damaged.
    """
    store, _ = store_for(task.scan.directory, task.scan.storage)
    root = open_klog_root(task.root, task.scan.storage)
    base_offset, end_offset = task.scan.base_offset, task.scan.readable.end_offset
    scan = SegmentScan(base_offset, end_offset, aborted_rows(task.scan.indexed))
    runs = (
        BatchRun(chunk.batch_data, chunk.batches) for chunk in _read_chunks(store, task.scan, scan)
    )
    # Random, as a task may run twice at a time, and put replaces.
    attempt = secrets.token_hex(8)
    path = SegmentPath(
        task.scan.topic, task.scan.partition, base_offset, task.base_version, attempt
    )
    bounds = SegmentBounds(base_offset, end_offset, -1, "adopt")
    entry = write_segment(root.store, root.path, path, task.interval_bytes, runs, bounds)
    assert entry is not None
    file = AdoptedFile(
        str(path), base_offset, end_offset, 0, entry["index_bytes"], entry["time_index_bytes"]
    )
    return ScannedFile(file, scan.result())


def _read_chunks(store: ReadableStore, task: ScanTask, scan: SegmentScan) -> Iterator[Chunk]:
    """Yield the chunks of a segment, each after it was scanned."""
    path, readable = task.readable.segment.log.path, task.readable
    name = f"{task.topic}-{task.partition}"
    try:
        file = store.open(path)
        try:
            if file.size_bytes != readable.file_bytes:
                raise CorruptRecordError(
                    f"it has {file.size_bytes} bytes, and had {readable.file_bytes} when it was "
                    "listed: something writes to it. Stop that, then run the job again",
                    min(file.size_bytes, readable.size_bytes),
                )
            for chunk in read_chunks(file, 0, readable.size_bytes):
                scan.add(chunk)
                yield chunk
            if scan.size_bytes < readable.size_bytes:
                raise CorruptRecordError(
                    "the file ends in the middle of a batch. Restore it from a copy",
                    scan.size_bytes,
                )
        finally:
            file.close()
    except FileNotFoundError as exc:
        reason = (
            "the file has gone since it was listed: something changes the directory. Stop that, "
            "then run the job again"
        )
        raise CorruptRecordError(reason).in_file(path, name) from exc
    except CorruptRecordError as exc:
        raise exc.in_file(path, name) from exc


class _BrokerIndexes:
    """A broker's indexes of one segment, checked while its batches are read."""

    def __init__(self, store: ReadableStore, task: ScanTask) -> None:
        self._index = self._time_index = b""
        base_offset, size_bytes = task.base_offset, task.readable.size_bytes
        index = _read_index(store, task, INDEX)
        time_index = _read_index(store, task, TIME_INDEX)
        offsets = None if index is None else parse_offset_index(index, base_offset, size_bytes)
        if index and offsets is not None and len(offsets) * OFFSET_ENTRY.itemsize == len(index):
            self._index = index
        times = None if time_index is None else parse_time_index(time_index, base_offset)
        if time_index and times is not None and len(times) * TIME_ENTRY.itemsize == len(time_index):
            self._time_index = time_index
        self._check = IndexCheck(self._index, self._time_index, base_offset, is_klogs=False)

    def add(self, chunk: Chunk) -> None:
        """Check the entries that are about a chunk."""
        self._check.add(chunk, np.ones(len(chunk.batches), np.bool_))

    def sizes(self) -> tuple[int, int]:
        """Return the size of each index that fits the batches, 0 for one that does not."""
        wrong = {fault.kind for fault in self._check.faults(is_complete=True)}
        return (
            0 if INDEX in wrong else len(self._index),
            0 if TIME_INDEX in wrong else len(self._time_index),
        )


def _read_index(store: ReadableStore, task: ScanTask, kind: str) -> bytes | None:
    entry = task.readable.segment.indexes.get(kind)
    if entry is None or not entry.name.endswith(f".{kind}"):
        return None
    return read_companion_file(store, entry.path)
