"""`memory:`, one process's own store, for tests and for `klog.open`: one winner by a lock.

Why one winner: whether the path is there and the putting are one step under the process's lock, and
a file comes into the dictionary whole. The files are those of fsspec's `memory` file system, so
fsspec shows what klog wrote. Other processes have other files, so Spark's tasks cannot use it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

from klog.connector.store.contract import Put
from klog.connector.store.fsspec_store import FsspecStore

_LOCK = threading.Lock()
"""One for the process, as fsspec's dictionary is."""


class MemoryStore(FsspecStore):
    """The files of fsspec's `memory` file system."""

    reads_at_once = 1

    def __init__(self) -> None:
        """Use the one dictionary that all instances share."""
        self._memory = MemoryFileSystem()
        super().__init__(self._memory)

    def put_if_absent(self, path: str, data: bytes) -> Put:
        """Create `path` under the lock."""
        with _LOCK:
            if _key(path) in self._memory.store:
                return Put.EXISTS
            self._set(path, data)
        return Put.CREATED

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write `path` when all pieces have come."""
        data = b"".join(pieces)
        with _LOCK:
            self._set(path, data)

    def delete(self, path: str) -> None:
        """Remove `path`."""
        with _LOCK:
            self._memory.store.pop(_key(path), None)

    def _set(self, path: str, data: bytes) -> None:
        self._memory.store[_key(path)] = MemoryFile(self._memory, _key(path), data)


def _key(path: str) -> str:
    return "/" + path.strip("/")
