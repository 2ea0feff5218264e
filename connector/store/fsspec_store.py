"""Read files of any scheme that fsspec knows; nothing is written through it.

No generic call of fsspec is atomic (`mode="create"` is exists-then-write in most of its file
systems), so a scheme that can be written has a strategy of its own beside this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from klog.connector.store.files import Entry, check_size, entry_names_after
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import FileTooLargeError, KlogError, without_passwords


@dataclass(frozen=True, slots=True, repr=False)
class Words:
    """How errors are told: without what is secret in the options or in the URL."""

    storage: Storage
    passwords: tuple[str, ...]

    @contextmanager
    def of(self, path: str) -> Iterator[None]:
        """Restate what a file system's own code raises as a `KlogError` that names the path.

        What is missing, or no directory, is for the caller to know and stays.
        """
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as exc:
            if self._cause(exc) is not None:
                raise
            missing = isinstance(exc, FileNotFoundError)
            kind = FileNotFoundError if missing else NotADirectoryError
            raise kind(without_passwords(path)) from None
        except KeyError as exc:  # What some archives say of a name that is not in them.
            raise FileNotFoundError(without_passwords(path)) from self._cause(exc)
        except FileTooLargeError:
            raise
        # Each of fsspec's file systems raises what the client library behind it does, and those
        # have no class in common.
        except Exception as exc:  # noqa: BLE001 - it is raised again, in words
            said = self.storage.redacted(f"{type(exc).__name__}: {exc}", self.passwords)
            raise KlogError(
                f"{path}: cannot be read: {said}. Check the URL, and that what it names is whole"
            ) from self._cause(exc)

    def _cause(self, exc: Exception) -> Exception | None:
        return self.storage.cause(exc, self.passwords)


class FsspecFile:
    """A file of any fsspec file system, read by ranges."""

    def __init__(self, system: Any, path: str, words: Words) -> None:
        """Ask the store for the file's size and identity."""
        self._system, self._path, self._words = system, path, words
        with words.of(path):
            info = system.info(path)
            self.size_bytes = int(info["size"])
            self.identity = self.stamp = _version(info)

    def read(self, begin: int, end: int) -> bytes:
        """Read from `begin` to before `end`."""
        behind = min(end, self.size_bytes)
        if begin >= behind:
            return b""
        with self._words.of(self._path):
            data = bytes(self._system.cat_file(self._path, begin, behind))
        if len(data) > behind - begin:
            # A web server without ranges sends the whole file, and fsspec passes it on.
            if len(data) != self.size_bytes:
                raise KlogError(
                    f"{self._path}: {len(data)} bytes came where {behind - begin} were asked for. "
                    "Read it from a server that knows ranges, or from a copy on disk"
                )
            data = data[begin:behind]
        return data

    def close(self) -> None:
        """Hold nothing open between reads."""


class FsspecStore:
    """Any file system that fsspec knows, for reading."""

    reads_at_once = 8

    def __init__(
        self, system: Any, storage: Storage = NOTHING_GIVEN, passwords: tuple[str, ...] = ()
    ) -> None:
        """Take the file system that fsspec made for the scheme, and what it was made with.

        `passwords` are those of the URL, which no message shows.
        """
        self._system, self._words = system, Words(storage, passwords)

    def entries(self, directory: str) -> list[Entry]:
        """List a directory, asking the store anew."""
        with self._words.of(directory):
            self._system.invalidate_cache(directory)
            listed = self._system.ls(directory, detail=True)
            # Some file systems list nothing where there is nothing.
            if not listed and not self._system.exists(directory):
                raise FileNotFoundError(directory)
        found = []
        for info in listed:
            path = str(info["name"]).rstrip("/")
            name = path.rsplit("/", 1)[-1]
            try:
                size = 0 if info["type"] == "directory" else self._size(info)
            except FileNotFoundError:  # A dead link of a page, or deleted meanwhile.
                continue
            if name and path.strip("/") != directory.strip("/"):
                found.append(Entry(name, path, size, info["type"] == "directory"))
            elif name and info["type"] == "file" and not str(info["name"]).endswith("/"):
                raise NotADirectoryError(without_passwords(f"{directory} is a file"))
        return sorted(found, key=lambda entry: entry.name)

    def _size(self, info: dict[str, Any]) -> int:
        """Give a file's size, asking for it where a listing does not say, as a web server's."""
        if info.get("size") is not None:
            return int(info["size"])
        with self._words.of(str(info["name"])):
            return int(self._system.info(info["name"])["size"])

    def names_after(self, directory: str, name: str) -> list[str]:
        """List the names that sort after `name`."""
        return entry_names_after(self, directory, name)

    def open(self, path: str, size_bytes: int | None = None) -> FsspecFile:
        """Open a file."""
        return FsspecFile(self._system, path, self._words)

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """Read a whole file."""
        with self._words.of(path):
            if most_bytes is None:
                return bytes(self._system.cat_file(path))
            # Not by its size first: asked for that, some file systems say of every error that the
            # file is missing.
            data = bytes(self._system.cat_file(path, 0, most_bytes + 1))
            check_size(path, len(data), most_bytes)
        return data


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
