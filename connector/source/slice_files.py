"""Open the very file that a slice was planned on.

The rule: the file that a commit names never changes, so it has the size that its commit says. A
broker's file is the one that has the identity, the stamp and the size of the plan. A broker that
has cleaned or expired it meanwhile keeps the old bytes as `.deleted` for a while, and they are read
from there.
"""

from __future__ import annotations

from klog.connector.kafka_dir.partition_directory import read_partition_topic_id
from klog.connector.source.slices import UNKNOWN, Slice, SliceChangedError
from klog.connector.store.readable_store import File, ReadableStore
from klog.errors import CorruptRecordError


def open_slice_file(store: ReadableStore, slice_: Slice) -> File:
    """Open the file of a slice.

    Args:
        store: The store of the slice's root.
        slice_: The slice.

    Raises:
        SliceChangedError: If a broker's file is another one now, or its topic was deleted.
        FileNotFoundError: If a committed file has gone.
        CorruptFileError: If a committed file has another size than its commit says.
    """
    return _open_committed(store, slice_) if slice_.is_committed else _open_raw(store, slice_)


def _open_committed(store: ReadableStore, slice_: Slice) -> File:
    size_bytes = slice_.file_size_bytes
    file = store.open(slice_.path, size_bytes)
    if file.size_bytes == size_bytes:
        return file
    file.close()
    reason = f"it has {file.size_bytes} bytes, its commit says {size_bytes}"
    position = min(file.size_bytes, size_bytes)
    raise CorruptRecordError(reason, position).in_file(slice_.path, slice_.name)


def _open_raw(store: ReadableStore, slice_: Slice) -> File:
    path = slice_.path
    if read_partition_topic_id(store, path.rpartition("/")[0]) != slice_.topic_id:
        raise SliceChangedError("the topic was deleted")
    for candidate in (path, f"{path}.deleted"):
        try:
            file = store.open(candidate)
        except FileNotFoundError:
            continue
        if _is_planned_file(slice_, file):
            return file
        file.close()
    raise SliceChangedError(f"{path} is another file now")


def _is_planned_file(slice_: Slice, file: File) -> bool:
    if file.identity != slice_.identity or slice_.stamp not in ("", file.stamp):
        return False
    if slice_.file_size_bytes not in (UNKNOWN, file.size_bytes):
        return False
    return file.size_bytes >= slice_.end_position
