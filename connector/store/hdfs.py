"""HDFS by hdfs-native: one winner by a rename that does not replace.

Why one winner: the bytes go to a temporary file in the same directory, are synced to the disks of
their DataNodes (hdfs-native does so at the end of each block, and `hsync` promises it of the last)
and closed, and `rename` without overwrite gives the final name, which the NameNode
decides under its lock and refuses where the name is taken. A file is never created under its final
name: whichever client is killed at it leaves a torn or empty one there, which blocks the name.

A NameNode may close a file whose last block no DataNode has reported yet (HDFS-8999): its length is
known, and where its bytes are is not. Who wants all of them waits for the report.

A process has one user, as with Hadoop's own client: Kerberos says who, else `HADOOP_USER_NAME`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from klog.connector.store.contract import Put
from klog.connector.store.files import Entry, check_size, entry_names_after
from klog.connector.store.storage import Storage
from klog.connector.store.temporary import NewId, random_id, temporary_path
from klog.errors import KlogError, OptionError

if TYPE_CHECKING:
    from hdfs_native import Client

USER = "HADOOP_USER_NAME"
_CONFIG = {"dfs.client.failover.max.attempts": "8"}
"""A NameNode that is away is tried for about half a minute, not for three."""
_REFUSED = re.compile(r'RPCError\("(?:[\w.$]*\.)?(\w+)", "(.*)', re.DOTALL)
"""What the NameNode answered; other errors may be of a call whose answer was lost."""


_REPORT_TRIES = 9
"""Some 5 s in all; DataNodes report within milliseconds, unless they are told otherwise."""

Wait = Callable[[int], object]


def _wait(tries: int) -> None:
    time.sleep(0.01 * 2 ** (tries - 1))


class HdfsFile:
    """A file, as of its opening."""

    def __init__(self, store: Hdfs, path: str) -> None:
        """Ask for the blocks and the status."""
        self._path = path
        with in_words(path, "read"):
            status = store.client.get_file_info(store.name(path))
            self._reader = store.client.read(store.name(path))
            self.told_bytes = status.length
            self.size_bytes = min(status.length, len(self._reader))
        self.identity = self.stamp = f"{status.length}-{status.modification_time}"

    def read(self, begin: int, end: int) -> bytes:
        """Read from `begin` to before `end`."""
        behind = min(end, self.size_bytes)
        if begin >= behind:
            return b""
        with in_words(self._path, "read"):
            return self._reader.read_range(begin, behind - begin)

    def close(self) -> None:
        """Give the file back."""
        self._reader.close()


class Hdfs:
    """One NameNode or name service. A path is the whole URL, `hdfs://host:port/path`."""

    reads_at_once = 8

    def __init__(
        self, url: str, storage: Storage, new_id: NewId = random_id, wait: Wait = _wait
    ) -> None:
        """Make the client of `hdfs://host:port`, or of the default file system for `hdfs://`."""
        _be(storage)
        self.client = _client(url)
        self._url, self._new_id, self._wait = url, new_id, wait

    def entries(self, directory: str) -> list[Entry]:
        """List a directory."""
        name = self.name(directory)
        with in_words(directory, "listed"):
            found = list(self.client.list_status(name))
        if len(found) == 1 and found[0].path == name and not found[0].isdir:
            raise NotADirectoryError(f"{directory} is a file")
        entries = [
            Entry(one.path.rsplit("/", 1)[-1], self._url + one.path, one.length, one.isdir)
            for one in found
        ]
        return sorted(entries, key=lambda entry: entry.name)

    def names_after(self, directory: str, name: str) -> list[str]:
        """List the names that sort after `name`."""
        return entry_names_after(self, directory, name)

    def open(self, path: str, size_bytes: int | None = None) -> HdfsFile:
        """Open a file; of one that is being written, what is there."""
        return HdfsFile(self, path) if size_bytes is None else self._with(path, size_bytes)

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """Read a whole file."""
        file = self._with(path)
        try:
            check_size(path, file.size_bytes, most_bytes)
            return file.read(0, file.size_bytes)
        finally:
            file.close()

    def put_if_absent(self, path: str, data: bytes) -> Put:
        """Create `path` by renaming a closed temporary file.

        A name that is taken is seen before anything is written: most who lose come late.
        """
        name = self.name(path)
        with in_words(path, "written"):
            if self._is_taken(name):
                return Put.EXISTS
        temporary = self._staged(path, (data,))
        try:
            self.client.rename(temporary, name, overwrite=False)
        except FileExistsError:
            self._remove(temporary)
            return Put.EXISTS
        except FileNotFoundError:
            # The source has gone: the client repeats a call whose answer was lost.
            return Put.UNKNOWN
        except (OSError, RuntimeError) as exc:
            if not _REFUSED.match(str(exc)):
                return Put.UNKNOWN
            self._remove(temporary)
            raise _error(path, "written", exc) from exc
        return Put.CREATED

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write `path` by a closed temporary file that takes its name."""
        temporary = self._staged(path, pieces)
        with in_words(path, "written"):
            try:
                self.client.rename(temporary, self.name(path), overwrite=True)
            except (OSError, RuntimeError):
                self._remove(temporary)
                raise

    def delete(self, path: str) -> None:
        """Remove `path`."""
        with in_words(path, "deleted"), suppress(FileNotFoundError):
            self.client.delete(self.name(path))

    def name(self, path: str) -> str:
        """Give the path as the NameNode knows it."""
        return "/" + path.removeprefix(self._url).strip("/")

    def _with(self, path: str, size_bytes: int | None = None) -> HdfsFile:
        """Open a file when so many of its bytes, all if None, have been reported."""
        tries = 0
        while True:
            file = HdfsFile(self, path)
            least = file.told_bytes if size_bytes is None else min(size_bytes, file.told_bytes)
            if file.size_bytes >= least:
                return file
            file.close()
            tries += 1
            if tries == _REPORT_TRIES:
                raise KlogError(
                    f"{path}: not read: it has {file.told_bytes} bytes, and DataNodes have "
                    f"reported blocks of {file.size_bytes}. Try again later, and see what "
                    f"DataNodes say to the NameNode"
                )
            self._wait(tries)

    def _is_taken(self, name: str) -> bool:
        """Tell whether a file has the name; a directory is left to the rename, which says why."""
        try:
            return not self.client.get_file_info(name).isdir
        except FileNotFoundError:
            return False

    def _staged(self, path: str, pieces: Iterable[bytes]) -> str:
        """Write, sync and close a temporary file; it is removed again where that fails."""
        from hdfs_native import WriteOptions

        temporary = temporary_path(self.name(path), self._new_id)
        options = WriteOptions(overwrite=False, create_parent=True)
        with in_words(path, "written"):
            writer = self.client.create(temporary, options)
        try:
            written = 0
            for piece in pieces:
                with in_words(path, "written"):
                    written += writer.write(piece) if piece else 0
            with in_words(path, "written"):
                if written:
                    writer.hsync()
                writer.close()
        except BaseException:
            self._remove(temporary)
            raise
        return temporary

    def _remove(self, temporary: str) -> None:
        """Remove a temporary file; what cannot be removed is left for vacuum."""
        with suppress(OSError, RuntimeError):
            self.client.delete(temporary)


