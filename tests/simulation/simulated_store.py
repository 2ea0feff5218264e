"""The world's store, as an actor sees it: klog's store contract, used to its limits.

The rule: what the contract leaves open is drawn. A listing comes in pages, each of its own moment,
so a name that is created or deleted meanwhile may or may not be in it; one that is there throughout
is. A put that is answered is durable. A put-if-absent whose sync fails is not known to be. A
deletion is never known to be. A checkpoint may not be what was put: its name tells. One thing goes
beyond the contract: where `Scene.lags`, a read may miss a commit once that is there.
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
        found: list[Name] = []
        more = True
        while more:
            page = self._again("list", partial(self._page_of, folder, found))
            found += page
            more = len(page) == self._page
        self._world.random.shuffle(found)
        return [
            DirectoryEntry(name, f"{folder}/{name}", size, is_folder)
            for name, size, is_folder in found
        ]

    def _page_of(self, folder: str, before: list[Name]) -> list[Name]:
        """Give the names that follow; a folder that has emptied meanwhile has none."""
        if not before:
            return self._disk.names(folder)[: self._page]
        with suppress(FileNotFoundError):
            names = self._disk.names(folder)
            return [one for one in names if one[0] > before[-1][0]][: self._page]
        return []

    def names_after(self, directory: str, name: str) -> list[str]:
        """List the names that sort after one."""
        return entry_names_after(self, directory, name)

    def open(self, path: str, size_bytes: int | None = None) -> Any:
        """No protocol opens files."""
        raise NotImplementedError

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
        """Ask again while there is no answer, as every store's client does where it is harmless."""
        for _ in range(TRIES - 1):
            try:
                return self._world.hand_over(kind, call)
            except StoreDownError:
                continue
        return self._world.hand_over(kind, call)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Create a file."""
        found: PutResult = self._world.hand_over("create", partial(self._create, path, data))
        if self._is_disk and found is not PutResult.UNKNOWN:
            try:
                self._sync(path)
            except StoreDownError:
                return PutResult.UNKNOWN
        return found

    def _create(self, path: str, data: bytes) -> PutResult:
        """Create a file; a checkpoint may be torn or changed from its beginning."""
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
        by = self._world.acting()
        self._world.hand_over("delete", lambda: self._disk.remove(path, by))

    def _sync(self, path: str) -> None:
        self._world.hand_over("sync", lambda: self._disk.sync(path.rpartition("/")[0]))
