"""Read files through fsspec, and know a file again after its name was given to another.

A path is a plain one or a URL of any scheme that fsspec knows. On local disk an open file keeps
its bytes when a broker renames or deletes it, so a file is known by its inode; elsewhere by what
the store's listing says of it (size with ETag, version or modification time).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import fsspec

from klog.errors import KlogError, OptionError


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
    """A place that holds files. A missing file or directory is `FileNotFoundError`."""

    def entries(self, directory: str) -> list[Entry]:
        """List a directory, one level deep, in the order of names."""

    def open(self, path: str) -> File:
        """Open a file for reading ranges."""

    def read(self, path: str) -> bytes:
        """Read a whole small file."""


class LocalFile:
    """A file on local disk; its bytes stay readable while it is open, whatever its name does."""

    def __init__(self, path: str) -> None:
        """Open `path`; the size is that of this moment."""
        self._descriptor = os.open(path, os.O_RDONLY)
        stat = os.fstat(self._descriptor)
        self.size_bytes = stat.st_size
        self.identity = f"{stat.st_dev:x}-{stat.st_ino:x}"
        self.stamp = f"{stat.st_size}-{stat.st_mtime_ns}"

    def read(self, begin: int, end: int) -> bytes:
        """Read from `begin` to before `end`."""
        wanted = end - begin
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
    """Local disk, without fsspec between: it knows no inodes and no positioned reads."""

    def entries(self, directory: str) -> list[Entry]:
        """List a directory; a name that vanishes meanwhile is left out."""
        found = []
        with os.scandir(directory) as names:
            for item in names:
                try:
                    stat = item.stat()
                except FileNotFoundError:
                    continue
                entry = Entry(item.name, item.path, stat.st_size, item.is_dir())
                found.append(entry)
        return sorted(found, key=lambda entry: entry.name)

    def open(self, path: str) -> LocalFile:
        """Open a file."""
        return LocalFile(path)

    def read(self, path: str) -> bytes:
        """Read a whole file."""
        return Path(path).read_bytes()


class FsspecFile:
    """A file of any fsspec file system, read by ranges."""

    def __init__(self, system: Any, path: str) -> None:
        """Ask the store for the file's size and identity."""
        self._system, self._path = system, path
        with _foreign(path):
            info = system.info(path)
            self.size_bytes = int(info["size"])
            self.identity = self.stamp = _version(info)

    def read(self, begin: int, end: int) -> bytes:
        """Read from `begin` to before `end`."""
        if begin >= min(end, self.size_bytes):
            return b""
        with _foreign(self._path):
            return bytes(self._system.cat_file(self._path, begin, min(end, self.size_bytes)))

    def close(self) -> None:
        """Hold nothing open between reads."""


class FsspecStore:
    """Any file system that fsspec knows, for reading."""

    def __init__(self, system: Any) -> None:
        """Take the file system that fsspec made for the scheme."""
        self._system = system

    def entries(self, directory: str) -> list[Entry]:
        """List a directory, asking the store anew."""
        with _foreign(directory):
            self._system.invalidate_cache(directory)
            listed = self._system.ls(directory, detail=True)
            # Some file systems list nothing where there is nothing.
            if not listed and not self._system.exists(directory):
                raise FileNotFoundError(directory)
        found = []
        for info in listed:
            path = str(info["name"]).rstrip("/")
            name = path.rsplit("/", 1)[-1]
            size = int(info.get("size") or 0)
            if name and path.strip("/") != directory.strip("/"):
                found.append(Entry(name, path, size, info["type"] == "directory"))
        return sorted(found, key=lambda entry: entry.name)

    def open(self, path: str) -> FsspecFile:
        """Open a file."""
        return FsspecFile(self._system, path)

    def read(self, path: str) -> bytes:
        """Read a whole file."""
        with _foreign(path):
            return bytes(self._system.cat_file(path))


@contextmanager
def _foreign(path: str) -> Iterator[None]:
    """Restate what a file system's own code raises as a `KlogError` that names the path.

    An `OSError` says what a caller has to know (no such file, no permission) and stays.
    """
    try:
        yield
    except OSError:
        raise
    except KeyError as exc:  # What some archives say of a name that is not in them.
        raise FileNotFoundError(path) from exc
    # Each of fsspec's file systems raises what the client library behind it does, and those have
    # no class in common.
    except Exception as exc:
        raise KlogError(
            f"{path}: cannot be read: {_said(exc)}. Check the URL, and that what it names is whole"
        ) from exc


def _said(exc: Exception) -> str:
    return f"{type(exc).__name__}: {exc}"


def _version(info: dict[str, Any]) -> str:
    for key in (
        "ETag",
        "etag",
        "version_id",
        "md5",
        "mtime",
        "LastModified",
        "modified",
        "created",
    ):
        if info.get(key) is not None:
            return f"{info['size']}-{info[key]}"
    return str(info["size"])


def store_for(root: str) -> tuple[Store, str]:
    """Give the store behind a path or URL, and the path as that store spells it.

    Raises `OptionError` for a scheme that fsspec does not know, whose client is not installed or
    which needs more than the URL says, and where an archive is none.
    """
    if "://" not in root and not root.startswith("file:"):
        return LocalStore(), str(Path(root).absolute())
    scheme = root.split(":", 1)[0]
    if scheme == "file":
        return LocalStore(), "/" + root.removeprefix("file:").strip("/")
    try:
        system, path = fsspec.core.url_to_fs(root)
    except OSError:
        raise
    # As in `_foreign`: a file system is made by code that may raise anything.
    except Exception as exc:
        raise OptionError(
            f"path: cannot read {scheme}:// here: {_said(exc)}. Check {root}, and that the client "
            "of its scheme is installed"
        ) from exc
    return FsspecStore(system), str(path)
