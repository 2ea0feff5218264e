"""Files that a broker keeps beside its logs: indexes, snapshots, checkpoints, partition.metadata.

The rule: none of them is needed. One that is missing, no regular file, or larger than any of its
kind has to be, is as one that is malformed: what it would say comes from the log.
"""

from __future__ import annotations

from klog.connector.store.files import SMALL_BYTES, Store
from klog.errors import InvalidFileError

MOST_INDEX_BYTES = 256 << 20
"""An index of the largest segment, 2 GiB, has an entry of 8 or 12 bytes for every batch, of some
hundred bytes at least; a broker's own have `segment.index.bytes`, 10 MiB. Snapshots of producers,
of some 50 bytes each, and transaction indexes are smaller. It is for memory, not a rule of Kafka's.
"""
MAX_TEXT_BYTES = 64 << 20
"""A file with a line for each partition, or for each leader epoch: 200,000 lines of the longest
names."""
_MAX_BYTES = {
    "partition.metadata": SMALL_BYTES,
    "meta.properties": SMALL_BYTES,
    ".kafka_cleanshutdown": SMALL_BYTES,
    "leader-epoch-checkpoint": MAX_TEXT_BYTES,
    "cleaner-offset-checkpoint": MAX_TEXT_BYTES,
    "log-start-offset-checkpoint": MAX_TEXT_BYTES,
    "recovery-point-offset-checkpoint": MAX_TEXT_BYTES,
    "replication-offset-checkpoint": MAX_TEXT_BYTES,
    "klog-export.unfinished": MAX_TEXT_BYTES,
}


def max_bytes_of(name: str) -> int:
    """Return the most bytes that are read of a file of this name."""
    return _MAX_BYTES.get(name, MOST_INDEX_BYTES)


def read_beside(store: Store, path: str) -> bytes | None:
    """Read such a file whole; None where it cannot be believed."""
    try:
        return store.read(path, max_bytes_of(path.rpartition("/")[2]))
    except (FileNotFoundError, InvalidFileError):
        return None
