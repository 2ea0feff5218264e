"""The files on a disk after a loss of power: a record of system calls, with what was synced.

Bytes are durable after a sync of their file. A name, or its removal, is durable after a sync of its
directory. The rest may be there or not, and the tests try both extremes: `durable_files` has only
durable names and bytes, `named_files` has every name but only the durable bytes.
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
    """The contents of a directory tree; `root` itself is durable."""

    root: str
    names: dict[str, Inode] = field(default_factory=dict)
    durable: dict[str, Inode] = field(default_factory=dict)
    descriptors: dict[int, str] = field(default_factory=dict)

    def durable_files(self) -> dict[str, bytes]:
        """Return the files with durable names, with their durable bytes."""
        return {
            path: inode.synced
            for path, inode in self.durable.items()
            if not inode.is_directory and self._is_reachable(path)
        }

    def named_files(self) -> dict[str, bytes]:
        """Return the files with their current names and durable bytes."""
        return {p: inode.synced for p, inode in self.names.items() if not inode.is_directory}

    def _is_reachable(self, path: str) -> bool:
        above = os.path.dirname(path)  # noqa: PTH120
        return above == self.root or (above in self.durable and self._is_reachable(above))

    def record(self, name: str, arguments: tuple[Any, ...], result: Any) -> None:
        """Record a system call."""
        getattr(self, f"_{name}")(arguments, result)

    def _open(self, arguments: tuple[Any, ...], descriptor: int) -> None:
        path = str(arguments[0])
        self.descriptors[descriptor] = path
        if arguments[1] & os.O_CREAT:
            self.names[path] = Inode()

    def _write(self, arguments: tuple[Any, ...], size: int) -> None:
        inode = self.names[self.descriptors[arguments[0]]]
        inode.written += bytes(arguments[1][:size])

    def _fsync(self, arguments: tuple[Any, ...], result: None) -> None:
        path = self.descriptors[arguments[0]]
        inode = self.names.get(path)
        if inode is not None and not inode.is_directory:
            inode.synced = inode.written
            return
        for known in {*self.names, *self.durable}:
            if os.path.dirname(known) == path:  # noqa: PTH120
                if known in self.names:
                    self.durable[known] = self.names[known]
                else:
                    del self.durable[known]

    def _link(self, arguments: tuple[Any, ...], result: None) -> None:
        self.names[str(arguments[1])] = self.names[str(arguments[0])]

    def _replace(self, arguments: tuple[Any, ...], result: None) -> None:
        self.names[str(arguments[1])] = self.names.pop(str(arguments[0]))

    def _mkdir(self, arguments: tuple[Any, ...], result: None) -> None:
        self.names[str(arguments[0])] = Inode(is_directory=True)

    def _unlink(self, arguments: tuple[Any, ...], result: None) -> None:
        del self.names[str(arguments[0])]


@contextmanager
def recording(disk: Disk, on_call: Callable[[str], None]) -> Iterator[None]:
    """Note what this process asks of the kernel below the root; `each` is told of every call."""
    usual = {name: getattr(os, name) for name in CALLS}

    def recorded(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            result = real(*arguments, **named)
            path = str(disk.descriptors.get(arguments[0], arguments[0]))
            if path.startswith(disk.root) or name == "open":
                disk.record(name, arguments, result)
                on_call(f"{name} {path}")
            return result

        return call

    for name, real in usual.items():
        setattr(os, name, recorded(name, real))
    try:
        yield
    finally:
        for name, real in usual.items():
            setattr(os, name, real)
