"""Files that a broker keeps beside its logs: indexes, snapshots, checkpoints, partition.metadata.

The rule: none of them is needed. One that is missing, or larger than any of them has to be, is as
one that is malformed: what it would say comes from the log.
"""

from __future__ import annotations

from klog.connector.store.files import Store
from klog.errors import FileTooLargeError

MOST_INDEX_BYTES = 256 << 20
"""An index of the largest segment, 2 GiB, has an entry of 8 or 12 bytes for every batch, of some
hundred bytes at least; a broker's own have `segment.index.bytes`, 10 MiB. The other kinds are
smaller, and one limit does for all: it is for memory, not a rule of Kafka's."""


def read_beside(store: Store, path: str) -> bytes | None:
    """Read such a file whole; None where it cannot be believed."""
    try:
        return store.read(path, MOST_INDEX_BYTES)
    except (FileNotFoundError, FileTooLargeError):
        return None
