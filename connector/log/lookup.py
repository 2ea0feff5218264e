"""The first offset of a time in a committed segment: two small reads, and the data once.

The rule: the time index says before which offset all records are earlier, and by which one of them
is late enough; the offset index says between which positions these lie; so what has to be read is
read at once. Indexes are believed until the data is there: the batch of the time index's entry has
to have its time. Where it has not, or nothing is found though the commit says that something is,
the segment is read from its start. All offsets here are the file's unless they are called the
log's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klog.connector.log.beside import MOST_INDEX_BYTES
from klog.connector.log.entries import Entry, file_bytes
from klog.connector.log.root import KlogRoot
from klog.connector.log.segment import chunks
from klog.connector.log.times import first_at_time
from klog.connector.store.files import File, Store
from klog.errors import CorruptRecordError, InvalidFileError
from klog.logformat.offset_index import OffsetIndex, read_offset_index
from klog.logformat.time_index import TimeIndex, TimestampOffset, read_time_index

MOST_BYTES = 4 << 20
"""Read at a time at most, where indexes do not say that less is enough."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Where to look for a time: from `sought` on, which lies at or behind position `begin`.

    `length` bytes are expected to be enough. `earlier` is the entry of the time index that says so:
    a timestamp, and the last offset of the batch that has it.
    """

    begin: int
    length: int
    sought: int
    earlier: TimestampOffset | None = None


def path_of(root: KlogRoot, entry: Entry) -> str:
    """Give the path of a segment's file as the store spells it."""
    return f"{root.path}/{entry['file']}"


def read_index(
    store: Store, path: str, base_offset: int, size_bytes: int, index_bytes: int
) -> OffsetIndex | None:
    """Read the offset index of a segment, `path`; None if it is missing, malformed or longer."""
    data = _beside(store, path, "index", index_bytes)
    return None if data is None else read_offset_index(data, base_offset, size_bytes)


def between(index: OffsetIndex, size_bytes: int, first: int, last: int) -> tuple[int, int]:
    """Give the positions in a segment between which the offsets `first` to `last` lie.

    From the last append that ends before the first of them to the end of the one that has the last:
    an entry of the index says where an append begins, and its last offset.
    """
    positions = np.append(index.positions, size_bytes)
    before, at = np.searchsorted(index.offsets, (first, last), "left").tolist()
    return int(positions[before - 1]) if before else 0, int(positions[min(at + 1, len(index))])


def offset_for_time(root: KlogRoot, entry: Entry, timestamp_ms: int, start: int) -> int | None:
    """Give the first offset of the log in a segment, from the log's `start` on, of at least a time.

    Raises `CorruptFileError` for a segment that cannot be read.
    """
    shift, path = entry["offset_shift"], path_of(root, entry)
    whole = _Window(0, min(entry["size_bytes"], MOST_BYTES), start - shift)
    try:
        file = root.store.open(path, file_bytes(entry))
        try:
            found = _by_index(root, file, entry, timestamp_ms, whole)
            if found is None:
                found = _scan(file, entry["size_bytes"], whole, timestamp_ms)
        finally:
            file.close()
    except FileNotFoundError as exc:
        # The state was just loaded, and what a commit takes out stays for a day.
        reason = "the file is missing, and the topic's log names it"
        raise CorruptRecordError(reason).in_file(path, file_partition(entry)) from exc
    except CorruptRecordError as exc:
        raise exc.in_file(path, file_partition(entry)) from exc
    return None if found is None else found + shift


def _by_index(
    root: KlogRoot, file: File, entry: Entry, timestamp_ms: int, whole: _Window
) -> int | None:
    """Look where the indexes say; None where they are of no use or do not fit."""
    window = _window(root, entry, timestamp_ms, whole)
    if window is None:
        return None
    try:
        return _scan(file, entry["size_bytes"], window, timestamp_ms)
    except CorruptRecordError:
        return None


def _window(root: KlogRoot, entry: Entry, timestamp_ms: int, whole: _Window) -> _Window | None:
    """Give where the indexes say that a time is."""
    path, base = path_of(root, entry), first_in_file(entry)
    times = _read_times(root.store, path, base, entry["time_index_bytes"])
    if times is None or not entry["index_bytes"]:
        return None
    before = times.entry_before(timestamp_ms)
    earlier = times.entry(before) if before >= 0 else None
    behind = earlier.offset + 1 if earlier else base
    by = times.entry(before + 1).offset if before + 1 < len(times) else behind
    index = read_index(root.store, path, base, entry["size_bytes"], entry["index_bytes"])
    if index is None or not len(index):
        return None
    begin, end = between(index, entry["size_bytes"], behind, max(by, behind))
    return _Window(begin, min(end - begin, MOST_BYTES), max(behind, whole.sought), earlier)


def _scan(file: File, size_bytes: int, window: _Window, timestamp_ms: int) -> int | None:
    """Look for the time in a window and behind; `CorruptRecordError` where it does not fit."""
    earlier, is_first = window.earlier, True
    for chunk in chunks(file, window.begin, size_bytes, chunk_bytes=window.length):
        batches = chunk.batches
        if is_first and window.begin and int(batches.base_offsets[0]) > window.sought:
            raise CorruptRecordError(f"offset {window.sought} lies before this", chunk.position)
        is_first = False
        if earlier is not None and int(batches.next_offsets[-1]) > earlier.offset:
            found = int(np.searchsorted(batches.next_offsets, earlier.offset, "right"))
            if int(batches.headers["max_timestamp"][found]) != earlier.timestamp_ms:
                raise CorruptRecordError("its time index says another time", chunk.position)
            earlier = None
        offset = first_at_time(chunk, timestamp_ms, window.sought)
        if offset is not None:
            return offset
    return None


def _read_times(store: Store, path: str, base_offset: int, index_bytes: int) -> TimeIndex | None:
    data = _beside(store, path, "timeindex", index_bytes) if index_bytes else None
    return None if data is None else read_time_index(data, base_offset)


def _beside(store: Store, path: str, suffix: str, size_bytes: int) -> bytes | None:
    """Read what lies beside a segment; None if it is missing or longer."""
    try:
        return store.read(index_path(path, suffix), min(size_bytes, MOST_INDEX_BYTES))
    except (FileNotFoundError, InvalidFileError):
        return None


def index_path(path: str, suffix: str) -> str:
    """Give the path of an index beside a segment's log."""
    return f"{path.removesuffix('.log')}.{suffix}"


def first_in_file(entry: Entry) -> int:
    """Give a segment's base offset as its file says it."""
    return int(entry["base_offset"] - entry["offset_shift"])


def file_partition(entry: Entry) -> str:
    """Give the topic-partition of a segment, which its directory is named after."""
    return str(entry["file"]).partition("/")[0]
