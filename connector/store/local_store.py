"""Local disk: one winner by a hard link, and an acknowledged file survives a loss of power.

Why one winner: the bytes go to a temporary file in the same directory, are synced, and get the
final name by `link`, which the kernel refuses if the name is taken. The directory is synced before
the answer. A file that is created under its final name would be torn when its writer is killed, and
would block the name for good; `rename` would replace the winner's file. A file system without hard
links is refused.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from klog.connector.store.durable_directories import make_directories, sync_directory
from klog.connector.store.local_errors import translate_errors
from klog.connector.store.readable_store import DirectoryEntry, check_size
from klog.connector.store.regular_files import (
    LINK_LOOP,
    open_regular,
    regular_file_exists,
    special_kind,
)
from klog.connector.store.root_links import link_below
from klog.connector.store.temporary_names import NewTemporaryId, random_id, temporary_path
from klog.connector.store.writable_store import PutResult
from klog.errors import StoreRefusedError

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_REFUSED = {errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOENT, errno.ENAMETOOLONG}
"""A `link` that fails so has linked nothing. Others, as from NFS, may have lost the answer."""
_WRITEBACK_BYTES = 8 << 20
"""How much of a file is written before the kernel is asked to start: the sync waits for it all."""


class LocalFile:
    """A file on local disk; its bytes stay readable while it is open, whatever its name does."""

    def __init__(self, path: str) -> None:
        """Open a regular file; the size is that of this moment.

        Args:
            path: The path of the file.

        Raises:
            FileNotFoundError: There is no such file.
            NotRegularFileError: It is a device, a pipe or a socket.
        """
        self._path = path
        with translate_errors(path, "read"):
            self._descriptor = open_regular(path)
        status = os.fstat(self._descriptor)
        self.size_bytes = status.st_size
        self.identity = _identity(status)
        self.stamp = f"{status.st_size}-{status.st_mtime_ns}"

    def read(self, start: int, end: int) -> bytes:
        """See `File.read`."""
        size_bytes = min(end, self.size_bytes) - start
        if size_bytes <= 0:
            return b""
        with translate_errors(self._path, "read"):
            data = os.pread(self._descriptor, size_bytes, start)
            while len(data) < size_bytes:  # One pread returns at most 2 GiB.
                more = os.pread(self._descriptor, size_bytes - len(data), start + len(data))
                if not more:
                    break
                data += more
        return data

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)


class LocalStore:
    """Local disk, without fsspec, which knows no inodes, no positioned reads and no links."""

    max_parallel_reads = 1

    def __init__(self, new_id: NewTemporaryId = random_id, root: str = "") -> None:
        """Take the root, if there is one.

        Args:
            new_id: Returns the ids of temporary files.
            root: Nothing is deleted through a link below it; if it is empty, through no link.
        """
        self._new_id, self._root = new_id, root

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """See `ReadableStore.entries`. Names that vanish meanwhile are left out."""
        entries, link = [], link_below(self._root, directory)
        with translate_errors(directory, "listed"), os.scandir(directory) as items:
            for item in items:
                entry = _entry(item, link or (item.path if item.is_symlink() else ""))
                if entry is not None:
                    entries.append(entry)
        return sorted(entries, key=lambda entry: entry.name)

    def names_after(self, directory: str, name: str) -> list[str]:
        """See `ReadableStore.names_after`. The files themselves are not read."""
        try:
            with translate_errors(directory, "listed"):
                names = os.listdir(directory)  # noqa: PTH208 - paths are text here
        except FileNotFoundError:
            return []
        return sorted(entry_name for entry_name in names if entry_name > name)

    def open(self, path: str, size_bytes: int | None = None) -> LocalFile:
        """See `ReadableStore.open`."""
        return LocalFile(path)

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """See `ReadableStore.read`."""
        with translate_errors(path, "read"), os.fdopen(open_regular(path), "rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            check_size(path, size_bytes, max_bytes)
            data = file.read(size_bytes + 1)
            if len(data) > size_bytes:  # It has grown.
                data += file.read(-1 if max_bytes is None else max_bytes)
        check_size(path, len(data), max_bytes)
        return data

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See `WritableStore.put_if_absent`. A hard link to a synced temporary file decides.

        If the name is taken, nothing is written: most writers that lose come late.
        """
        with translate_errors(path, "written"):
            if regular_file_exists(path):
                return _sync_name(path, PutResult.EXISTS)
            with self._staged(path, (data,)) as temporary:
                return _sync_name(path, _link(temporary, path))

    def put(self, path: str, chunks: Iterable[bytes]) -> None:
        """See `WritableStore.put`. A synced temporary file takes the name."""
        with translate_errors(path, "written"), self._staged(path, chunks) as temporary:
            os.replace(temporary, path)  # noqa: PTH105
            sync_directory(os.path.dirname(path))  # noqa: PTH120

    def delete(self, path: str) -> None:
        """See `WritableStore.delete`. The directory is not synced.

        Neither a link nor a file that is reached through one is removed.
        """
        link = link_below(self._root, path)
        if link:
            raise StoreRefusedError(
                f"{path}: not deleted: {link} is a link, and nothing is deleted through one. "
                "Delete the file yourself if nothing else needs it"
            )
        with translate_errors(path, "deleted"), suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108

    @contextmanager
    def _staged(self, path: str, chunks: Iterable[bytes]) -> Iterator[str]:
        """Write and sync a temporary file in the directory of `path`, and remove it at the end."""
        temporary = temporary_path(path, self._new_id)
        descriptor = _create(temporary)
        try:
            try:
                _write_chunks(descriptor, chunks)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            yield temporary
        finally:
            # After `replace` it is gone. If it cannot be removed, vacuum will remove it.
            with suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108


