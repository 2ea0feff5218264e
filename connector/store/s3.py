"""S3 by obstore: one winner by `If-None-Match: *`, which the server decides.

Why one winner: PutObject with that condition fails with 412 where the key is there, and S3 makes a
key visible whole. obstore's own API sends the condition; its adapter for fsspec does not, and is
not used. The client of `put_if_absent` never sends a request twice by itself, as a second one would
meet the object of the first: 412 then says EXISTS of one's own bytes. What was lost on the way
(time-out, reset, 5xx) is UNKNOWN; 409 says that nothing was written, and is tried again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from klog.connector.store.aws import Patience, s3_client
from klog.connector.store.contract import Put
from klog.connector.store.files import Entry
from klog.connector.store.storage import Storage
from klog.errors import KlogError

CONFLICT_TRIES = 5
FIRST_PAUSE_SECONDS = 0.05
ONCE_SECONDS = 60
"""A put-if-absent that takes longer is UNKNOWN."""
PART_BYTES = 8 << 20
"""S3 takes 10,000 parts: 80 GiB of these, and a segment has 2 GiB."""

_PATIENT = Patience(retries=5, request_seconds=600)
_STATUS = re.compile(r"status code: (\d{3})([^:\n]*)")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_METADATA = re.compile(r"Error performing \w+ \S+/latest/|https?://169\.254\.")


class S3File:
    """An object, as of its opening: a read after it was replaced is `FileNotFoundError`."""

    def __init__(self, store: S3, path: str) -> None:
        """Ask for the object's size and ETag."""
        self._store, self._path = store, path
        found = store.head(path)
        self.size_bytes = int(found["size"])
        self._tag = found["e_tag"]
        modified = found["last_modified"].isoformat()
        self.identity = self.stamp = f"{self.size_bytes}-{self._tag or modified}"

    def read(self, begin: int, end: int) -> bytes:
        """Read from `begin` to before `end` in one request."""
        if begin >= min(end, self.size_bytes):
            return b""
        return self._store.read_range(self._path, begin, min(end, self.size_bytes), self._tag)

    def close(self) -> None:
        """Hold nothing open between reads."""


