"""Files that a broker keeps next to its logs: indexes, snapshots, checkpoints, metadata.

The rule: no such file is needed. One that is missing, is not a regular file, or is larger than any
of its kind can be, counts as malformed: the log says what it would say.
"""

from __future__ import annotations

from klog.connector.store.readable_store import (
    MAX_INDEX_BYTES,
    MAX_SMALL_FILE_BYTES,
    ReadableStore,
)
from klog.errors import InvalidFileError

MAX_TEXT_BYTES = 64 << 20
"""A file with a line for each partition, or for each leader epoch: 200,000 lines of the longest
names."""
_MAX_BYTES = {
    "partition.metadata": MAX_SMALL_FILE_BYTES,
    "meta.properties": MAX_SMALL_FILE_BYTES,
    ".kafka_cleanshutdown": MAX_SMALL_FILE_BYTES,
    "leader-epoch-checkpoint": MAX_TEXT_BYTES,
    "cleaner-offset-checkpoint": MAX_TEXT_BYTES,
    "log-start-offset-checkpoint": MAX_TEXT_BYTES,
    "recovery-point-offset-checkpoint": MAX_TEXT_BYTES,
    "replication-offset-checkpoint": MAX_TEXT_BYTES,
    "klog-export.unfinished": MAX_TEXT_BYTES,
}


def max_companion_bytes(name: str) -> int:
    """Return how large a companion file of this name may be.

    Args:
        name: The name of the file, without its directory.
    """
    return _MAX_BYTES.get(name, MAX_INDEX_BYTES)


def read_companion_file(store: ReadableStore, path: str) -> bytes | None:
    """Read a companion file.

    Args:
        store: The store of the file.
        path: The path of the file.

    Returns:
        The bytes; None if the file is missing, is not a regular file or is too large.
    """
    try:
        return store.read(path, max_companion_bytes(path.rpartition("/")[2]))
    except (FileNotFoundError, InvalidFileError):
        return None
