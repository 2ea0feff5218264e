"""WebHDFS, with nothing installed: put-if-absent has one winner by RENAME, `renameoptions=NONE`.

Why one winner: as with `hdfs://`, a closed temporary file gets the final name by a rename that the
NameNode refuses if the name is taken. With that option it says so (403, FileAlreadyExists). Without
it, it answers 200 and a boolean, moves a file into a directory that has the name, and gives the
same answer for a lost source. There is no hsync: what is acknowledged is in the memory of its
DataNodes. Only a cluster without Kerberos can be reached by WebHDFS.
"""

from __future__ import annotations

import http.client
import json
import os
import string
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from klog.connector.options.storage_option_table import HDFS
from klog.connector.options.storage_options import StorageOptions
from klog.connector.store.client_options import client_options
from klog.connector.store.hdfs_errors import USER_VARIABLE
from klog.connector.store.readable_store import DirectoryEntry, check_size, entry_names_after
from klog.connector.store.temporary_names import NewTemporaryId, random_id, temporary_path
from klog.connector.store.writable_store import PutResult
from klog.errors import OptionError, StoreError, StoreRefusedError

TIMEOUT_SECONDS = 60
_LOST_ANSWER = (OSError, http.client.HTTPException)
"""What is raised if no answer came."""


class RemoteError(Exception):
    """An answer of the NameNode or a DataNode that refuses a request.

    Attributes:
        status: The HTTP status.
        exception: The name of Hadoop's exception, if the body has one.
        message: The first line of its message.
    """

    def __init__(self, status: int, body: bytes) -> None:
        """Take Hadoop's exception out of the body, if there is one.

        Args:
            status: The status of the answer.
            body: The answer.
        """
        super().__init__(status, body)
        self.status, self.exception, self.message = status, "", f"status {status}"
        with suppress(ValueError, KeyError, TypeError):
            fields = json.loads(body)["RemoteException"]
            self.exception = str(fields["exception"])
            self.message = str(fields["message"]).split("\n", 1)[0]


class WebHdfsFile:
    """A file, as of its opening."""

    def __init__(self, store: WebHdfsStore, path: str) -> None:
        """Ask for the status.

        Args:
            store: The store.
            path: The URL of the file.

        Raises:
            FileNotFoundError: There is no such file, or it is a directory.
        """
        self._store, self._path = store, path
        status = store.status(path)
        if status["type"] != "FILE":
            raise FileNotFoundError(f"{path} is a directory")
        self.size_bytes = int(status["length"])
        self.identity = str(status.get("fileId", status["modificationTime"]))
        self.stamp = f"{self.size_bytes}-{status['modificationTime']}"

    def read(self, start: int, end: int) -> bytes:
        """See `File.read`."""
        end = min(end, self.size_bytes)
        if start >= end:
            return b""
        data = self._store.read_range(self._path, start, end - start)
        if len(data) != end - start:
            raise FileNotFoundError(f"{self._path} was replaced while it was read")
        return data

    def close(self) -> None:
        """Do nothing: nothing is open between reads."""