class S3:
    """One bucket. A path is the whole URL, `s3://bucket/key`; `s3a://` is spelled so too."""

    def __init__(
        self,
        bucket: str,
        storage: Storage,
        sleep: Callable[[float], None] = time.sleep,
        once_seconds: int = ONCE_SECONDS,
    ) -> None:
        """Make the clients; nothing is sent yet. Raises `OptionError`."""
        self._client = s3_client(bucket, storage, _PATIENT)
        self._once = s3_client(bucket, storage, Patience(0, once_seconds))
        self._bucket, self._storage, self._sleep = bucket, storage, sleep

    def entries(self, directory: str) -> list[Entry]:
        """List a directory by delimiter. A prefix that nothing has is a missing directory."""
        import obstore

        key = self._key(directory)
        with self._in_words(directory, "listed"):
            found = obstore.list_with_delimiter(self._client, key)
        url = self._url(key)
        entries = [
            Entry(path.rsplit("/", 1)[-1], self._url(path), 0, True)
            for path in found["common_prefixes"]
        ]
        for item in found["objects"]:
            name = item["path"].removeprefix(f"{key}/" if key else "")
            if name and item["path"] != key:  # else the marker of the directory itself
                entries.append(Entry(name, f"{url}/{name}", int(item["size"]), False))
        if not entries and not found["objects"] and key:
            self._refuse_empty(directory)
        return sorted(entries, key=lambda entry: entry.name)

    def open(self, path: str) -> S3File:
        """Open an object."""
        return S3File(self, path)

    def read(self, path: str) -> bytes:
        """Read a whole object."""
        import obstore

        with self._in_words(path, "read"):
            return bytes(obstore.get(self._client, self._key(path)).bytes())

    def read_range(self, path: str, begin: int, end: int, tag: str | None) -> bytes:
        """Read a range that is not empty of the object that has this ETag."""
        import obstore

        options: Any = {"range": (begin, end)}
        if tag is not None:
            options["if_match"] = tag
        with self._in_words(path, "read", tag):
            return bytes(obstore.get(self._client, self._key(path), options=options).bytes())

    def head(self, path: str) -> Any:
        """Give the object's size, ETag and time."""
        import obstore

        with self._in_words(path, "read"):
            return obstore.head(self._client, self._key(path))

    def put_if_absent(self, path: str, data: bytes) -> Put:
        """Create `path` by one conditional PutObject; only a 409 is sent again."""
        import obstore
        from obstore.exceptions import BaseError

        for tries_left in reversed(range(CONFLICT_TRIES)):
            try:
                obstore.put(self._once, self._key(path), data, mode="create", use_multipart=False)
            except (BaseError, FileNotFoundError) as exc:
                status = _status(exc)
                if status == 412:
                    return Put.EXISTS
                if tries_left and (status == 409 or _never_connected(exc)):
                    self._sleep(FIRST_PAUSE_SECONDS * 2 ** (CONFLICT_TRIES - tries_left))
                    continue
                if _may_have_landed(exc, status):
                    return Put.UNKNOWN
                raise self._error(path, "written", exc) from self._storage.cause(exc)
            return Put.CREATED
        raise AssertionError("a loop of no tries")

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write `path` by one PutObject, or in parts where it is large."""
        import obstore

        coming = iter(pieces)
        first = _gathered(coming)
        with self._in_words(path, "written"):
            if len(first) < PART_BYTES:
                obstore.put(self._client, self._key(path), first, use_multipart=False)
            else:
                every = chain([first], coming)
                obstore.put(self._client, self._key(path), every, chunk_size=PART_BYTES)

    def delete(self, path: str) -> None:
        """Remove `path`."""
        import obstore

        with self._in_words(path, "deleted"):
            obstore.delete(self._client, self._key(path))

    def _key(self, path: str) -> str:
        return path.removeprefix(f"s3://{self._bucket}").strip("/")

    def _url(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}".rstrip("/")

    def _refuse_empty(self, directory: str) -> None:
        try:
            self.head(directory)
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no {directory}") from None
        raise NotADirectoryError(f"{directory} is a file")

    @contextmanager
    def _in_words(self, path: str, done: str, tag: str | None = None) -> Iterator[None]:
        from obstore.exceptions import BaseError, PreconditionError

        try:
            yield
        except PreconditionError as exc:
            if tag is None:  # No condition was sent: it says nothing about the object.
                raise self._error(path, done, exc) from self._storage.cause(exc)
            raise FileNotFoundError(f"{path} was replaced while it was read") from None
        except FileNotFoundError as exc:
            if done == "deleted":
                return
            if done == "written" or "NoSuchBucket" in _CODE.findall(str(exc)):
                raise self._error(path, done, exc) from self._storage.cause(exc)
            raise FileNotFoundError(f"there is no {path}") from None
        except BaseError as exc:
            raise self._error(path, done, exc) from self._storage.cause(exc)

    def _error(self, path: str, done: str, exc: Exception) -> KlogError:
        said = self._storage.redacted(_said(exc))
        return KlogError(f"{path}: not {done}: {said}. {_next_step(exc, self._bucket)}")


def _gathered(pieces: Iterator[bytes]) -> bytes:
    """Take pieces until a part is full."""
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size >= PART_BYTES:
            break
    return b"".join(found)


def _status(exc: Exception) -> int | None:
    found = _STATUS.search(str(exc))
    return int(found[1]) if found else None


def _never_connected(exc: Exception) -> bool:
    """Tell that no connection was made, so that no request was sent."""
    return "kind: Connect," in str(exc)


def _may_have_landed(exc: Exception, status: int | None) -> bool:
    """Tell whether the server may have taken the object in spite of this answer, or of none.

    Where many 409 came the path is there or will be, which only reading it back can tell.
    """
    text = str(exc)
    if _METADATA.search(text) or "incorrectly configured region" in text:
        return False
    if status is None:
        return "BadScheme" not in text and not _never_connected(exc)
    return status in (408, 409, 429) or (status >= 500 and status != 501)


def _said(exc: Exception) -> str:
    """Say what the server said in few words: its body may hold what was signed."""
    text = str(exc)
    if _METADATA.search(text):
        return "no credentials were found"
    found, code = _STATUS.search(text), _CODE.search(text)
    if found:
        return f"the server says {found[1]}{found[2]}" + (f" ({code[1]})" if code else "")
    if _never_connected(exc):
        return "no connection to the server"
    return text.split("\n", 1)[0].rsplit(" - ", 1)[-1].rstrip(". ")


def _next_step(exc: Exception, bucket: str) -> str:
    text, status = str(exc), _status(exc)
    if _METADATA.search(text):
        return "Set storage.access_key_id and storage.secret_access_key, or AWS_PROFILE"
    if "incorrectly configured region" in text or status == 301:
        return f"The bucket {bucket} is in another region: set storage.region"
    if status == 404:
        return f"Check that there is a bucket {bucket} at that endpoint"
    if status in (400, 401, 403):
        return f"Check the credentials, their expiry, and what they may do in the bucket {bucket}"
    if status == 501:
        return "This server lacks what klog asks of S3; keep the log on one that has it"
    return "Check storage.endpoint and the network, then try again"
