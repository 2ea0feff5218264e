"""`memory:`, the store of one process, for tests and for `klog.open`: one winner by a lock.

Why one winner: a look whether the path exists and the put are one step under the process's lock,
and a file comes into the dictionary complete. The files are those of fsspec's `memory` file system,
so fsspec shows what klog wrote. Other processes have other files, so Spark's tasks cannot use it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

from klog.connector.store.fsspec_store import FsspecStore
from klog.connector.store.writable_store import PutResult

_LOCK = threading.Lock()
"""One for the process, as there is one dictionary of fsspec's."""


class MemoryStore(FsspecStore):
    """The files of fsspec's `memory` file system."""

    max_parallel_reads = 1

    def __init__(self) -> None:
        """Use the one dictionary that all instances share."""
        self._memory = MemoryFileSystem()
        super().__init__(self._memory)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See `WritableStore.put_if_absent`."""
        with _LOCK:
            if _key(path) in self._memory.store:
                return PutResult.EXISTS
            self._set(path, data)
        return PutResult.CREATED

    def put(self, path: str, chunks: Iterable[bytes]) -> None:
        """See `WritableStore.put`."""
        data = b"".join(chunks)
        with _LOCK:
            self._set(path, data)

    def delete(self, path: str) -> None:
        """See `WritableStore.delete`."""
        with _LOCK:
            self._memory.store.pop(_key(path), None)

    def _set(self, path: str, data: bytes) -> None:
        self._memory.store[_key(path)] = MemoryFile(self._memory, _key(path), data)


def _key(path: str) -> str:
    return "/" + path.strip("/")
