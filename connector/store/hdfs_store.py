"""HDFS by hdfs-native: put-if-absent has one winner by a rename that does not replace.

Why one winner: the bytes go to a temporary file in the same directory, are synced to the disks of
their DataNodes (hdfs-native does so at the end of each block, and `hsync` promises it of the last)
and closed. `rename` without overwrite gives the final name; the NameNode decides it under its lock
and refuses a name that is taken. A file is never created under its final name: a client that is
killed then would leave a torn or empty file there, which blocks the name.

A NameNode may close a file whose last block no DataNode has reported yet (HDFS-8999): it knows the
length, but not where the bytes are. A read of all bytes waits for the report.

A process has one user, as with Hadoop's own client: Kerberos decides who, else `HADOOP_USER_NAME`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from klog.connector.options.storage_option_table import HDFS
from klog.connector.options.storage_options import StorageOptions
from klog.connector.store.client_options import client_options
from klog.connector.store.hdfs_errors import (
    USER_VARIABLE,
    hdfs_error,
    is_refused,
    short_message,
    translate_errors,
)
from klog.connector.store.readable_store import DirectoryEntry, check_size, entry_names_after
from klog.connector.store.temporary_names import NewTemporaryId, random_id, temporary_path
from klog.connector.store.writable_store import PutResult
from klog.errors import OptionError, StoreError

if TYPE_CHECKING:
    from hdfs_native import Client

_CONFIG = {"dfs.client.failover.max.attempts": "8"}
"""A NameNode that is away is tried for about half a minute, not for three minutes."""
_MAX_REPORT_TRIES = 9
"""About 5 s in all. DataNodes report within milliseconds, unless they are configured otherwise."""

Wait = Callable[[int], object]
"""Waits before a try, which is counted from 1."""


def _wait(tries: int) -> None:
    time.sleep(0.01 * 2 ** (tries - 1))


class HdfsFile:
    """A file, as of its opening.

    Attributes:
        length: The size that the NameNode has for the file.
        size_bytes: The size of the blocks that DataNodes have reported.
    """

    def __init__(self, store: HdfsStore, path: str) -> None:
        """Ask for the blocks and the status.

        Args:
            store: The store.
            path: The URL of the file.

        Raises:
            FileNotFoundError: There is no such file.
        """
        self._path = path
        with translate_errors(path, "read"):
            status = store.client.get_file_info(store.name(path))
            self._reader = store.client.read(store.name(path))
            self.length = status.length
            self.size_bytes = min(status.length, len(self._reader))
        self.identity = self.stamp = f"{status.length}-{status.modification_time}"

    def read(self, start: int, end: int) -> bytes:
        """See `File.read`."""
        end = min(end, self.size_bytes)
        if start >= end:
            return b""
        with translate_errors(self._path, "read"):
            return self._reader.read_range(start, end - start)

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()


class HdfsStore:
    """One NameNode or name service. A path is the whole URL, `hdfs://host:port/path`."""

    max_parallel_reads = 8

    def __init__(
        self,
        url: str,
        storage: StorageOptions,
        new_id: NewTemporaryId = random_id,
        wait: Wait = _wait,
    ) -> None:
        """Make the client.

        Args:
            url: `hdfs://host:port`, or `hdfs://` for the default file system.
            storage: The storage options.
            new_id: Returns the ids of temporary files.
            wait: Waits for the reports of DataNodes.

        Raises:
            OptionError: An option is wrong, or hdfs-native is not installed.
        """
        _set_user(storage)
        self.client = _make_client(url)
        self._url, self._new_id, self._wait = url, new_id, wait

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """See `ReadableStore.entries`."""
        name = self.name(directory)
        with translate_errors(directory, "listed"):
            statuses = list(self.client.list_status(name))
        if len(statuses) == 1 and statuses[0].path == name and not statuses[0].isdir:
            raise NotADirectoryError(f"{directory} is a file")
        entries = [
            DirectoryEntry(
                status.path.rsplit("/", 1)[-1],
                self._url + status.path,
                status.length,
                status.isdir,
            )
            for status in statuses
        ]
        return sorted(entries, key=lambda entry: entry.name)

    def names_after(self, directory: str, name: str) -> list[str]:
        """See `ReadableStore.names_after`."""
        return entry_names_after(self, directory, name)

    def open(self, path: str, size_bytes: int | None = None) -> HdfsFile:
        """See `ReadableStore.open`. A file that is being written has its bytes so far."""
        if size_bytes is None:
            return HdfsFile(self, path)
        return self._open_when_reported(path, size_bytes)

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """See `ReadableStore.read`."""
        file = self._open_when_reported(path)
        try:
            check_size(path, file.size_bytes, max_bytes)
            return file.read(0, file.size_bytes)
        finally:
            file.close()

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See `WritableStore.put_if_absent`.

        If the name is taken, nothing is written: most writers that lose come late.
        """
        name = self.name(path)
        with translate_errors(path, "written"):
            if self._file_exists(name):
                return PutResult.EXISTS
        temporary = self._stage(path, (data,))
        try:
            self.client.rename(temporary, name, overwrite=False)
        except FileExistsError:
            self._remove(temporary)
            return PutResult.EXISTS
        except FileNotFoundError:
            # The temporary file is gone: the client repeats a call whose answer was lost.
            return PutResult.UNKNOWN
        except (OSError, RuntimeError) as exc:
            if not is_refused(exc):
                return PutResult.UNKNOWN
            self._remove(temporary)
            raise hdfs_error(path, "written", exc) from exc
        return PutResult.CREATED

    def put(self, path: str, chunks: Iterable[bytes]) -> None:
        """See `WritableStore.put`."""
        temporary = self._stage(path, chunks)
        with translate_errors(path, "written"):
            try:
                self.client.rename(temporary, self.name(path), overwrite=True)
            except (OSError, RuntimeError):
                self._remove(temporary)
                raise

    def delete(self, path: str) -> None:
        """See `WritableStore.delete`."""
        with translate_errors(path, "deleted"), suppress(FileNotFoundError):
            self.client.delete(self.name(path))

    def name(self, path: str) -> str:
        """Return a path as the NameNode knows it.

        Args:
            path: The whole URL.
        """
        return "/" + path.removeprefix(self._url).strip("/")

    def _open_when_reported(self, path: str, size_bytes: int | None = None) -> HdfsFile:
        """Open a file when DataNodes have reported so many of its bytes, all if None."""
        tries = 0
        while True:
            file = HdfsFile(self, path)
            min_bytes = file.length if size_bytes is None else min(size_bytes, file.length)
            if file.size_bytes >= min_bytes:
                return file
            file.close()
            tries += 1
            if tries == _MAX_REPORT_TRIES:
                raise StoreError(
                    f"{path}: not read: it has {file.length} bytes, and DataNodes have reported "
                    f"blocks of {file.size_bytes}. Try again later, and check that the DataNodes "
                    "reach the NameNode"
                )
            self._wait(tries)

    def _file_exists(self, name: str) -> bool:
        """Return whether a file has a name; for a directory, the rename raises the error."""
        try:
            return not self.client.get_file_info(name).isdir
        except FileNotFoundError:
            return False

    def _stage(self, path: str, chunks: Iterable[bytes]) -> str:
        """Write, sync and close a temporary file; it is removed again if that fails."""
        from hdfs_native import WriteOptions

        temporary = temporary_path(self.name(path), self._new_id)
        options = WriteOptions(overwrite=False, create_parent=True)
        with translate_errors(path, "written"):
            writer = self.client.create(temporary, options)
        try:
            written = 0
            for chunk in chunks:
                with translate_errors(path, "written"):
                    written += writer.write(chunk) if chunk else 0
            with translate_errors(path, "written"):
                if written:
                    writer.hsync()
                writer.close()
        except BaseException:
            self._remove(temporary)
            raise
        return temporary

    def _remove(self, temporary: str) -> None:
        """Remove a temporary file; vacuum removes it if this fails."""
        with suppress(OSError, RuntimeError):
            self.client.delete(temporary)


def _make_client(url: str) -> Client:
    try:
        from hdfs_native import Client
    except ImportError as exc:
        raise OptionError(
            "path: hdfs:// needs a client that is not installed. Run pip install hdfs-native"
        ) from exc
    try:
        return Client(url if url != "hdfs://" else None, _CONFIG)
    except (OSError, RuntimeError, ValueError) as exc:
        raise OptionError(
            f"path: cannot use {url}: {short_message(exc)}. Check the host and port, and "
            "HADOOP_CONF_DIR"
        ) from exc


def _set_user(storage: StorageOptions) -> None:
    """Make this whole process the user of the storage options, from now on."""
    user = str(client_options(storage, HDFS).get("user", ""))
    if user and os.environ.setdefault(USER_VARIABLE, user) != user:
        raise OptionError(
            f"storage.user: must be {os.environ[USER_VARIABLE]}, because this process is that user "
            f"to HDFS already ({USER_VARIABLE}). Leave storage.user out, or unset {USER_VARIABLE} "
            "in a new process"
        )
