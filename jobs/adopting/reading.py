"""The tasks that read a broker's segments: one that only looks, and one that copies as it looks.

The rule: a file is read once, from its start to where it counts, in chunks of whole batches. The
broker's indexes are taken where they lie if every entry of theirs fits the batches, and are none
otherwise: one that was preallocated and never closed is none. A copy gets indexes made anew.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klog.connector.log.beside import read_beside
from klog.connector.log.paths import SegmentPath
from klog.connector.log.rewriting import SegmentWriter, Span
from klog.connector.log.segment import Chunk, chunks
from klog.connector.store.files import Store
from klog.connector.store.schemes import store_for
from klog.connector.store.storage import Storage
from klog.errors import CorruptRecordError
from klog.jobs.adopting.broker import Counted
from klog.jobs.adopting.deciding import Placed
from klog.jobs.adopting.scanning import Scan, Scanned
from klog.jobs.choosing import open_root
from klog.jobs.verifying.findings import Findings
from klog.jobs.verifying.indexes import Indexes
from klog.logformat.offset_index import read_offset_index
from klog.logformat.restamp import Run
from klog.logformat.time_index import read_time_index
from klog.logformat.transactions import rows_of


@dataclass(frozen=True, slots=True)
class ScanTask:
    """A segment of a partition to be looked at: `directory` is the log directory, as given.

    `indexed` are the aborted transactions that transaction indexes know, three numbers each.
    """

    directory: str
    storage: Storage
    topic: str
    partition: int
    counted: Counted
    indexed: tuple[tuple[int, int, int], ...]

    @property
    def base_offset(self) -> int:
        """Give the segment's base offset."""
        return self.counted.segment.base_offset


@dataclass(frozen=True, slots=True)
class CopyTask:
    """A segment to be copied to a klog root; `birth` is the version that its file is born at."""

    scan: ScanTask
    root: str
    birth: int
    interval_bytes: int


def scan(task: ScanTask) -> tuple[Placed, Scanned]:
    """Look at a segment where it lies. Raises `CorruptFileError` for a damaged one."""
    store, _ = store_for(task.directory, task.storage)
    indexes = _Indexes(store, task)
    looked = Scan(task.base_offset, task.counted.limit, rows_of(task.indexed))
    for chunk in _read(store, task, looked):
        indexes.take(chunk)
    index_bytes, time_index_bytes = indexes.sizes()
    counted = task.counted
    placed = Placed(
        str(SegmentPath(task.topic, task.partition, task.base_offset)),
        task.base_offset,
        counted.limit,
        counted.file_bytes - counted.size_bytes,
        index_bytes,
        time_index_bytes,
    )
    return placed, looked.done()


def copy(task: CopyTask) -> tuple[Placed, Scanned]:
    """Copy what counts of a segment, and look at it meanwhile. Raises as `scan` does."""
    store, _ = store_for(task.scan.directory, task.scan.storage)
    root = open_root(task.root, task.scan.storage)
    base, limit = task.scan.base_offset, task.scan.counted.limit
    looked = Scan(base, limit, rows_of(task.scan.indexed))
    runs = (_run(chunk) for chunk in _read(store, task.scan, looked))
    # Random, as a task may run twice at a time, and put replaces.
    attempt = secrets.token_hex(8)
    file = SegmentPath(task.scan.topic, task.scan.partition, base, task.birth, attempt)
    writer = SegmentWriter(root.store, root.path, file, task.interval_bytes)
    made = writer.write(runs, Span(base, limit, -1, "adopt"))
    assert made is not None
    placed = Placed(str(file), base, limit, 0, made["index_bytes"], made["time_index_bytes"])
    return placed, looked.done()


def _run(chunk: Chunk) -> Run:
    end = int(chunk.batches.ends[-1])
    return Run(chunk.data if end == len(chunk.data) else chunk.data[:end], chunk.batches)


def _read(store: Store, task: ScanTask, looked: Scan) -> Iterator[Chunk]:
    """Give the chunks of what counts, each once it was looked at."""
    path, counted = task.counted.segment.log.path, task.counted
    name = f"{task.topic}-{task.partition}"
    try:
        file = store.open(path)
        try:
            if file.size_bytes != counted.file_bytes:
                raise CorruptRecordError(
                    f"it has {file.size_bytes} bytes, and had {counted.file_bytes} when it was "
                    "listed: something writes to it",
                    min(file.size_bytes, counted.size_bytes),
                )
            for chunk in chunks(file, 0, counted.size_bytes):
                looked.take(chunk)
                yield chunk
            if looked.size_bytes < counted.size_bytes:
                raise CorruptRecordError(
                    "the file ends in the middle of a batch", looked.size_bytes
                )
        finally:
            file.close()
    except FileNotFoundError as exc:
        reason = "the file has gone since it was listed: something changes the directory"
        raise CorruptRecordError(reason).in_file(path, name) from exc
    except CorruptRecordError as exc:
        raise exc.in_file(path, name) from exc


class _Indexes:
    """A broker's indexes of one segment, held to its batches as they come by."""

    def __init__(self, store: Store, task: ScanTask) -> None:
        self._index = self._times = b""
        base, size_bytes = task.base_offset, task.counted.size_bytes
        index, times = (_beside(store, task, kind) for kind in ("index", "timeindex"))
        offsets = None if index is None else read_offset_index(index, base, size_bytes)
        if index and offsets is not None and len(offsets) * 8 == len(index):
            self._index = index
        timestamps = None if times is None else read_time_index(times, base)
        if times and timestamps is not None and len(timestamps) * 12 == len(times):
            self._times = times
        self._held = Indexes(self._index, self._times, base, strict=False)
        self._name = task.topic, task.partition, task.counted.segment.log.name

    def take(self, chunk: Chunk) -> None:
        self._held.take(chunk, np.ones(len(chunk.batches), np.bool_))

    def sizes(self) -> tuple[int, int]:
        """Give the sizes of those that fit, 0 of others."""
        findings = Findings(*self._name)
        self._held.tell("", findings, whole=True)
        return (
            0 if findings.has("index") else len(self._index),
            0 if findings.has("timeindex") else len(self._times),
        )


def _beside(store: Store, task: ScanTask, kind: str) -> bytes | None:
    entry = task.counted.segment.indexes.get(kind)
    if entry is None or not entry.name.endswith(f".{kind}"):
        return None
    return read_beside(store, entry.path)
