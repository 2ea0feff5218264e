"""The last stable offset: the first offset of the earliest transaction that is still open.

A broker knows its open transactions from the producer snapshots and the batches behind the newest
one; so does klog, and where no snapshot is whole it reads the headers from the log's start rather
than forget a transaction as a broker would (docs/format.md, 10 and 14).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from klog.connector.log.beside import read_beside
from klog.connector.log.directory import Directory
from klog.connector.log.partition import RawPartition
from klog.connector.log.segment import SegmentReader, chunks, located
from klog.connector.store.files import Store
from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat import transactions
from klog.logformat.snapshot import read_open_transactions


@dataclass(frozen=True, slots=True)
class OpenTransactions:
    """Open transactions at `offset`: producer id to first offset.

    `position` is the end of the batch that begins at `last_batch` (-1 if unknown). If that batch is
    still there, the next call resumes at `position` without the index.
    """

    offset: int
    first_offsets: dict[int, int] = field(default_factory=dict)
    position: int = 0
    last_batch: int = -1

    @property
    def last_stable_offset(self) -> int:
        """Give the first offset of the earliest open transaction, else `offset` itself."""
        return min(self.first_offsets.values(), default=self.offset)


def newest_snapshot(store: Store, directory: Directory, end: int) -> OpenTransactions | None:
    """Read the newest whole producer snapshot that speaks of no offset beyond `end`."""
    first = directory.segments[0].base_offset if directory.segments else 0
    for offset in sorted(directory.snapshots, reverse=True):
        if first <= offset <= end:
            data = read_beside(store, directory.snapshots[offset].path)
            found = None if data is None else read_open_transactions(data)
            if found is not None:
                return OpenTransactions(offset, found)
    return None


def follow(known: OpenTransactions, log: RawPartition) -> OpenTransactions:
    """Carry what was open at one offset on to the log's end, by the headers between.

    Raises `CorruptFileError` at damage.
    """
    now = known
    for segment, behind in log.bounded_segments():
        if segment.base_offset >= log.log_end:
            break
        if behind <= known.offset and not log.is_active(segment):
            continue
        reader = log.open(segment)
        try:
            now = _through(reader, now, min(behind, log.log_end), log.readable_bytes(reader))
        except CorruptRecordError as exc:
            raise exc.in_file(segment.log.path, str(log.name)) from exc
        finally:
            reader.close()
    return replace(now, offset=log.log_end)


def _through(
    reader: SegmentReader, now: OpenTransactions, end: int, end_position: int
) -> OpenTransactions:
    """Follow one segment from where `now` stands up to offset `end`."""
    file, position, last = reader.file, now.position, now.last_batch
    if not _can_resume(reader, now):
        position, last = reader.position_before(now.offset), -1
    for chunk in chunks(file, position, end_position):
        bases = chunk.batches.base_offsets
        wanted = chunk.batches.where((chunk.batches.next_offsets > now.offset) & (bases < end))
        with located(chunk.position):
            v2.check_crcs(chunk.data, wanted.where(transactions.is_control(wanted)))
            opened = transactions.follow(now.first_offsets, chunk.data, wanted)
        reached = int(np.searchsorted(bases, end))
        stop = chunk.position + int(
            np.append(chunk.batches.starts, chunk.batches.ends[-1])[reached]
        )
        behind = int(np.append(bases, chunk.batches.next_offsets[-1])[reached])
        if reached:
            last = chunk.position + int(chunk.batches.starts[reached - 1])
        now = OpenTransactions(min(behind, end), opened, stop, last)
        if reached < len(bases) or behind >= end:
            break  # What else the file has is none of the log's, nor do other readers look at it.
    return now


def _can_resume(reader: SegmentReader, now: OpenTransactions) -> bool:
    """Return whether every batch before `now.position` in this segment was followed already.

    The inode number cannot say so: a file system reuses it as soon as it is free.
    """
    end = reader.batch_end(now.last_batch) if now.last_batch >= 0 else None
    return end is not None and end[0] <= now.offset and end[1] == now.position