class WebHdfsStore:
    """One NameNode's web address. A path is the whole URL, `webhdfs://host:port/path`."""

    max_parallel_reads = 8

    def __init__(
        self, url: str, storage: StorageOptions, new_id: NewTemporaryId = random_id
    ) -> None:
        """Check the address; nothing is sent yet.

        Args:
            url: `webhdfs://host:port`.
            storage: The storage options.
            new_id: Returns the ids of temporary files.

        Raises:
            OptionError: The URL has no host or no port.
        """
        parts = urlsplit(url)
        if not parts.hostname or parts.port is None:
            raise OptionError(
                f"path: must have a host and a port, got {url!r}. Example: webhdfs://host:9870/path"
            )
        self._url, self._new_id = url, new_id
        self._host = f"{parts.hostname}:{parts.port}"
        user = client_options(storage, HDFS).get("user") or os.environ.get(USER_VARIABLE)
        self._user = {"user.name": str(user)} if user else {}

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """See `ReadableStore.entries`."""
        answer = self._request_json("listed", "GET", directory, op="LISTSTATUS")
        statuses = answer["FileStatuses"]["FileStatus"]
        if len(statuses) == 1 and not statuses[0]["pathSuffix"]:
            raise NotADirectoryError(f"{directory} is a file")
        root = directory.rstrip("/")
        entries = [
            DirectoryEntry(
                status["pathSuffix"],
                f"{root}/{status['pathSuffix']}",
                int(status["length"]),
                status["type"] == "DIRECTORY",
            )
            for status in statuses
        ]
        return sorted(entries, key=lambda entry: entry.name)

    def names_after(self, directory: str, name: str) -> list[str]:
        """See `ReadableStore.names_after`."""
        return entry_names_after(self, directory, name)

    def open(self, path: str, size_bytes: int | None = None) -> WebHdfsFile:
        """See `ReadableStore.open`. The size is always asked for, as no range has it."""
        return WebHdfsFile(self, path)

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """See `ReadableStore.read`."""
        file = self.open(path)
        check_size(path, file.size_bytes, max_bytes)
        return file.read(0, file.size_bytes)

    def status(self, path: str) -> Any:
        """Return Hadoop's FileStatus of a path.

        Args:
            path: The whole URL of the file or directory.

        Raises:
            FileNotFoundError: The path is missing.
            StoreError: There was no answer, or another refusal.
        """
        return self._request_json("read", "GET", path, op="GETFILESTATUS")["FileStatus"]

    def read_range(self, path: str, start: int, size_bytes: int) -> bytes:
        """Return a range of a file, from a DataNode.

        Args:
            path: The whole URL of the file.
            start: The position of the first byte.
            size_bytes: How many bytes to read.

        Raises:
            FileNotFoundError: The file is missing.
            StoreError: There was no answer, or another refusal.
        """
        query = {"op": "OPEN", "offset": str(start), "length": str(size_bytes)}
        try:
            return _request("GET", self._datanode_address("GET", path, query))
        except (RemoteError, *_LOST_ANSWER) as exc:
            raise _translated_error(path, "read", exc) from exc

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See `WritableStore.put_if_absent`."""
        temporary = self._stage(path, (data,))
        try:
            self._rename(temporary, path, "NONE")
        except RemoteError as exc:
            if exc.status >= 500 or exc.exception == "FileNotFoundException":
                return PutResult.UNKNOWN
            self._remove(temporary)
            if exc.exception == "FileAlreadyExistsException":
                return PutResult.EXISTS
            raise _translated_error(path, "written", exc) from exc
        except _LOST_ANSWER:
            return PutResult.UNKNOWN
        return PutResult.CREATED

    def put(self, path: str, chunks: Iterable[bytes]) -> None:
        """See `WritableStore.put`."""
        temporary = self._stage(path, chunks)
        try:
            self._rename(temporary, path, "OVERWRITE")
        except (RemoteError, *_LOST_ANSWER) as exc:
            self._remove(temporary)
            raise _translated_error(path, "written", exc) from exc

    def delete(self, path: str) -> None:
        """See `WritableStore.delete`."""
        with suppress(FileNotFoundError):
            self._request_json("deleted", "DELETE", path, op="DELETE")

    def _rename(self, temporary: str, path: str, option: str) -> None:
        query = {"op": "RENAME", "destination": self._name(path), "renameoptions": option}
        _request("PUT", self._address(temporary, query))

    def _stage(self, path: str, chunks: Iterable[bytes]) -> str:
        """Write and close a temporary file; it is removed again if that fails."""
        temporary = temporary_path(path, self._new_id)
        query = {"op": "CREATE", "overwrite": "false"}
        try:
            address = self._datanode_address("PUT", temporary, query)
            _request("PUT", address, (chunk for chunk in chunks if chunk))
        except (RemoteError, *_LOST_ANSWER) as exc:
            self._remove(temporary)
            raise _translated_error(path, "written", exc) from exc
        except BaseException:
            # HDFS takes the bytes that were sent so far for the whole file, and closes it.
            self._remove(temporary)
            raise
        return temporary

    def _remove(self, temporary: str) -> None:
        """Remove a temporary file; vacuum removes it if this fails."""
        with suppress(StoreError):
            self.delete(temporary)

    def _datanode_address(self, method: str, path: str, query: Mapping[str, str]) -> str:
        """Ask the NameNode which DataNode to send a request to; an empty file has one as well."""
        answer = _request(method, self._address(path, {**query, "noredirect": "true"}))
        # The address is escaped, except for letters beyond ASCII.
        return quote(json.loads(answer)["Location"], safe=string.printable)

    def _request_json(self, operation: str, method: str, path: str, **query: str) -> Any:
        try:
            return json.loads(_request(method, self._address(path, query)))
        except (RemoteError, ValueError, *_LOST_ANSWER) as exc:
            raise _translated_error(path, operation, exc) from exc

    def _address(self, path: str, query: Mapping[str, str]) -> str:
        parameters = urlencode({**query, **self._user})
        return f"http://{self._host}/webhdfs/v1{quote(self._name(path), safe='/')}?{parameters}"

    def _name(self, path: str) -> str:
        return "/" + path.removeprefix(self._url).strip("/")


def _request(method: str, address: str, chunks: Iterator[bytes] | None = None) -> bytes:
    """Send one request; raise `RemoteError` for an answer that refuses it."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_SECONDS)
    headers = {} if chunks is None else {"Content-Type": "application/octet-stream"}
    try:
        connection.request(method, f"{parts.path}?{parts.query}", chunks, headers)
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise RemoteError(answer.status, body)
    return body


def _translated_error(path: str, operation: str, exc: Exception) -> Exception:
    """Return the error to raise: `FileNotFoundError` for a missing file, else a `StoreError`."""
    if not isinstance(exc, RemoteError):
        return StoreError(
            f"{path}: not {operation}: {type(exc).__name__}: {exc}. Check the NameNode's web "
            "address, then try again"
        )
    if exc.exception == "FileNotFoundException" and operation != "written":
        return FileNotFoundError(f"there is no {path}")
    message = f"{exc.exception or 'the server says no'}: {exc.message}".rstrip(".")
    error_class: type[StoreError] = StoreRefusedError
    if exc.status == 401:
        step = "This cluster needs Kerberos: use hdfs://"
    elif exc.exception == "AccessControlException":
        step = f"Set storage.user or {USER_VARIABLE} to a user who may"
    elif "QuotaExceeded" in exc.exception:
        step = "Free some space or raise the quota, then write again"
    else:
        error_class = StoreError
        step = "Check the path, the NameNode and the DataNodes, then try again"
    return error_class(f"{path}: not {operation}: {message}. {step}")
