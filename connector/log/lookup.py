"""Where in a committed segment an offset or a time is: at most two small reads before the data.

The rule: a commit has said how long the segment and its indexes are, so an index is read in one
request and believed, not tried at the log first as a broker's must be. What does not fit shows when
the data is read: then the segment is read from its start. A segment without indexes is small, and
read from its start at once. All offsets here are as the file says them but for those that the
names say are the log's.
"""

from __future__ import annotations

from klog.connector.log.entries import Entry
from klog.connector.log.root import KlogRoot
from klog.connector.log.segment import chunks
from klog.connector.log.times import first_at_time
from klog.connector.store.files import File, Store
from klog.errors import CorruptRecordError
from klog.logformat.offset_index import OffsetIndex, read_offset_index
from klog.logformat.time_index import read_time_index

LOOK_BYTES = 256 << 10
"""Read at a time while a record is looked for: a batch or a few."""


def path_of(root: KlogRoot, entry: Entry) -> str:
    """Give the path of a segment's file as the store spells it."""
    return f"{root.path}/{entry['file']}"


def read_index(store: Store, path: str, base_offset: int, size_bytes: int) -> OffsetIndex | None:
    """Read the offset index of a segment, `path`; None if it is missing or malformed."""
    try:
        data = store.read(index_path(path, "index"))
    except FileNotFoundError:
        return None
    return read_offset_index(data, base_offset, size_bytes)


def position_before(root: KlogRoot, entry: Entry, offset: int) -> int:
    """Give a position from which a scan meets the batch of an offset of the log."""
    wanted, first = offset - entry["offset_shift"], first_in_file(entry)
    if wanted <= first or not entry["index_bytes"]:
        return 0
    index = read_index(root.store, path_of(root, entry), first, entry["size_bytes"])
    return 0 if index is None else index.position_before(wanted)


def offset_for_time(root: KlogRoot, entry: Entry, timestamp_ms: int, start: int) -> int | None:
    """Give the first offset of the log in a segment, from `start` on, of at least this time.

    Raises `CorruptFileError` for a segment that cannot be read.
    """
    shift, path = entry["offset_shift"], path_of(root, entry)
    sought = max(_behind_earlier(root, entry, timestamp_ms), start - shift)
    position = position_before(root, entry, sought + shift)
    file = root.store.open(path, entry["size_bytes"])
    try:
        try:
            found = _scan(file, position, entry, sought, timestamp_ms)
        except CorruptRecordError:
            if not position:
                raise
            found = _scan(file, 0, entry, start - shift, timestamp_ms)
    except CorruptRecordError as exc:
        raise exc.in_file(path, file_partition(entry)) from exc
    finally:
        file.close()
    return None if found is None else found + shift


def _scan(file: File, position: int, entry: Entry, sought: int, timestamp_ms: int) -> int | None:
    """Look for the time from `sought` on; `CorruptRecordError` where its batch is not there."""
    is_first = True
    for chunk in chunks(file, position, entry["size_bytes"], chunk_bytes=LOOK_BYTES):
        if is_first and position and int(chunk.batches.base_offsets[0]) > sought:
            raise CorruptRecordError(f"offset {sought} lies before this", position)
        is_first = False
        found = first_at_time(chunk, timestamp_ms, sought)
        if found is not None:
            return found
    return None


def _behind_earlier(root: KlogRoot, entry: Entry, timestamp_ms: int) -> int:
    """Give an offset of the file before which, by the time index, all records are earlier."""
    if not entry["time_index_bytes"]:
        return first_in_file(entry)
    try:
        data = root.store.read(index_path(path_of(root, entry), "timeindex"))
    except FileNotFoundError:
        return first_in_file(entry)
    index = read_time_index(data, first_in_file(entry))
    number = -1 if index is None else index.entry_before(timestamp_ms)
    return first_in_file(entry) if index is None or number < 0 else int(index.offsets[number]) + 1


def index_path(path: str, suffix: str) -> str:
    """Give the path of an index beside a segment's log."""
    return f"{path.removesuffix('.log')}.{suffix}"


def first_in_file(entry: Entry) -> int:
    """Give a segment's base offset as its file says it."""
    return int(entry["base_offset"] - entry["offset_shift"])


def file_partition(entry: Entry) -> str:
    """Give the topic-partition of a segment, which its directory is named after."""
    return str(entry["file"]).partition("/")[0]
