"""Files of any scheme that fsspec knows, to read. Nothing is written through fsspec.

No generic call of fsspec is atomic (`mode="create"` is exists-then-write in most of its file
systems), so each scheme that klog writes to has a store of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.store.readable_store import DirectoryEntry, check_size, entry_names_after
from klog.connector.store.secret_redaction import chainable, redact
from klog.errors import FileTooLargeError, StoreError, StoreRefusedError
from klog.url_secrets import without_passwords

_VERSION_KEYS = (
    "ETag", "etag", "version_id", "md5", "mtime", "LastModified", "modified", "created",
)  # fmt: skip
"""What file systems call the version of a file."""


@dataclass(frozen=True, slots=True, repr=False)
class _ErrorTranslator:
    """Translates the errors of a file system to klog's, without secrets.

    Attributes:
        storage: The options that the file system was made with.
        url_secrets: The secrets of the URL.
    """

    storage: StorageOptions
    url_secrets: tuple[str, ...]

    @contextmanager
    def translate_errors(self, path: str) -> Iterator[None]:
        """Raise errors of the code inside as `StoreError`s that name the path.

        A missing file, and a file that is not a directory, keep their classes.
        """
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as exc:
            if self._cause(exc) is not None:
                raise
            is_missing = isinstance(exc, FileNotFoundError)
            error_class = FileNotFoundError if is_missing else NotADirectoryError
            raise error_class(without_passwords(path)) from None
        except KeyError as exc:  # What some archives raise for a name that they do not have.
            raise FileNotFoundError(without_passwords(path)) from self._cause(exc)
        except FileTooLargeError:
            raise
        # Each of fsspec's file systems raises what the client library under it raises, and those
        # errors have no class in common.
        except Exception as exc:  # noqa: BLE001 - it is raised again, translated
            message = redact(f"{type(exc).__name__}: {exc}", self.storage, self.url_secrets)
            refused = isinstance(exc, PermissionError)
            raise (StoreRefusedError if refused else StoreError)(
                f"{path}: cannot be read: {message}. Check the URL, and that the file is complete"
            ) from self._cause(exc)

    def _cause(self, exc: Exception) -> Exception | None:
        return chainable(exc, self.storage, self.url_secrets)


class FsspecFile:
    """A file of any fsspec file system, read by ranges."""

    def __init__(self, system: Any, path: str, translator: _ErrorTranslator) -> None:
        """Ask the store for the file's size and version."""
        self._system, self._path, self._translator = system, path, translator
        with translator.translate_errors(path):
            info = system.info(path)
            self.size_bytes = int(info["size"])
            self.identity = self.stamp = _version(info)

    def read(self, start: int, end: int) -> bytes:
        """See `File.read`."""
        end = min(end, self.size_bytes)
        if start >= end:
            return b""
        with self._translator.translate_errors(self._path):
            data = bytes(self._system.cat_file(self._path, start, end))
        if len(data) > end - start:
            # A web server without ranges sends the whole file, and fsspec passes it on.
            if len(data) != self.size_bytes:
                raise StoreError(
                    f"{self._path}: the server sent {len(data)} bytes instead of {end - start}. "
                    "Read the file from a server that supports ranges, or from a copy on disk"
                )
            data = data[start:end]
        return data

    def close(self) -> None:
        """Do nothing: nothing is open between reads."""


class FsspecStore:
    """Any file system that fsspec knows, to read."""

    max_parallel_reads = 8

    def __init__(
        self,
        system: Any,
        storage: StorageOptions = NO_STORAGE_OPTIONS,
        url_secrets: tuple[str, ...] = (),
    ) -> None:
        """Take a file system.

        Args:
            system: The file system that fsspec made for the scheme.
            storage: The options that it was made with.
            url_secrets: The secrets of the URL, which no message shows.
        """
        self._system, self._translator = system, _ErrorTranslator(storage, url_secrets)

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """See `ReadableStore.entries`. No cache of fsspec's is used."""
        with self._translator.translate_errors(directory):
            self._system.invalidate_cache(directory)
            infos = self._system.ls(directory, detail=True)
            # Some file systems return an empty list for a missing directory.
            if not infos and not self._system.exists(directory):
                raise FileNotFoundError(directory)
        entries = []
        for info in infos:
            path = str(info["name"]).rstrip("/")
            name = path.rsplit("/", 1)[-1]
            try:
                size_bytes = 0 if info["type"] == "directory" else self._size_bytes(info)
            except FileNotFoundError:  # A dead link of a page, or deleted since.
                continue
            if name and path.strip("/") != directory.strip("/"):
                entries.append(DirectoryEntry(name, path, size_bytes, info["type"] == "directory"))
            elif name and info["type"] == "file" and not str(info["name"]).endswith("/"):
                raise NotADirectoryError(without_passwords(f"{directory} is a file"))
        return sorted(entries, key=lambda entry: entry.name)

    def _size_bytes(self, info: dict[str, Any]) -> int:
        """Return a file's size; some listings, such as a web server's, do not have it."""
        if info.get("size") is not None:
            return int(info["size"])
        with self._translator.translate_errors(str(info["name"])):
            return int(self._system.info(info["name"])["size"])

    def names_after(self, directory: str, name: str) -> list[str]:
        """See `ReadableStore.names_after`."""
        return entry_names_after(self, directory, name)

    def open(self, path: str, size_bytes: int | None = None) -> FsspecFile:
        """See `ReadableStore.open`."""
        return FsspecFile(self._system, path, self._translator)

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """See `ReadableStore.read`."""
        with self._translator.translate_errors(path):
            if max_bytes is None:
                return bytes(self._system.cat_file(path))
            # The size is not asked for first: some file systems answer every error of that call by
            # "the file is missing".
            data = bytes(self._system.cat_file(path, 0, max_bytes + 1))
            check_size(path, len(data), max_bytes)
        return data


def _version(info: dict[str, Any]) -> str:
    for key in _VERSION_KEYS:
        if info.get(key) is not None:
            return f"{info['size']}-{info[key]}"
    return str(info["size"])
