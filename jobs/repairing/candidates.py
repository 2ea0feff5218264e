"""Segments that no commit names, and that a lost commit may have added.

The rule: whatever was born before a lost commit may be of it, a broker's file too. One that is
sound from its first byte to its last, with a record at each of its offsets, can be added again. Any
other one is counted too, as it may be all that is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from klog.connector.log.entries import Entry
from klog.connector.log.log_reader import LogReader
from klog.connector.log.lookup import index_path
from klog.connector.log.paths import SegmentPath, segment_path
from klog.connector.log.segment import chunks
from klog.errors import CorruptRecordError
from klog.jobs.adopting.scanning import Scan, Scanned
from klog.logformat.names import MAX_OFFSET
from klog.logformat.transactions import rows_of


@dataclass(frozen=True, slots=True)
class Candidate:
    """A segment; `entry` is what a commit would say of it, None if it cannot be added."""

    path: SegmentPath
    entry: Entry | None

    def is_older(self, version: int) -> bool:
        """Return whether a commit of this version can have added it."""
        return self.path.birth is None or self.path.birth < version


def read_candidates(log: LogReader, files: Iterable[str]) -> list[Candidate]:
    """Read segments from first byte to last, in order of partition and first offset."""
    paths = [path for path in map(segment_path, files) if path is not None]
    sizes: dict[str, dict[str, int]] = {}
    candidates = []
    for path in sorted(paths, key=lambda path: (path.partition, path.first_offset, str(path))):
        directory = str(path).rpartition("/")[0]
        if directory not in sizes:
            listed = log.entries(log.paths.data(directory))
            sizes[directory] = {entry.name: entry.size_bytes for entry in listed}
        candidates.append(Candidate(path, _entry(log, path, sizes[directory])))
    return candidates


def _entry(log: LogReader, path: SegmentPath, sizes: Mapping[str, int]) -> Entry | None:
    """Return what a commit would say of a segment; None if it is damaged or has gaps."""
    read = _scanned(log, path)
    if read is None:
        return None
    facts, next_offset = read
    name = str(path).rpartition("/")[2]
    return {
        "partition": path.partition,
        "file": str(path),
        "base_offset": path.first_offset,
        "next_offset": next_offset,
        "offset_shift": 0,
        "size_bytes": facts.size_bytes,
        "index_bytes": sizes.get(index_path(name, "index"), 0),
        "time_index_bytes": sizes.get(index_path(name, "timeindex"), 0),
        "crc32c": facts.crc32c,
        "record_count": facts.records,
        "batch_count": facts.batches,
        "min_timestamp_ms": facts.min_timestamp_ms,
        "max_timestamp_ms": facts.max_timestamp_ms,
        "leader_epoch": facts.leader_epoch,
        "codec": facts.codec,
        "producer_ids": list(facts.producer_ids) or [-1],
        "origin": "append",
    }


def _scanned(log: LogReader, path: SegmentPath) -> tuple[Scanned, int] | None:
    """Read a segment, and return its facts and the offset after its last; None as `_entry`."""
    scan = Scan(path.first_offset, MAX_OFFSET, rows_of([]))
    next_offset = path.first_offset
    try:
        file = log.store.open(log.paths.data(str(path)))
        try:
            for chunk in chunks(file, 0, file.size_bytes, path.first_offset):
                scan.take(chunk)
                next_offset = int(chunk.batches.next_offsets[-1])
            is_whole = scan.size_bytes == file.size_bytes
        finally:
            file.close()
    except (CorruptRecordError, FileNotFoundError):
        return None
    facts = scan.done()
    has_all = facts.records == next_offset - path.first_offset > 0
    return (facts, next_offset) if is_whole and has_all else None