def _client(url: str) -> Client:
    try:
        from hdfs_native import Client
    except ImportError as exc:
        raise OptionError(
            "path: hdfs:// needs a client that is not installed: pip install 'klog[hdfs]'"
        ) from exc
    try:
        return Client(url if url != "hdfs://" else None, _CONFIG)
    except (OSError, RuntimeError, ValueError) as exc:
        raise OptionError(
            f"path: cannot use {url}: {_said(exc)}. Check the host and port, and HADOOP_CONF_DIR"
        ) from exc


def _be(storage: Storage) -> None:
    """Be the user that was said, from now on and in this whole process."""
    user = str(storage.of_client("hdfs").get("user", ""))
    if user and os.environ.setdefault(USER, user) != user:
        raise OptionError(
            f"storage.user: this process is {os.environ[USER]} to HDFS already ({USER}), and has "
            f"one user; unset {USER}, or leave storage.user out"
        )


@contextmanager
def in_words(path: str, done: str) -> Iterator[None]:
    """Restate what the client raises as a `KlogError` that names the path and the next step."""
    try:
        yield
    except FileNotFoundError as exc:
        if done == "written":
            raise _error(path, done, exc) from exc
        raise FileNotFoundError(f"there is no {path}") from None
    except (OSError, RuntimeError, ValueError) as exc:
        raise _error(path, done, exc) from exc


def _error(path: str, done: str, exc: Exception) -> KlogError:
    return KlogError(f"{path}: not {done}: {_said(exc)}. {_next_step(str(exc))}")


def _said(exc: Exception) -> str:
    """Say what the NameNode said, without its stack."""
    found = _REFUSED.match(str(exc))
    text = f"{found[1]}: {found[2]}" if found else str(exc)
    return re.split(r"\n|\\n", text, maxsplit=1)[0].rstrip('") .')


def _next_step(said: str) -> str:
    if "AccessControlException" in said:
        return f"Check who this process is ({USER} or Kerberos), and what that user may do there"
    if "SafeModeException" in said:
        return "The NameNode is in safe mode: try again when it has left it"
    if "QuotaExceeded" in said or "could only be written to 0" in said:
        return "Free some space or raise the quota, then write again"
    return "Check the path, the NameNode and the DataNodes, then try again"
