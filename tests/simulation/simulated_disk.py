"""The files on the simulated store, and the changes that a power loss undoes.

The rule: a change of a folder is durable after a sync of the folder, or after the answer of a call
that promises durability. A power loss undoes some of the last changes that are not durable, newest
first: file systems and NameNodes keep an ordered journal. A file's bytes are synced before it gets
its name, so no file is torn.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from klog.connector.store.writable_store import PutResult


class Disk:
    """Files by folder and name."""

    def __init__(self, can_lose: bool) -> None:
        self.folders: dict[str, dict[str, bytes]] = {}
        self.created: list[tuple[str, bytes]] = []
        """All files created and not undone, in order, deleted ones too."""
        self.sidecars: dict[str, bytes] = {}
        """All sidecars by name, deleted ones too."""
        self.undone: list[str] = []
        """Created files that a power loss undid; they may have been created again since."""
        self.on_remove: Callable[[str, object], None] | None = None
        """Called with the path of a deleted file, and the actor."""
        self._can_lose = can_lose
        self._unsynced: list[tuple[str, bytes | None]] = []
        """The last changes: the path, and the bytes before."""

    def get(self, path: str) -> bytes | None:
        """Return a file's bytes, None without one."""
        folder, _, name = path.rpartition("/")
        return self.folders.get(folder, {}).get(name)

    def put(self, path: str, data: bytes) -> None:
        """Write a file; replace an existing one."""
        if "/sidecars/" in path:
            self.sidecars[path.rpartition("/")[2]] = data
        self._change(path, data)

    def remove(self, path: str, by: object) -> None:
        """Remove a file if it exists."""
        if self.get(path) is not None:
            self._change(path, None)
            if self.on_remove is not None:
                self.on_remove(path, by)

    def lose(self, path: str) -> bytes:
        """Lose an existing file; return its bytes."""
        data = self.get(path)
        assert data is not None
        self._set(path, None)
        return data

    def create(self, path: str, data: bytes) -> PutResult:
        """Write a file if it does not exist."""
        if self.get(path) is not None:
            return PutResult.EXISTS
        self._change(path, data)
        self.created.append((path, data))
        return PutResult.CREATED

    def names(self, folder: str) -> list[tuple[str, int, bool]]:
        """Return sorted names with size and is-folder; raise `FileNotFoundError` without any."""
        entries = {name: (len(data), False) for name, data in self.folders.get(folder, {}).items()}
        for below in self.folders:
            if below.startswith(folder + "/"):
                entries[below[len(folder) + 1 :].partition("/")[0]] = (0, True)
        if not entries:
            raise FileNotFoundError(folder)
        return sorted((name, *entry) for name, entry in entries.items())

    def paths(self) -> set[str]:
        """Return the paths of all files."""
        return {f"{folder}/{name}" for folder, names in self.folders.items() for name in names}

    def sync(self, folder: str) -> None:
        """Make the changes of a folder durable."""
        self._unsynced = [
            change for change in self._unsynced if change[0].rpartition("/")[0] != folder
        ]

    def lose_power(self, random: Random) -> bool:
        """Undo some changes that are not durable; return whether a creation was undone."""
        keep = random.randrange(len(self._unsynced) + 1)
        undone, self._unsynced = self._unsynced[keep:], []
        kept = self.created[::-1]
        for path, before in reversed(undone):
            data = self.get(path)
            if before is None and data is not None and (path, data) in kept:
                # The last one of that name: an earlier one with the same bytes still counts.
                kept.remove((path, data))
                self.undone.append(path)
            self._set(path, before)
        has_lost = len(kept) < len(self.created)
        self.created = kept[::-1]
        return has_lost

    def _change(self, path: str, data: bytes | None) -> None:
        if self._can_lose:
            self._unsynced.append((path, self.get(path)))
        self._set(path, data)

    def _set(self, path: str, data: bytes | None) -> None:
        folder, _, name = path.rpartition("/")
        names = self.folders.setdefault(folder, {})
        if data is None:
            names.pop(name, None)
        else:
            names[name] = data
        if not names:
            del self.folders[folder]
