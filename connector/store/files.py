"""What reading asks of a store: list a directory, read a range, know a file again.

On local disk an open file keeps its bytes when a broker renames or deletes it, so a file is known
by its inode; elsewhere by what the store says of it (ETag, version or modification time).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from klog.errors import FileTooLargeError

SMALL_BYTES = 1 << 20
"""No file that says a few words, such as a root's format or a pin, is larger."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory; `path` is what `open` takes.

    `link` is the path below the root that is a link and by which this name is reached, maybe its
    own: no store deletes such a file. It is empty where there is none.
    `special` says what it is if it is neither a file nor a directory: "a FIFO".
    `identity` is that of the open file; empty if the store's listing does not have it.
    """

    name: str
    path: str
    size_bytes: int
    is_directory: bool
    link: str = ""
    special: str = ""
    identity: str = field(default="", compare=False)


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
    `NotADirectoryError`; what has a file's name and is no regular file is `NotRegularFileError`,
    and never waited for; what else goes wrong (no permission, no such bucket) is a `KlogError`.
    """

    @property
    def reads_at_once(self) -> int:
        """Return how many small reads side by side are worth it: 1 where a thread costs more."""

    def entries(self, directory: str) -> list[Entry]:
        """List a directory, one level deep, in the order of names."""

    def names_after(self, directory: str, name: str) -> list[str]:
        """List the names that sort after `name` in a directory that has only files.

        Without their sizes, and where the store can begin a listing at a name, without a look at
        those before it. A directory that is not there has none.
        """

    def open(self, path: str, size_bytes: int | None = None) -> File:
        """Open a file for reading ranges.

        Where `size_bytes` is known, of a file that never changes, a store need not ask for it: the
        first read then tells that the file is missing, or with `CorruptRecordError` that it has
        another size.
        """

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """Read a whole small file; one larger than `most_bytes` is `FileTooLargeError`, unread."""


def entry_names_after(store: Store, directory: str, name: str) -> list[str]:
    """Return what `names_after` does, by a listing of the whole directory."""
    try:
        return [entry.name for entry in store.entries(directory) if entry.name > name]
    except FileNotFoundError:
        return []


def small_file_exists(store: Store, path: str) -> bool:
    """Return whether a small file exists: one read, which does not depend on a listing."""
    try:
        store.read(path, SMALL_BYTES)
    except FileNotFoundError:
        return False
    return True


def check_size(path: str, size_bytes: int, most_bytes: int | None) -> None:
    """Raise `FileTooLargeError` for a file that is larger than it may be."""
    if most_bytes is not None and size_bytes > most_bytes:
        raise FileTooLargeError(
            f"{path}: it has {size_bytes} bytes, and one like it has {most_bytes} at most: it is "
            "damaged or none of klog's. Restore it from a copy"
        )
