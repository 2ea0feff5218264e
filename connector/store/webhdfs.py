"""WebHDFS, with nothing installed: one winner by RENAME with `renameoptions=NONE`.

Why one winner: as with `hdfs://`, a closed temporary file gets the final name by a rename that the
NameNode refuses where the name is taken. With that option it says so (403, FileAlreadyExists);
without, it answers 200 and a boolean, moves a file into a directory that has the name, and says the
same of a lost source. There is no hsync: what is acknowledged is in the memory of its DataNodes.
Only a cluster without Kerberos can be reached so.
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

from klog.connector.store.contract import Put
from klog.connector.store.files import Entry, check_size, entry_names_after
from klog.connector.store.hdfs import USER
from klog.connector.store.storage import Storage
from klog.connector.store.temporary import NewId, random_id, temporary_path
from klog.errors import KlogError, OptionError

TIMEOUT_SECONDS = 60
_LOST = (OSError, http.client.HTTPException)
"""What is raised where no answer came."""


class RemoteError(Exception):
    """An answer of the NameNode or a DataNode that says no."""

    def __init__(self, status: int, body: bytes) -> None:
        """Take Hadoop's exception out of the body, if there is one."""
        super().__init__(status, body)
        self.status, self.exception, self.message = status, "", f"status {status}"
        with suppress(ValueError, KeyError, TypeError):
            found = json.loads(body)["RemoteException"]
            self.exception = str(found["exception"])
            self.message = str(found["message"]).split("\n", 1)[0]


class WebHdfsFile:
    """A file, as of its opening."""

    def __init__(self, store: WebHdfs, path: str) -> None:
        """Ask for the status."""
        self._store, self._path = store, path
        status = store.status(path)
        if status["type"] != "FILE":
            raise FileNotFoundError(f"{path} is a directory")
        self.size_bytes = int(status["length"])
        self.identity = str(status.get("fileId", status["modificationTime"]))
        self.stamp = f"{self.size_bytes}-{status['modificationTime']}"

    def read(self, begin: int, end: int) -> bytes:
        """Read from `begin` to before `end`."""
        behind = min(end, self.size_bytes)
        if begin >= behind:
            return b""
        data = self._store.read_range(self._path, begin, behind - begin)
        if len(data) != behind - begin:
            raise FileNotFoundError(f"{self._path} was replaced while it was read")
        return data

    def close(self) -> None:
        """Hold nothing open between reads."""


