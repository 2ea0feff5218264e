"""Local disk: one winner by a hard link, and an acknowledged file survives a loss of power.

Why one winner: the bytes go to a temporary file in the same directory, are synced, and get the
final name by `link`, which the kernel refuses where the name is taken. The directory is synced
before the answer. Neither of the plainer ways would do: a file created under its final name is torn
when its writer is killed and blocks the name for good, and `rename` replaces what is there. A file
system without hard links is refused.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from klog.connector.store.contract import Put
from klog.connector.store.files import Entry, check_size
from klog.connector.store.temporary import NewId, random_id, temporary_path
from klog.errors import KlogError

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_REFUSED = {errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOENT, errno.ENAMETOOLONG}
"""A `link` that fails so has linked nothing. Others, as from NFS, may have lost the answer."""
_AT_ONCE_BYTES = 8 << 20
"""So much of a file is written before the disk is asked to begin: the sync waits for the rest."""


class LocalFile:
    """A file on local disk; its bytes stay readable while it is open, whatever its name does."""

    def __init__(self, path: str) -> None:
        """Open `path`; the size is that of this moment."""
        self._path = path
        with in_words(path, "read"):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        stat = os.fstat(self._descriptor)
        self.size_bytes = stat.st_size
        self.identity = f"{stat.st_dev:x}-{stat.st_ino:x}"
        self.stamp = f"{stat.st_size}-{stat.st_mtime_ns}"

    def read(self, begin: int, end: int) -> bytes:
        """Read from `begin` to before `end`."""
        wanted = min(end, self.size_bytes) - begin
        if wanted <= 0:
            return b""
        with in_words(self._path, "read"):
            data = os.pread(self._descriptor, wanted, begin)
            while len(data) < wanted:  # one pread gives 2 GiB at most
                more = os.pread(self._descriptor, wanted - len(data), begin + len(data))
                if not more:
                    break
                data += more
        return data

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)


class LocalStore:
    """Local disk, without fsspec between: it knows no inodes, no positioned reads and no links."""

    def __init__(self, new_id: NewId = random_id) -> None:
        """Take what tells this writer's temporary files from all others."""
        self._new_id = new_id

    def entries(self, directory: str) -> list[Entry]:
        """List a directory; a name that vanishes meanwhile is left out."""
        found = []
        with in_words(directory, "listed"), os.scandir(directory) as names:
            for item in names:
                try:
                    stat = item.stat()
                except FileNotFoundError:
                    continue
                entry = Entry(item.name, item.path, stat.st_size, item.is_dir())
                found.append(entry)
        return sorted(found, key=lambda entry: entry.name)

    def open(self, path: str, size_bytes: int | None = None) -> LocalFile:
        """Open a file."""
        return LocalFile(path)

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """Read a whole file."""
        with in_words(path, "read"), Path(path).open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            check_size(path, size_bytes, most_bytes)
            data = file.read(size_bytes + 1)
            if len(data) > size_bytes:  # It has grown.
                data += file.read(-1 if most_bytes is None else most_bytes)
        check_size(path, len(data), most_bytes)
        return data

    def put_if_absent(self, path: str, data: bytes) -> Put:
        """Create `path` by a hard link to a synced temporary file.

        A name that is taken is seen before anything is written: most who lose come late.
        """
        with in_words(path, "written"):
            if os.path.lexists(path):
                return _durable(path, Put.EXISTS)
            with self._staged(path, (data,)) as temporary:
                return _durable(path, _linked(temporary, path))

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write `path` by a synced temporary file that takes its name."""
        with in_words(path, "written"), self._staged(path, pieces) as temporary:
            os.replace(temporary, path)  # noqa: PTH105
            sync_directory(os.path.dirname(path))  # noqa: PTH120

    def delete(self, path: str) -> None:
        """Remove `path`; the directory is not synced."""
        with in_words(path, "deleted"), suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108

    @contextmanager
    def _staged(self, path: str, pieces: Iterable[bytes]) -> Iterator[str]:
        """Write and sync a temporary file beside `path`; it is gone in the end."""
        temporary = temporary_path(path, self._new_id)
        descriptor = _create(temporary)
        try:
            try:
                _write_all(descriptor, pieces)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            yield temporary
        finally:
            # After `replace` it has gone. What cannot be removed is left for vacuum.
            with suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108


def _linked(temporary: str, path: str) -> Put:
    """Give a file its final name; what failed and has linked nothing is raised."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return Put.EXISTS
    except OSError as exc:
        if exc.errno in _NO_LINKS:
            raise KlogError(
                f"{path}: not written: this file system makes no hard links "
                f"({os.strerror(exc.errno)}), and without them two writers could both win. "
                "Keep the log on a disk that has them"
            ) from exc
        if exc.errno in _REFUSED:
            raise
        return Put.UNKNOWN
    return Put.CREATED


def _durable(path: str, put: Put) -> Put:
    """Sync the directory of a name that is there; another's too, who may have been killed."""
    try:
        sync_directory(os.path.dirname(path))  # noqa: PTH120 - paths are text here
    except OSError:
        return Put.UNKNOWN  # The name is there, but might not be after a loss of power.
    return put


def _create(path: str) -> int:
    """Open a new file, making its directories, and theirs durable, where they are missing."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        make_directories(os.path.dirname(path))  # noqa: PTH120
        return os.open(path, flags, 0o666)


def make_directories(directory: str) -> None:
    """Make a directory, and those above it, durable: each is synced into its parent."""
    parent = os.path.dirname(directory)  # noqa: PTH120
    try:
        os.mkdir(directory)  # noqa: PTH102
    except FileNotFoundError:
        make_directories(parent)
        make_directories(directory)
        return
    except FileExistsError:
        # Another process made it just now, and may not have synced it yet.
        pass
    sync_directory(parent)


def _write_all(descriptor: int, pieces: Iterable[bytes]) -> None:
    """Write pieces; of a large file the kernel puts some to disk while more is made."""
    written = begun = 0
    for piece in pieces:
        if written - begun >= _AT_ONCE_BYTES:
            _begin_sync(descriptor, begun, written - begun)
            begun = written
        _write(descriptor, piece)
        written += len(piece)


def _begin_sync(descriptor: int, begin: int, size_bytes: int) -> None:
    """Have the kernel write back what it is told to let go: Linux does; it may do nothing."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, begin, size_bytes, os.POSIX_FADV_DONTNEED)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(directory: str) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def in_words(path: str, done: str) -> Iterator[None]:
    """Restate what the kernel refuses as a `KlogError` that names the path and the next step."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as exc:
        if done in ("read", "listed"):
            raise
        raise KlogError(f"{path}: not {done}: {exc}. Check the path") from exc
    except OSError as exc:
        raise KlogError(f"{path}: not {done}: {_said(exc, path)}") from exc


def _said(exc: OSError, path: str) -> str:
    said = os.strerror(exc.errno) if exc.errno else str(exc)
    if exc.errno in (errno.EACCES, errno.EPERM):
        return f"{said}. Run as a user who may, or give uid {os.geteuid()} access to {path}"
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{said}. Free some space there, then write again"
    if exc.errno == errno.EROFS:
        return f"{said}. Mount it for writing, or write elsewhere"
    return f"{said}. Check the path and the disk"
