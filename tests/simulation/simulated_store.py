"""The world's store as an actor sees it: klog's store contract, used to its limits.

The rule: what the contract leaves open is random. A listing comes in pages, each of its own time,
so a name that is created or deleted meanwhile may be missing; a name that exists throughout is
listed. A put that returns is durable. A put-if-absent whose sync fails may not be durable, and a
deletion may never be. A checkpoint's bytes may be wrong, which the checksum in its name shows. One
thing goes beyond the contract: with `Scene.has_stale_reads`, a read may miss a commit once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from klog.connector.store.readable_store import DirectoryEntry, check_size, entry_names_after
from klog.connector.store.writable_store import PutResult
from tests.simulation.world import StoreDownError, World

TRIES = 4

Name = tuple[str, int, bool]
"""A name, its file's size, and whether it is a folder."""


class SizeOnlyFile:
    """An open file whose bytes nobody reads."""

    identity = stamp = ""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes

    def read(self, start: int, end: int) -> bytes:
        """Raise an error: the protocol reads whole files, and opens none for its bytes."""
        raise NotImplementedError

    def close(self) -> None:
        """Release nothing."""


class SimulatedStore:
    """A flat space of names."""

    max_parallel_reads = 1

    def __init__(self, world: World) -> None:
        self._world = world
        self._disk = world.disk
        self._page, self._is_disk = world.scene.page, world.scene.is_disk

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """List one level, in no order."""
        folder = directory.rstrip("/")
        names: list[Name] = []
        more = True
        while more:
            page = self._again("list", partial(self._page_of, folder, names))
            names += page
            more = len(page) == self._page
        self._world.random.shuffle(names)
        return [
            DirectoryEntry(name, f"{folder}/{name}", size, is_folder)
            for name, size, is_folder in names
        ]

    def _page_of(self, folder: str, before: list[Name]) -> list[Name]:
        """Return the next names; a folder that is empty by now has none."""
        if not before:
            return self._disk.names(folder)[: self._page]
        with suppress(FileNotFoundError):
            names = self._disk.names(folder)
            return [entry for entry in names if entry[0] > before[-1][0]][: self._page]
        return []

    def names_after(self, directory: str, name: str) -> list[str]:
        """Return the names that sort after `name`."""
        return entry_names_after(self, directory, name)

    def open(self, path: str, size_bytes: int | None = None) -> SizeOnlyFile:
        """Open a file; nobody asks for more than its size."""
        return SizeOnlyFile(len(self._again("open", lambda: self._read(path, None))))

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """Read a file."""
        return bytes(self._again("read", lambda: self._read(path, max_bytes)))

    def _read(self, path: str, max_bytes: int | None) -> bytes:
        data = self._disk.get(path)
        if data is None or ("/log/" in path and self._world.is_missed(path)):
            raise FileNotFoundError(path)
        check_size(path, len(data), max_bytes)
        return data

    def _again(self, kind: str, call: Callable[[], Any]) -> Any:
        """Retry while there is no answer, as stores' clients do for idempotent requests."""
        for _ in range(TRIES - 1):
            try:
                return self._world.request(kind, call)
            except StoreDownError:
                continue
        return self._world.request(kind, call)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Create a file."""
        result: PutResult = self._world.request("create", partial(self._create, path, data))
        if self._is_disk and result is not PutResult.UNKNOWN:
            try:
                self._sync(path)
            except StoreDownError:
                return PutResult.UNKNOWN
        return result

    def _create(self, path: str, data: bytes) -> PutResult:
        """Create a file; a checkpoint may be torn or damaged from the start."""
        chance = self._world.random.random()
        if chance < 0.2 and path.endswith(".parquet"):
            torn, changed = data[: len(data) // 2], data[:-9] + bytes(1) + data[-8:]
            data = torn if chance < 0.1 else changed
        put = self._disk.create(path, data)
        if put is PutResult.CREATED:
            self._world.note_created(path)
        return put

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file."""
        data = b"".join(pieces)
        self._again("put", lambda: self._disk.put(path, data))
        if self._is_disk:
            self._sync(path)

    def delete(self, path: str) -> None:
        """Remove a file."""
        by = self._world.current_actor()
        self._world.request("delete", lambda: self._disk.remove(path, by))

    def _sync(self, path: str) -> None:
        self._world.request("sync", lambda: self._disk.sync(path.rpartition("/")[0]))
