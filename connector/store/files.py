"""What reading asks of a store: list a directory, read a range, know a file again.

On local disk an open file keeps its bytes when a broker renames or deletes it, so a file is known
by its inode; elsewhere by what the store says of it (ETag, version or modification time).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from klog.errors import FileTooLargeError

SMALL_BYTES = 1 << 20
"""No file that says a few words, such as a root's format or a pin, is larger."""


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

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """Read a whole small file; one larger than `most_bytes` is `FileTooLargeError`, unread."""


def check_size(path: str, size_bytes: int, most_bytes: int | None) -> None:
    """Raise `FileTooLargeError` for a file that is larger than it may be."""
    if most_bytes is not None and size_bytes > most_bytes:
        raise FileTooLargeError(
            f"{path}: it has {size_bytes} bytes, and one like it has {most_bytes} at most: it is "
            "damaged or none of klog's. Restore it from a copy"
        )
