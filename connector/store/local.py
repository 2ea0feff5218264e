"""Local disk: one winner by a hard link, and an acknowledged file survives a loss of power.

Why one winner: the bytes go to a temporary file in the same directory, are synced, and get the
final name by `link`, which the kernel refuses where the name is taken. The directory is synced
before the answer. Neither of the plainer ways would do: a file created under its final name is torn
when its writer is killed and blocks the name for good, and `rename` replaces what is there. A file
system without hard links is refused.

What is no regular file is never read: a FIFO or a device may wait for ever, or never end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from klog.connector.store.contract import Put
from klog.connector.store.files import Entry, check_size
from klog.connector.store.links import link_below
from klog.connector.store.temporary import NewId, random_id, temporary_path
from klog.errors import KlogError, NotRegularFileError

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
            self._descriptor = open_regular(path)
        status = os.fstat(self._descriptor)
        self.size_bytes = status.st_size
        self.identity = _identity(status)
        self.stamp = f"{status.st_size}-{status.st_mtime_ns}"

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

    reads_at_once = 1

    def __init__(self, new_id: NewId = random_id, root: str = "") -> None:
        """Take what tells this writer's temporary files from all others.

        Nothing is deleted through a link below `root`; without one, through no link at all.
        """
        self._new_id, self._root = new_id, root

    def entries(self, directory: str) -> list[Entry]:
        """List a directory; a name that vanishes meanwhile is left out."""
        found, link = [], link_below(self._root, directory)
        with in_words(directory, "listed"), os.scandir(directory) as names:
            for item in names:
                entry = _entry(item, link or (item.path if item.is_symlink() else ""))
                if entry is not None:
                    found.append(entry)
        return sorted(found, key=lambda entry: entry.name)

    def names_after(self, directory: str, name: str) -> list[str]:
        """List the names that sort after `name`; the files are not asked for."""
        try:
            with in_words(directory, "listed"):
                return sorted(one for one in os.listdir(directory) if one > name)  # noqa: PTH208
        except FileNotFoundError:
            return []

    def open(self, path: str, size_bytes: int | None = None) -> LocalFile:
        """Open a file."""
        return LocalFile(path)

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """Read a whole file."""
        with in_words(path, "read"), os.fdopen(open_regular(path), "rb") as file:
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
            if _is_taken(path):
                return _durable(path, Put.EXISTS)
            with self._staged(path, (data,)) as temporary:
                return _durable(path, _linked(temporary, path))

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write `path` by a synced temporary file that takes its name."""
        with in_words(path, "written"), self._staged(path, pieces) as temporary:
            os.replace(temporary, path)  # noqa: PTH105
            sync_directory(os.path.dirname(path))  # noqa: PTH120

    def delete(self, path: str) -> None:
        """Remove `path`, but for a link and what is reached through one.

        The directory is not synced.
        """
        link = link_below(self._root, path)
        if link:
            raise KlogError(
                f"{path}: not deleted: {link} is a link, and nothing is deleted through one. "
                "Delete the file yourself if nothing else needs it"
            )
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


def open_regular(path: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file, and return its descriptor. Raises `NotRegularFileError` for others.

    Opening may be an act too, as of a device, so that the kind is looked at before; `O_NONBLOCK` is
    for what takes the name between the two.
    """
    if not flags & os.O_CREAT or os.path.lexists(path):
        _check_regular(path, _kind_at(path))
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, mode)
    try:
        _check_regular(path, _kind_of(os.fstat(descriptor)))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_KINDS = {
    stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device", stat.S_IFBLK: "a block device",
}  # fmt: skip


_LOOP = "a loop of links"


def _kind_of(status: os.stat_result) -> str:
    """Return what it is, empty for a regular file."""
    kind = stat.S_IFMT(status.st_mode)
    return "" if kind == stat.S_IFREG else _KINDS.get(kind, "something unknown")


def _kind_at(path: str) -> str:
    """Return what has a name, empty for a regular file."""
    try:
        return _kind_of(os.stat(path))  # noqa: PTH116 - paths are text here
    except OSError as exc:
        if exc.errno != errno.ELOOP:
            raise
        return _LOOP


def _check_regular(path: str, kind: str) -> None:
    """Raise `NotRegularFileError` for what is no regular file."""
    if kind:
        raise NotRegularFileError(
            f"{path}: it is {kind}, and a regular file has to be there. Move it away, then restore "
            "the file from a copy if there was one"
        )


def _entry(item: os.DirEntry[str], link: str) -> Entry | None:
    """Return the entry of a name, or of what it links to; None if that is not there.

    `link` is the link by which it is reached, maybe its own.
    """
    try:
        status = item.stat()
    except FileNotFoundError:
        return None
    except OSError as exc:
        if exc.errno != errno.ELOOP:
            raise
        return Entry(item.name, item.path, 0, is_directory=False, link=link, special=_LOOP)
    is_directory = stat.S_ISDIR(status.st_mode)
    return Entry(
        item.name,
        item.path,
        status.st_size,
        is_directory,
        link=link,
        special="" if is_directory else _kind_of(status),
        identity=_identity(status),
    )


def _is_taken(path: str) -> bool:
    """Tell whether a file has the name. Raises `NotRegularFileError` if something else has it."""
    try:
        _check_regular(path, _kind_at(path))
    except FileNotFoundError:
        if not os.path.islink(path):  # noqa: PTH114
            return False
        raise NotRegularFileError(
            f"{path}: it is a link to {os.readlink(path)}, which is not there. "  # noqa: PTH115
            "Restore that file, or move the link away"
        ) from None
    return True


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev:x}-{status.st_ino:x}"


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
    missing: list[str] = []
    # Up to the first that is there, then down; each way once. What is still missing on the way down
    # cannot be made: it lies behind a link to nothing, or in a file system like /proc.
    while not _made(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)  # noqa: PTH120
    for path in reversed(missing):
        if not _made(path):
            raise _unmakeable(path)


def _made(directory: str) -> bool:
    """Make one directory durable; False if the one above it is missing."""
    parent = os.path.dirname(directory)  # noqa: PTH120
    try:
        os.mkdir(directory)  # noqa: PTH102
    except FileNotFoundError:
        if parent in ("", directory):
            raise _unmakeable(directory) from None
        return False
    except FileExistsError:
        # Another process made it just now, and may not have synced it yet.
        if os.path.islink(directory) and not os.path.exists(directory):  # noqa: PTH110, PTH114
            raise KlogError(
                f"{directory}: it is a link to {os.readlink(directory)}, "  # noqa: PTH115
                "which is not there. Make that directory, or move the link away"
            ) from None
    sync_directory(parent)
    return True


def _unmakeable(directory: str) -> KlogError:
    return KlogError(
        f"{directory}: the directory cannot be made: the file system there makes none. Give a path "
        "on another one"
    )


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
