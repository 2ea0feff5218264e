"""A disk as it is found after a loss of power: what was asked of the kernel, and what was synced.

Bytes are certain once their file was synced, a name once its directory was; so is a removal. What
is not certain may be there or not, and two ends of that are tried: `strict` has only what is
certain, `eager` has every name as it was, but of the bytes only the certain ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

CALLS = ("open", "write", "fsync", "link", "replace", "mkdir", "unlink")


@dataclass
class Inode:
    """A file's bytes, or a directory."""

    is_directory: bool = False
    written: bytes = b""
    synced: bytes = b""


@dataclass
class Disk:
    """What a directory and all below it hold; `root` itself is certain."""

    root: str
    names: dict[str, Inode] = field(default_factory=dict)
    certain: dict[str, Inode] = field(default_factory=dict)
    descriptors: dict[int, str] = field(default_factory=dict)

    def strict(self) -> dict[str, bytes]:
        """Give the files that are certain to be there, with the bytes that are."""
        return {
            path: inode.synced
            for path, inode in self.certain.items()
            if not inode.is_directory and self._is_reachable(path)
        }

    def eager(self) -> dict[str, bytes]:
        """Give the files by the names of this moment, with the bytes that are certain."""
        return {p: inode.synced for p, inode in self.names.items() if not inode.is_directory}

    def _is_reachable(self, path: str) -> bool:
        above = os.path.dirname(path)  # noqa: PTH120
        return above == self.root or (above in self.certain and self._is_reachable(above))

    def take(self, name: str, arguments: tuple[Any, ...], found: Any) -> None:
        """Note a call that was made."""
        getattr(self, f"_{name}")(arguments, found)

    def _open(self, arguments: tuple[Any, ...], found: int) -> None:
        path = str(arguments[0])
        self.descriptors[found] = path
        if arguments[1] & os.O_CREAT:
            self.names[path] = Inode()

    def _write(self, arguments: tuple[Any, ...], found: int) -> None:
        inode = self.names[self.descriptors[arguments[0]]]
        inode.written += bytes(arguments[1][:found])

    def _fsync(self, arguments: tuple[Any, ...], found: None) -> None:
        path = self.descriptors[arguments[0]]
        inode = self.names.get(path)
        if inode is not None and not inode.is_directory:
            inode.synced = inode.written
            return
        for known in {*self.names, *self.certain}:
            if os.path.dirname(known) == path:  # noqa: PTH120
                if known in self.names:
                    self.certain[known] = self.names[known]
                else:
                    del self.certain[known]

    def _link(self, arguments: tuple[Any, ...], found: None) -> None:
        self.names[str(arguments[1])] = self.names[str(arguments[0])]

    def _replace(self, arguments: tuple[Any, ...], found: None) -> None:
        self.names[str(arguments[1])] = self.names.pop(str(arguments[0]))

    def _mkdir(self, arguments: tuple[Any, ...], found: None) -> None:
        self.names[str(arguments[0])] = Inode(is_directory=True)

    def _unlink(self, arguments: tuple[Any, ...], found: None) -> None:
        del self.names[str(arguments[0])]


@contextmanager
def noted(disk: Disk, each: Callable[[str], None]) -> Iterator[None]:
    """Note what this process asks of the kernel below the root; `each` is told of every call."""
    usual = {name: getattr(os, name) for name in CALLS}

    def noting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            found = real(*arguments, **named)
            path = str(disk.descriptors.get(arguments[0], arguments[0]))
            if path.startswith(disk.root) or name == "open":
                disk.take(name, arguments, found)
                each(f"{name} {path}")
            return found

        return call

    for name, real in usual.items():
        setattr(os, name, noting(name, real))
    try:
        yield
    finally:
        for name, real in usual.items():
            setattr(os, name, real)