class WebHdfs:
    """One NameNode's web address. A path is the whole URL, `webhdfs://host:port/path`."""

    reads_at_once = 8

    def __init__(self, url: str, storage: Storage, new_id: NewId = random_id) -> None:
        """Check the address; nothing is sent yet."""
        parts = urlsplit(url)
        if not parts.hostname or parts.port is None:
            raise OptionError(f"path: {url} needs a host and a port: webhdfs://host:9870/path")
        self._url, self._new_id = url, new_id
        self._host = f"{parts.hostname}:{parts.port}"
        user = storage.of_client("hdfs").get("user") or os.environ.get(USER)
        self._user = {"user.name": str(user)} if user else {}

    def entries(self, directory: str) -> list[Entry]:
        """List a directory."""
        listed = self._json("listed", "GET", directory, op="LISTSTATUS")
        found = listed["FileStatuses"]["FileStatus"]
        if len(found) == 1 and not found[0]["pathSuffix"]:
            raise NotADirectoryError(f"{directory} is a file")
        root = directory.rstrip("/")
        entries = [
            Entry(
                one["pathSuffix"],
                f"{root}/{one['pathSuffix']}",
                int(one["length"]),
                one["type"] == "DIRECTORY",
            )
            for one in found
        ]
        return sorted(entries, key=lambda entry: entry.name)

    def names_after(self, directory: str, name: str) -> list[str]:
        """List the names that sort after `name`."""
        return entry_names_after(self, directory, name)

    def open(self, path: str, size_bytes: int | None = None) -> WebHdfsFile:
        """Open a file, asking for its size also where it is known: no range tells it."""
        return WebHdfsFile(self, path)

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """Read a whole file."""
        file = self.open(path)
        check_size(path, file.size_bytes, most_bytes)
        return file.read(0, file.size_bytes)

    def status(self, path: str) -> Any:
        """Give Hadoop's FileStatus."""
        return self._json("read", "GET", path, op="GETFILESTATUS")["FileStatus"]

    def read_range(self, path: str, begin: int, size_bytes: int) -> bytes:
        """Read a range from a DataNode."""
        asked = {"op": "OPEN", "offset": str(begin), "length": str(size_bytes)}
        try:
            return _ask("GET", self._datanode("GET", path, asked))
        except (RemoteError, *_LOST) as exc:
            raise _in_words(path, "read", exc) from exc

    def put_if_absent(self, path: str, data: bytes) -> Put:
        """Create `path` by renaming a closed temporary file."""
        temporary = self._staged(path, (data,))
        try:
            self._rename(temporary, path, "NONE")
        except RemoteError as exc:
            if exc.status >= 500 or exc.exception == "FileNotFoundException":
                return Put.UNKNOWN
            self._remove(temporary)
            if exc.exception == "FileAlreadyExistsException":
                return Put.EXISTS
            raise _in_words(path, "written", exc) from exc
        except _LOST:
            return Put.UNKNOWN
        return Put.CREATED

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write `path` by a closed temporary file that takes its name."""
        temporary = self._staged(path, pieces)
        try:
            self._rename(temporary, path, "OVERWRITE")
        except (RemoteError, *_LOST) as exc:
            self._remove(temporary)
            raise _in_words(path, "written", exc) from exc

    def delete(self, path: str) -> None:
        """Remove `path`."""
        with suppress(FileNotFoundError):
            self._json("deleted", "DELETE", path, op="DELETE")

    def _rename(self, temporary: str, path: str, option: str) -> None:
        asked = {"op": "RENAME", "destination": self._name(path), "renameoptions": option}
        _ask("PUT", self._address(temporary, asked))

    def _staged(self, path: str, pieces: Iterable[bytes]) -> str:
        """Write and close a temporary file; it is removed again where that fails."""
        temporary = temporary_path(path, self._new_id)
        asked = {"op": "CREATE", "overwrite": "false"}
        try:
            address = self._datanode("PUT", temporary, asked)
            _ask("PUT", address, (piece for piece in pieces if piece))
        except (RemoteError, *_LOST) as exc:
            self._remove(temporary)
            raise _in_words(path, "written", exc) from exc
        except BaseException:
            # What was sent so far is a closed file by now, as HDFS takes it for the whole.
            self._remove(temporary)
            raise
        return temporary

    def _remove(self, temporary: str) -> None:
        """Remove a temporary file; what cannot be removed is left for vacuum."""
        with suppress(KlogError):
            self.delete(temporary)

    def _datanode(self, method: str, path: str, asked: Mapping[str, str]) -> str:
        """Ask the NameNode which DataNode to talk to; an empty file has one as well."""
        answer = _ask(method, self._address(path, {**asked, "noredirect": "true"}))
        # It comes escaped, but for letters beyond ASCII.
        return quote(json.loads(answer)["Location"], safe=string.printable)

    def _json(self, done: str, method: str, path: str, **asked: str) -> Any:
        try:
            return json.loads(_ask(method, self._address(path, asked)))
        except (RemoteError, ValueError, *_LOST) as exc:
            raise _in_words(path, done, exc) from exc

    def _address(self, path: str, asked: Mapping[str, str]) -> str:
        query = urlencode({**asked, **self._user})
        return f"http://{self._host}/webhdfs/v1{quote(self._name(path), safe='/')}?{query}"

    def _name(self, path: str) -> str:
        return "/" + path.removeprefix(self._url).strip("/")


def _ask(method: str, address: str, pieces: Iterator[bytes] | None = None) -> bytes:
    """Send one request; raises `RemoteError` for an answer that says no."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_SECONDS)
    headers = {} if pieces is None else {"Content-Type": "application/octet-stream"}
    try:
        connection.request(method, f"{parts.path}?{parts.query}", pieces, headers)
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise RemoteError(answer.status, body)
    return body


def _in_words(path: str, done: str, exc: Exception) -> Exception:
    """Give the error to raise: `FileNotFoundError` for what is missing, else a `KlogError`."""
    if not isinstance(exc, RemoteError):
        return KlogError(
            f"{path}: not {done}: {type(exc).__name__}: {exc}. Check the NameNode's web address, "
            "then try again"
        )
    if exc.exception == "FileNotFoundException" and done != "written":
        return FileNotFoundError(f"there is no {path}")
    said = f"{exc.exception or 'the server says no'}: {exc.message}".rstrip(".")
    step = "Check the path, the NameNode and the DataNodes, then try again"
    if exc.status == 401:
        step = "This cluster wants Kerberos: use hdfs://"
    elif exc.exception == "AccessControlException":
        step = f"Set storage.user or {USER} to one who may"
    return KlogError(f"{path}: not {done}: {said}. {step}")
