"""What reading needs of a store: list a directory, read a range, recognise a file.

The rule: a file has an identity, which says whether a name still means the same file. On local disk
an open file keeps its bytes when a broker renames or deletes it, so the identity is the inode;
elsewhere it is what the store says of the file (ETag, version or modification time).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from klog.errors import FileTooLargeError

MAX_SMALL_FILE_BYTES = 1 << 20
"""The largest size of a file with a few fields, such as `format.json` or a snapshot lease."""
MAX_INDEX_BYTES = 256 << 20
"""An index of the largest segment, 2 GiB, has an entry of 8 or 12 bytes for every batch, of some
hundred bytes at least; a broker's own have `segment.index.bytes`, 10 MiB. Snapshots of producers,
of some 50 bytes each, and transaction indexes are smaller. It is for memory, not a rule of Kafka's.
"""


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One name in a directory.

    Attributes:
        name: The name in the directory.
        path: What `open` and `read` take.
        size_bytes: The size of a file.
        is_directory: Whether it is a directory.
        link: The path, below the root, of the link that leads to this name, maybe its own; empty
            without a link. No store deletes a file that is reached through a link.
        special: What it is if it is neither a file nor a directory, such as "a FIFO".
        identity: The identity of the open file; empty if a listing does not have it.
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

    Attributes:
        size_bytes: The size when the file was opened.
        identity: The same for as long as the file exists.
        stamp: Changes when the bytes change.
    """

    size_bytes: int
    identity: str
    stamp: str

    def read(self, start: int, end: int) -> bytes:
        """Return a range of bytes, fewer at the end of the file.

        Args:
            start: The position of the first byte.
            end: The position after the last byte.
        """

    def close(self) -> None:
        """Release the file."""


class ReadableStore(Protocol):
    """A store that has files.

    A missing file or directory is a `FileNotFoundError`, a file in the place of a directory a
    `NotADirectoryError`. Something that is not a regular file but has a file's name is a
    `NotRegularFileError`; it is never waited for. Any other failure, such as a missing permission
    or bucket, is a `KlogError`.
    """

    @property
    def max_parallel_reads(self) -> int:
        """Return how many small reads at a time pay off: 1 if a thread costs more than a read."""

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """Return the names in a directory, sorted.

        Args:
            directory: The path of the directory.
        """

    def names_after(self, directory: str, name: str) -> list[str]:
        """Return the names after another in a directory that has only files, sorted.

        A missing directory has none. If the store can, it starts the listing at the name.

        Args:
            directory: The path of the directory.
            name: Names up to this one, itself included, are left out.
        """

    def open(self, path: str, size_bytes: int | None = None) -> File:
        """Open a file to read ranges.

        Args:
            path: The file.
            size_bytes: The size of a file that never changes, if it is known. A store need not ask
                for it then: the first read raises `FileNotFoundError` for a missing file and
                `CorruptRecordError` for one of another size.
        """

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """Return the bytes of a small file.

        Args:
            path: The path of the file.
            max_bytes: The largest size that the file may have; None for any size.

        Raises:
            FileTooLargeError: It has more than `max_bytes`; it was not read.
        """


def entry_names_after(store: ReadableStore, directory: str, name: str) -> list[str]:
    """List a whole directory to return what `ReadableStore.names_after` returns.

    Args:
        store: The store.
        directory: The path of the directory.
        name: Names up to this one, itself included, are left out.
    """
    try:
        return [entry.name for entry in store.entries(directory) if entry.name > name]
    except FileNotFoundError:
        return []


def small_file_exists(store: ReadableStore, path: str) -> bool:
    """Return whether a small file exists, by one read: a listing may be stale.

    Args:
        store: The store.
        path: The path of the file.
    """
    try:
        store.read(path, MAX_SMALL_FILE_BYTES)
    except FileNotFoundError:
        return False
    return True


def check_size(path: str, size_bytes: int, max_bytes: int | None) -> None:
    """Refuse a file that is larger than a file of its kind can be.

    Args:
        path: The path of the file.
        size_bytes: The size of the file.
        max_bytes: The largest size; None for any size.

    Raises:
        FileTooLargeError: The file is larger.
    """
    if max_bytes is not None and size_bytes > max_bytes:
        raise FileTooLargeError(
            f"{path}: it has {size_bytes} bytes, and a file of its kind at most {max_bytes}: it "
            "is damaged, or not a file of klog's. Restore it from a copy"
        )
