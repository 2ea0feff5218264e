"""How large each kind of file under `_klog/` may be, for those who read and who write it.

    format.json, topic.json, adopting.json        MAX_SMALL_FILE_BYTES
    a snapshot lease, the last expired version    MAX_SMALL_FILE_BYTES
    a commit                                      MAX_COMMIT_BYTES
    a sidecar, a checkpoint, a part of one        MAX_TABLE_BYTES

The rule: no size is believed, whether the file, its name or another file says it. klog reads and
writes no file that is larger than its kind allows. A large file whose name has its CRC-32C is read
in ranges, and only the first range if it does not begin like a Parquet file.
"""

from __future__ import annotations

from io import BytesIO

from klog.connector.commit_log.commit_log_paths import CheckpointName, SidecarName, is_intact
from klog.connector.store.readable_store import MAX_SMALL_FILE_BYTES, ReadableStore, check_size
from klog.errors import CorruptRecordError, InvalidFileError

__all__ = ["MAX_COMMIT_BYTES", "MAX_SMALL_FILE_BYTES", "MAX_TABLE_BYTES", "read_named"]

MAX_COMMIT_BYTES = 32 << 20
"""The largest commit that klog writes has 27 MB.

A commit of more than 1 MiB has a sidecar, so its file has no segments. For each of 100,000
partitions, `setLogStart`, `setLogEnd` and `setCleanedTo` take 30 bytes each, `post` 42 and a hole
92; a text takes at most 384 KiB. So an adoption has at most 13.2 MB of numbers and 23 texts, an
append that creates its topic 4.2 MB and 58, a repair 16.4 MB and 3: that is 22.2, 27.0 and 17.5 MB.
The limit is no higher because a hostile commit can take 25 times its size in memory. Writers other
than klog need not write sidecars."""
MAX_TABLE_BYTES = 2304 << 20
"""No version of klog has written a larger table that it can read.

klog 0.1 limits what a file holds, not the file: 8,000,000 rows (`parquet_tables.MAX_ROWS`), and
2 GiB in pages, decompressed (`parquet_tables.MAX_BYTES`). An entry takes some 60 to 90 bytes
compressed, which is 480 to 720 MB. But producer ids do not compress, and an entry has up to
100,000: then pages take their 2 GiB, and zstd adds less than 1/1000, 2 MiB. The footer has the JSON
of the state twice, plain and as base64 in Arrow's schema. Arrow reads a text of at most 100 MB: 75
and 100 MB. That is 2 GiB and 169 MiB. Memory holds at most such a file and the 2 GiB in it."""
_MAX_READ_BYTES = 32 << 20
"""The largest file, and range of a file, that is read in one request."""
_PARQUET_MAGIC = b"PAR1"


def read_named(store: ReadableStore, path: str, name: CheckpointName | SidecarName) -> bytes:
    """Read a file whose name says its length and its CRC-32C.

    Args:
        store: The store of the file.
        path: The path of the file.
        name: The parsed name.

    Returns:
        The bytes. Only those of a large file are checked: a caller checks the others.

    Raises:
        InvalidFileError: The file is larger than its name says or its kind allows, or a large file
            is not what its name says.
    """
    check_size(path, name.size_bytes, MAX_TABLE_BYTES)
    if name.size_bytes <= _MAX_READ_BYTES:
        return store.read(path, name.size_bytes)
    data = _read_in_ranges(store, path, name.size_bytes)
    if not is_intact(name, data):
        raise InvalidFileError(
            f"{path}: its length or its CRC-32C is not the one in its name: it is damaged. Restore "
            "it from a copy"
        )
    return data


def _read_in_ranges(store: ReadableStore, path: str, size_bytes: int) -> bytes:
    """Read a Parquet file of this size; stop early if the file is another one."""
    file = store.open(path, size_bytes)
    data = BytesIO()  # It grows in place, and `getvalue` copies nothing.
    try:
        while file.size_bytes == size_bytes and (position := data.tell()) < size_bytes:
            chunk = file.read(position, min(position + _MAX_READ_BYTES, size_bytes))
            if not chunk or (position == 0 and not chunk.startswith(_PARQUET_MAGIC)):
                break
            data.write(chunk)
    except CorruptRecordError:
        pass  # A store that is not asked for the size raises this if the file has another one.
    finally:
        file.close()
    return data.getvalue()
