"""The first offset of a time in a committed segment: two small reads, and the data once.

The rule: the time index says before which offset all records are earlier, and by which offset one
is late enough. The offset index says between which positions these offsets are, so that range is
read at once. The data proves the indexes: the batch of the time index's entry has to have its time.
If it does not, or if nothing is found although the commit says that there is something, the segment
is read from its start. All offsets here are those in the file unless they are called the log's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_entries import (
    SegmentEntry,
    file_size_bytes,
    first_offset_in_file,
    partition_directory_of,
)
from klog.connector.commit_log.segment_files import LIVE_FILES, SegmentFiles
from klog.connector.commit_log.segment_indexes import (
    positions_between,
    read_segment_index,
    read_segment_time_index,
)
from klog.connector.commit_log.segment_path import index_file_path
from klog.connector.commit_log.small_segments import find_in_small_segments
from klog.connector.decoded_offsets import first_offset_at_time, max_timestamp_from
from klog.connector.segment_chunks import read_chunks
from klog.connector.store.parallel_reads import read_in_order
from klog.connector.store.readable_store import File
from klog.errors import CorruptRecordError
from klog.logformat.batches.record_batch import NO_TIMESTAMP
from klog.logformat.indexes.time_index import TimestampOffset

MAX_READ_BYTES = 4 << 20
"""The most that is read at once; indexes may say that less is enough."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Where to look for a time: at offsets from `start_offset`, which is at or after `position`.

    `size_bytes` are expected to be enough. `earlier` is the entry of the time index that says so: a
    timestamp, and the last offset of the batch that has it.
    """

    position: int
    size_bytes: int
    start_offset: int
    earlier: TimestampOffset | None = None


class SegmentLookup(NamedTuple):
    """What to look up in a segment.

    Attributes:
        entry: The entry of the segment.
        timestamp_ms: The time.
        start_offset: The offset of the log to start at.
    """

    entry: SegmentEntry
    timestamp_ms: int
    start_offset: int


def first_offsets(
    root: KlogRoot, lookups: Sequence[SegmentLookup], files: SegmentFiles = LIVE_FILES
) -> list[int | None]:
    """Return the first offset of the log in each segment whose record is at or after a time.

    Args:
        root: The root of the segments.
        lookups: The times, and where to look for them.
        files: Says whether a segment that is not found may be gone.

    Returns:
        The offsets; None where the segment has no such record.

    Raises:
        CorruptFileError: A segment is missing or damaged.
        OptionError: `files` says that it is gone.
    """
    if not lookups:
        return []
    offsets: dict[int, int | None] = dict(find_in_small_segments(root, *zip(*lookups, strict=True)))
    rest = [number for number in range(len(lookups)) if number not in offsets]
    remaining = read_in_order(
        lambda number: _first_offset(root, lookups[number], files),
        rest,
        root.store.max_parallel_reads,
    )
    offsets.update(zip(rest, remaining, strict=True))
    return [offsets[number] for number in range(len(lookups))]


def max_timestamps(
    root: KlogRoot, lookups: Sequence[SegmentLookup], files: SegmentFiles = LIVE_FILES
) -> list[int]:
    """Return the largest timestamp in each segment from an offset on; -1 if there is none.

    Args:
        root: The root of the segments.
        lookups: Where to look; the times do not matter.
        files: Says whether a segment that is not found may be gone.

    Raises:
        CorruptFileError: A segment is missing or damaged.
        OptionError: `files` says that it is gone.
    """
    return list(
        read_in_order(
            lambda lookup: _max_timestamp(root, lookup, files),
            lookups,
            root.store.max_parallel_reads,
        )
    )


def _first_offset(root: KlogRoot, lookup: SegmentLookup, files: SegmentFiles) -> int | None:
    """Look in one segment: where its indexes say, or from its start."""
    entry, timestamp_ms, start_offset = lookup
    shift = entry["offset_shift"]
    full_window = _Window(0, min(entry["size_bytes"], MAX_READ_BYTES), start_offset - shift)
    with _opened(root, entry, files) as file:
        offset = _scan_by_index(root, file, entry, timestamp_ms, full_window)
        if offset is None:
            offset = _scan(file, entry["size_bytes"], full_window, timestamp_ms)
    return None if offset is None else offset + shift


def _max_timestamp(root: KlogRoot, lookup: SegmentLookup, files: SegmentFiles) -> int:
    """Look in one segment: the headers say all but what a batch has that the start cuts."""
    entry = lookup.entry
    start_offset = lookup.start_offset - entry["offset_shift"]
    max_ms = NO_TIMESTAMP
    with _opened(root, entry, files) as file:
        for chunk in read_chunks(file, 0, entry["size_bytes"]):
            max_ms = max(max_ms, max_timestamp_from(chunk, start_offset, max_ms))
    return max_ms


@contextmanager
def _opened(root: KlogRoot, entry: SegmentEntry, files: SegmentFiles) -> Iterator[File]:
    """Open a segment; damage is an error with its path."""
    path = root.segment_path(entry)
    try:
        file = root.store.open(path, file_size_bytes(entry))
        try:
            yield file
        finally:
            file.close()
    except FileNotFoundError as exc:
        files.check_again(entry["file"])
        # Vacuum keeps the file of a segment that was just live for as long as the topic's config
        # says.
        reason = "the file is missing, and the topic's log names it"
        raise CorruptRecordError(reason).in_file(path, partition_directory_of(entry)) from exc
    except CorruptRecordError as exc:
        raise exc.in_file(path, partition_directory_of(entry)) from exc


def _scan_by_index(
    root: KlogRoot, file: File, entry: SegmentEntry, timestamp_ms: int, full_window: _Window
) -> int | None:
    """Look where the indexes say; None if they say nothing or do not fit the data."""
    window = _indexed_window(root, entry, timestamp_ms, full_window)
    if window is None:
        return None
    try:
        return _scan(file, entry["size_bytes"], window, timestamp_ms)
    except CorruptRecordError:
        return None


def _indexed_window(
    root: KlogRoot, entry: SegmentEntry, timestamp_ms: int, full_window: _Window
) -> _Window | None:
    """Return where the indexes say that a time is."""
    path, base_offset = root.segment_path(entry), first_offset_in_file(entry)
    time_index_bytes, index_bytes = entry["time_index_bytes"], entry["index_bytes"]
    if not time_index_bytes:
        return None
    time_index = read_segment_time_index(
        root.store, index_file_path(path, "timeindex"), time_index_bytes, base_offset
    )
    if time_index is None or not index_bytes:
        return None
    number = time_index.entry_before(timestamp_ms)
    earlier = time_index.entry(number) if number >= 0 else None
    # A record before `first_offset` is too early, and one at or before `last_offset` is not.
    first_offset = earlier.offset + 1 if earlier else base_offset
    has_later = number + 1 < len(time_index)
    last_offset = time_index.entry(number + 1).offset if has_later else first_offset
    index = read_segment_index(
        root.store, index_file_path(path, "index"), index_bytes, base_offset, entry["size_bytes"]
    )
    if index is None:
        return None
    start, end = positions_between(
        index, entry["size_bytes"], first_offset, max(last_offset, first_offset)
    )
    size_bytes = min(end - start, MAX_READ_BYTES)
    return _Window(start, size_bytes, max(first_offset, full_window.start_offset), earlier)


def _scan(file: File, size_bytes: int, window: _Window, timestamp_ms: int) -> int | None:
    """Look for the time from a window on; `CorruptRecordError` if the data does not fit it."""
    earlier, is_first = window.earlier, True
    for chunk in read_chunks(file, window.position, size_bytes, chunk_bytes=window.size_bytes):
        batches = chunk.batches
        if is_first and window.position and int(batches.base_offsets[0]) > window.start_offset:
            raise CorruptRecordError(
                f"offset {window.start_offset} is before this position", chunk.position
            )
        is_first = False
        if earlier is not None and int(batches.next_offsets[-1]) > earlier.offset:
            number = int(np.searchsorted(batches.next_offsets, earlier.offset, "right"))
            if int(batches.headers["max_timestamp"][number]) != earlier.timestamp_ms:
                raise CorruptRecordError("its time index says another time", chunk.position)
            earlier = None
        offset = first_offset_at_time(chunk, timestamp_ms, window.start_offset)
        if offset is not None:
            return offset
    return None
