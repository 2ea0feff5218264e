"""What is on the simulated store, and what a loss of power undoes of it.

The rule: a change of a folder is durable once the folder was synced after it, or the store answered
a call that promises so. A loss of power undoes some of the last changes that are not durable,
newest first: file systems and NameNodes keep a journal, in order. A file's bytes are synced before
it gets its name, so no file is torn.
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
        """Everything that was created and not undone, in order: no cleaning takes it away."""
        self.sidecars: dict[str, bytes] = {}
        """By name what was put beside commits, cleaned or not."""
        self.undone: list[str] = []
        """What a loss of power took of what was created; it may have been created again since."""
        self.on_remove: Callable[[str, object], None] | None = None
        """Called with what has just been deleted, and by whom."""
        self._can_lose = can_lose
        self._unsynced: list[tuple[str, bytes | None]] = []
        """The last changes: of which path, and what was there before."""

    def get(self, path: str) -> bytes | None:
        """Give a file's bytes, None if it is not there."""
        folder, _, name = path.rpartition("/")
        return self.folders.get(folder, {}).get(name)

    def put(self, path: str, data: bytes) -> None:
        """Write a file, in place of what is there."""
        if "/sidecars/" in path:
            self.sidecars[path.rpartition("/")[2]] = data
        self._change(path, data)

    def remove(self, path: str, by: object) -> None:
        """Remove a file that may be there."""
        if self.get(path) is not None:
            self._change(path, None)
            if self.on_remove is not None:
                self.on_remove(path, by)

    def take(self, path: str) -> bytes:
        """Lose a file that is there; gives its bytes."""
        data = self.get(path)
        assert data is not None
        self._set(path, None)
        return data

    def create(self, path: str, data: bytes) -> PutResult:
        """Write a file that is not there."""
        if self.get(path) is not None:
            return PutResult.EXISTS
        self._change(path, data)
        self.created.append((path, data))
        return PutResult.CREATED

    def names(self, folder: str) -> list[tuple[str, int, bool]]:
        """List names, sizes and whether it is a folder, in order; `FileNotFoundError` if none."""
        found = {name: (len(data), False) for name, data in self.folders.get(folder, {}).items()}
        for below in self.folders:
            if below.startswith(folder + "/"):
                found[below[len(folder) + 1 :].partition("/")[0]] = (0, True)
        if not found:
            raise FileNotFoundError(folder)
        return sorted((name, *said) for name, said in found.items())

    def paths(self) -> set[str]:
        """Give all files."""
        return {f"{folder}/{name}" for folder, names in self.folders.items() for name in names}

    def sync(self, folder: str) -> None:
        """Make the changes of a folder durable."""
        self._unsynced = [one for one in self._unsynced if one[0].rpartition("/")[0] != folder]

    def lose_power(self, random: Random) -> bool:
        """Undo some of what is not durable; tells whether a creation was undone."""
        keep = random.randrange(len(self._unsynced) + 1)
        undone, self._unsynced = self._unsynced[keep:], []
        kept = self.created[::-1]
        for path, before in reversed(undone):
            data = self.get(path)
            if before is None and data is not None and (path, data) in kept:
                # The last one of that name: the same bytes may have been there before, and count.
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
