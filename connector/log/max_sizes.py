"""How large each kind of file under `_klog/` may be, for who reads and who writes it.

The rule: no size is believed that a file, its name or another file says: what is larger than its
kind allows is not read, and klog writes none that is. A file whose name has its CRC-32C is taken
into memory only when it has that: a large one is read in ranges for it first.

    format.json, topic.json, adopting.json    SMALL_BYTES
    a reader's lease, a boundary              SMALL_BYTES
    a commit                                  MAX_COMMIT_BYTES
    a sidecar, a checkpoint, a part of one    MAX_TABLE_BYTES
"""

from __future__ import annotations

import google_crc32c

from klog.connector.log.paths import CheckpointName, SidecarName
from klog.connector.store.files import SMALL_BYTES, Store, check_size
from klog.errors import InvalidFileError

__all__ = ["MAX_COMMIT_BYTES", "MAX_TABLE_BYTES", "SMALL_BYTES", "read_named"]

MAX_COMMIT_BYTES = 32 << 20
"""More than klog writes: a commit of more than 1 MiB has a sidecar, so its file has no segments.

For each of 100,000 partitions `setLogStart`, `setLogEnd` and `setCleanedTo` take 30 bytes each,
`post` 42 and a hole 92; a text takes at most 384 KiB. So an adoption has at most 13.2 MB of numbers
and 23 texts, an append that makes its topic 4.2 MB and 58, a repair 16.4 MB and 3: that is 22.2,
27.0 and 17.5 MB. It is no larger because a hostile commit can take 25 times its size in memory.
Writers other than klog need not make sidecars."""
MAX_TABLE_BYTES = 512 << 20
"""`parquet.MOST_ROWS` segments take some 60 bytes each, compressed."""
_AT_ONCE_BYTES = 32 << 20
"""A file of up to so many bytes is read in one request, and checked by who decodes it."""


def read_named(store: Store, path: str, name: CheckpointName | SidecarName) -> bytes:
    """Read a file whose name says its length and its CRC-32C.

    Raises `InvalidFileError` for one that is larger than its name says or its kind allows, and for
    a large one that is not what its name says; a small one is for the caller to check.
    """
    check_size(path, name.size_bytes, MAX_TABLE_BYTES)
    if name.size_bytes > _AT_ONCE_BYTES:
        _check(store, path, name)
    return store.read(path, name.size_bytes)


def _check(store: Store, path: str, name: CheckpointName | SidecarName) -> None:
    """Read a file in ranges, each forgotten, and compare it with its name."""
    file = store.open(path)
    try:
        crc = begin = 0
        while file.size_bytes == name.size_bytes and begin < file.size_bytes:
            data = file.read(begin, begin + _AT_ONCE_BYTES)
            if not data:
                break
            crc = google_crc32c.extend(crc, data)
            begin += len(data)
    finally:
        file.close()
    if begin != name.size_bytes or crc != name.crc32c:
        raise InvalidFileError(
            f"{path}: its length or its CRC-32C is not the one in its name: it is damaged. Restore "
            "it from a copy"
        )