def _entry(item: os.DirEntry[str], link: str) -> DirectoryEntry | None:
    """Return the entry of a name, or of what it links to; None if that is missing."""
    try:
        status = item.stat()
    except FileNotFoundError:
        return None
    except OSError as exc:
        if exc.errno != errno.ELOOP:
            raise
        return DirectoryEntry(item.name, item.path, 0, False, link=link, special=LINK_LOOP)
    is_directory = stat.S_ISDIR(status.st_mode)
    return DirectoryEntry(
        item.name,
        item.path,
        status.st_size,
        is_directory,
        link=link,
        special="" if is_directory else special_kind(status),
        identity=_identity(status),
    )


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev:x}-{status.st_ino:x}"


def _link(temporary: str, path: str) -> PutResult:
    """Link a file to its final name; an error that is raised has linked nothing."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return PutResult.EXISTS
    except OSError as exc:
        if exc.errno in _NO_LINKS:
            raise StoreRefusedError(
                f"{path}: not written: this file system makes no hard links "
                f"({os.strerror(exc.errno)}), and without them two writers could both win. "
                "Keep the log on a disk that has them"
            ) from exc
        if exc.errno in _REFUSED:
            raise
        return PutResult.UNKNOWN
    return PutResult.CREATED


def _sync_name(path: str, result: PutResult) -> PutResult:
    """Make a name durable, also one whose writer was killed before it did so."""
    try:
        sync_directory(os.path.dirname(path))  # noqa: PTH120
    except OSError:
        return PutResult.UNKNOWN  # The name exists, but a loss of power might remove it.
    return result


def _create(path: str) -> int:
    """Open a new file, and make missing directories, durable."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        make_directories(os.path.dirname(path))  # noqa: PTH120
        return os.open(path, flags, 0o666)


def _write_chunks(descriptor: int, chunks: Iterable[bytes]) -> None:
    """Write chunks; the kernel puts a part of a large file to disk while more is made."""
    written = started = 0
    for chunk in chunks:
        if written - started >= _WRITEBACK_BYTES:
            _start_writeback(descriptor, started, written - started)
            started = written
        _write(descriptor, chunk)
        written += len(chunk)


def _start_writeback(descriptor: int, start: int, size_bytes: int) -> None:
    """Ask the kernel to drop a range, which makes Linux write it back; it may do nothing."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, start, size_bytes, os.POSIX_FADV_DONTNEED)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
