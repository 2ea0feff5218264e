"""How large each kind of file under `_klog/` may be, for who reads and who writes it.

The rule: no size is believed that a file, its name or another file says: what is larger than its
kind allows is not read, and klog writes none that is. A large file whose name has its CRC-32C is
read once, in ranges: no more than the first of one that does not begin as a Parquet file.

    format.json, topic.json, adopting.json    SMALL_BYTES
    a reader's lease, a boundary              SMALL_BYTES
    a commit                                  MAX_COMMIT_BYTES
    a sidecar, a checkpoint, a part of one    MAX_TABLE_BYTES
"""

from __future__ import annotations

from io import BytesIO

import google_crc32c

from klog.connector.log.paths import CheckpointName, SidecarName
from klog.connector.store.files import SMALL_BYTES, Store, check_size
from klog.errors import CorruptRecordError, InvalidFileError

__all__ = ["MAX_COMMIT_BYTES", "MAX_TABLE_BYTES", "SMALL_BYTES", "read_named"]

MAX_COMMIT_BYTES = 32 << 20
"""More than klog writes: a commit of more than 1 MiB has a sidecar, so its file has no segments.

For each of 100,000 partitions `setLogStart`, `setLogEnd` and `setCleanedTo` take 30 bytes each,
`post` 42 and a hole 92; a text takes at most 384 KiB. So an adoption has at most 13.2 MB of numbers
and 23 texts, an append that makes its topic 4.2 MB and 58, a repair 16.4 MB and 3: that is 22.2,
27.0 and 17.5 MB. It is no larger because a hostile commit can take 25 times its size in memory.
Writers other than klog need not make sidecars."""
MAX_TABLE_BYTES = 2304 << 20
"""More than any version of klog reads of such a file, and so more than one wrote that it can read.

klog 0.1 bounds what a file holds, not the file: 8,000,000 rows (`parquet.MOST_ROWS`), and 2 GiB in
pages, decompressed (`parquet.MOST_BYTES`). An entry takes some 60 to 90 bytes compressed, which is
480 to 720 MB. But ids of producers do not compress, and an entry has up to 100,000: then pages take
their 2 GiB, and zstd adds less than 1/1000, 2 MiB. The state's JSON is in the footer twice, as it
is and in base64 in Arrow's schema. Arrow reads a text of at most 100 MB: 75 and 100 MB. That is
2 GiB and 169 MiB. In memory there are at most such a file and the 2 GiB that it holds."""
_AT_ONCE_BYTES = 32 << 20
"""A file of up to so many bytes is read in one request."""
_MAGIC = b"PAR1"
"""A Parquet file begins with it."""


def read_named(store: Store, path: str, name: CheckpointName | SidecarName) -> bytes:
    """Read a file whose name says its length and its CRC-32C.

    Raises `InvalidFileError` for one that is larger than its name says or its kind allows, and for
    a large one that is not what its name says; a small one is for the caller to check.
    """
    check_size(path, name.size_bytes, MAX_TABLE_BYTES)
    if name.size_bytes <= _AT_ONCE_BYTES:
        return store.read(path, name.size_bytes)
    data = _read_in_ranges(store, path, name.size_bytes)
    if len(data) != name.size_bytes or google_crc32c.value(data) != name.crc32c:
        raise InvalidFileError(
            f"{path}: its length or its CRC-32C is not the one in its name: it is damaged. Restore "
            "it from a copy"
        )
    return data


def _read_in_ranges(store: Store, path: str, size_bytes: int) -> bytes:
    """Read a Parquet file of this size; of any other file less, or nothing."""
    file = store.open(path, size_bytes)
    data = BytesIO()  # It grows in place, and `getvalue` copies nothing.
    try:
        while file.size_bytes == size_bytes and (begin := data.tell()) < size_bytes:
            part = file.read(begin, min(begin + _AT_ONCE_BYTES, size_bytes))
            if not part or (begin == 0 and not part.startswith(_MAGIC)):
                break
            data.write(part)
    except CorruptRecordError:
        pass  # A store that does not ask for sizes says so of a file that has another one.
    finally:
        file.close()
    return data.getvalue()
