"""What reading asks of a store: list a directory, read a range, know a file again.

On local disk an open file keeps its bytes when a broker renames or deletes it, so a file is known
by its inode; elsewhere by what the store says of it (ETag, version or modification time).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory; `path` is what `open` takes."""

    name: str
    path: str
    size_bytes: int
    is_directory: bool


class File(Protocol):
    """An open file, as of its opening.

    `identity` is the same for as long as the file is; `stamp` changes when its bytes do.
    """

    size_bytes: int
    identity: str
    stamp: str

    def read(self, begin: int, end: int) -> bytes:
        """Read from `begin` to before `end`; fewer bytes only at the end of the file."""

    def close(self) -> None:
        """Give the file back."""


class Store(Protocol):
    """A place that holds files.

    A missing file or directory is `FileNotFoundError`, a file where a directory was asked for
    `NotADirectoryError`; what else goes wrong (no permission, no such bucket) is a `KlogError`.
    """

    def entries(self, directory: str) -> list[Entry]:
        """List a directory, one level deep, in the order of names."""

    def open(self, path: str, size_bytes: int | None = None) -> File:
        """Open a file for reading ranges.

        Where `size_bytes` is known, of a file that never changes, a store need not ask for it: the
        first read then tells that the file is missing, or with `CorruptRecordError` that it has
        another size.
        """

    def read(self, path: str) -> bytes:
        """Read a whole small file."""
