"""Segments that no commit names, and that a lost commit may have added.

The rule: a lost commit may have added any segment whose name has an earlier version, and any of a
broker's. A segment that is intact from its first byte to its last, with a record at each offset,
can be added again. The others count too: such a segment may be all that is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from klog.connector.commit_log.commit_log_files import CommitLogFiles
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.segment_entry_builder import build_segment_entry
from klog.connector.commit_log.segment_path import SegmentPath, index_file_path, parse_segment_path
from klog.connector.segment_chunks import Chunk, read_chunks
from klog.errors import CorruptRecordError, KlogError
from klog.jobs.shared.segment_scan import ScannedSegment, SegmentScan
from klog.logformat.batches.decode_records import decode_parts
from klog.logformat.batches.record_batch import NO_TIMESTAMP
from klog.logformat.batches.record_counts import MAX_TIMESTAMP_MS
from klog.logformat.broker_files.file_names import MAX_OFFSET
from klog.logformat.producers.transaction_outcomes import aborted_rows


@dataclass(frozen=True, slots=True)
class CandidateSegment:
    """A segment; `entry` is what a commit would have of it, None if it cannot be added."""

    path: SegmentPath
    entry: SegmentEntry | None

    def is_older_than(self, version: int) -> bool:
        """Return whether a commit of this version may have added it.

        Args:
            version: The version of a lost commit.
        """
        return self.path.base_version is None or self.path.base_version < version


class CandidateSegments:
    """The candidates that no planned commit adds yet, and those of them that the user named."""

    def __init__(self, candidates: Iterable[CandidateSegment] = ()) -> None:
        """Begin with candidates that the user has not named.

        Args:
            candidates: The candidates.
        """
        self._candidates = list(candidates)
        self._named: list[SegmentEntry] = []

    def name(self, file: str) -> None:
        """Note that the user wants a segment added.

        Args:
            file: The segment, relative to the root.

        Raises:
            KlogError: It is not a candidate that can be added.
        """
        by_file = {str(candidate.path): candidate for candidate in self._candidates}
        candidate = by_file.get(file)
        if candidate is None or candidate.entry is None:
            raise KlogError(
                f"--use: {file} does not exist, is damaged, has gaps, or a commit names it. Choose "
                "another"
            )
        self._named.append(candidate.entry)

    def of_partition(self, partition: int, version: int) -> list[CandidateSegment]:
        """Return the candidates of a partition that a commit of this version may have added.

        Args:
            partition: The partition.
            version: The version of a lost commit.
        """
        return [
            candidate
            for candidate in self._candidates
            if candidate.path.partition == partition and candidate.is_older_than(version)
        ]

    def remove(self, entries: Iterable[SegmentEntry]) -> None:
        """Remove segments that a planned commit adds.

        Args:
            entries: The entries of the segments.
        """
        files = {entry["file"] for entry in entries}
        self._candidates = [
            candidate for candidate in self._candidates if str(candidate.path) not in files
        ]

    def remove_named(self, entries: Iterable[SegmentEntry]) -> None:
        """Remove segments from those that the user named, as a planned commit will add them.

        Args:
            entries: The entries of the segments.
        """
        files = {entry["file"] for entry in entries}
        self._named = [entry for entry in self._named if entry["file"] not in files]

    def named(self, partition: int | None = None) -> list[SegmentEntry]:
        """Return the segments that the user named and no planned commit adds yet.

        Args:
            partition: The partition; None for all.
        """
        return [entry for entry in self._named if partition in (None, entry["partition"])]

    @property
    def partitions(self) -> set[int]:
        """Return the partitions that have candidates."""
        return {candidate.path.partition for candidate in self._candidates}

    @property
    def files(self) -> tuple[str, ...]:
        """Return the candidates' files."""
        return tuple(str(candidate.path) for candidate in self._candidates)


def read_candidates(log: CommitLogFiles, files: Iterable[str]) -> list[CandidateSegment]:
    """Read segments from their first byte to their last.

    Args:
        log: The topic's commit log.
        files: The segments, relative to the root.

    Returns:
        The segments in order of partition and first offset.
    """
    paths = [path for path in map(parse_segment_path, files) if path is not None]
    sizes: dict[str, dict[str, int]] = {}
    candidates = []
    for path in sorted(paths, key=lambda path: (path.partition, path.first_offset, str(path))):
        directory = str(path).rpartition("/")[0]
        if directory not in sizes:
            listed = log.entries(log.paths.data(directory))
            sizes[directory] = {entry.name: entry.size_bytes for entry in listed}
        candidates.append(CandidateSegment(path, _entry(log, path, sizes[directory])))
    return candidates


def _entry(log: CommitLogFiles, path: SegmentPath, sizes: Mapping[str, int]) -> SegmentEntry | None:
    """Return what a commit would have of a segment; None if it is damaged or has gaps."""
    scan = _scan(log, path)
    if scan is None:
        return None
    scanned, next_offset, min_timestamp_ms = scan
    name = str(path).rpartition("/")[2]
    return build_segment_entry(
        file=str(path),
        partition=path.partition,
        base_offset=path.first_offset,
        next_offset=next_offset,
        size_bytes=scanned.size_bytes,
        index_bytes=sizes.get(index_file_path(name, "index"), 0),
        time_index_bytes=sizes.get(index_file_path(name, "timeindex"), 0),
        crc32c=scanned.crc32c,
        record_count=scanned.record_count,
        batch_count=scanned.batch_count,
        min_timestamp_ms=max(min_timestamp_ms, NO_TIMESTAMP),
        max_timestamp_ms=scanned.max_timestamp_ms,
        leader_epoch=scanned.leader_epoch,
        codec=scanned.codec,
        producer_ids=scanned.producer_ids or [-1],
        origin="append",
    )


def _scan(log: CommitLogFiles, path: SegmentPath) -> tuple[ScannedSegment, int, int] | None:
    """Return the scan of a segment, the offset after its last one, and its smallest timestamp.

    None as `_entry`. The records are decoded: headers do not say the smallest timestamp.
    """
    scan = SegmentScan(path.first_offset, MAX_OFFSET, aborted_rows([]))
    next_offset, min_timestamp_ms = path.first_offset, MAX_TIMESTAMP_MS
    try:
        file = log.store.open(log.paths.data(str(path)))
        try:
            for chunk in read_chunks(file, 0, file.size_bytes, path.first_offset):
                scan.add(chunk)
                min_timestamp_ms = min(min_timestamp_ms, _min_timestamp_ms(chunk))
                next_offset = int(chunk.batches.next_offsets[-1])
            is_complete = scan.size_bytes == file.size_bytes
        finally:
            file.close()
    except (CorruptRecordError, FileNotFoundError):
        return None
    scanned = scan.result()
    is_dense = scanned.record_count == next_offset - path.first_offset > 0
    return (scanned, next_offset, min_timestamp_ms) if is_complete and is_dense else None


def _min_timestamp_ms(chunk: Chunk) -> int:
    """Return the smallest timestamp of records."""
    parts = decode_parts(chunk.data, chunk.batches, {"timestamp_ms"})
    arrays = (part.timestamp_ms for part in parts)
    return min(
        (int(array.min()) for array in arrays if array is not None and len(array)),
        default=MAX_TIMESTAMP_MS,
    )
