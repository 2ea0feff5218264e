"""S3 by obstore: one winner by `If-None-Match: *`, which the server decides.

Why one winner: PutObject with that condition fails with 412 where the key is there, and S3 makes a
key visible whole. obstore's own API sends the condition; its adapter for fsspec does not, and is
not used. The client of `put_if_absent` never sends a request twice by itself, as a second one would
meet the object of the first: 412 then says EXISTS of one's own bytes. What was lost on the way
(time-out, reset, 5xx) is UNKNOWN; 409 says that nothing was written, and is tried again.

Keys that have expired are looked for anew: where others are found by now (`aws sso login` has
renewed the profile, say), the refused call is made again with them, and so are all later ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from klog.connector.store.aws import Patience, found_keys, s3_client
from klog.connector.store.contract import Put
from klog.connector.store.files import Entry, check_size
from klog.connector.store.s3_refusals import (
    actual_bytes,
    code_of,
    in_few_words,
    is_of_credentials,
    may_have_landed,
    never_connected,
    next_step,
    repeats_keys,
    status_of,
)
from klog.connector.store.storage import Storage
from klog.errors import CorruptRecordError, KlogError

CONFLICT_TRIES = 5
FIRST_PAUSE_SECONDS = 0.05
ONCE_SECONDS = 60
"""A put-if-absent that takes longer is UNKNOWN."""
PART_BYTES = 8 << 20
"""S3 takes 10,000 parts: 80 GiB of these, and a segment has 2 GiB."""
REMEMBERED_DIRECTORIES = 10_000

_PATIENT = Patience(retries=5, request_seconds=600)
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Part:
    """A range of an object, cut at its end; `of_bytes` is its size, None if it was not told."""

    data: bytes
    of_bytes: int | None
    tag: str | None


class S3File:
    """An object, as of its opening: a read after it was replaced is `FileNotFoundError`.

    One whose size is known is opened by its first read; another size is a `CorruptRecordError`.
    """

    def __init__(self, store: S3, path: str, size_bytes: int | None) -> None:
        """Ask for the object's size and ETag, where its size is not known."""
        self._store, self._path, self._is_opened = store, path, size_bytes is None
        if size_bytes is not None:
            self.size_bytes, self._tag, self.identity, self.stamp = size_bytes, None, "", ""
            return
        found = store.head(path)
        self.size_bytes = int(found["size"])
        self._tag = found["e_tag"]
        modified = found["last_modified"].isoformat()
        self.identity = self.stamp = f"{self.size_bytes}-{self._tag or modified}"

    def read(self, begin: int, end: int) -> bytes:
        """Read from `begin` to before `end` in one request."""
        behind = min(end, self.size_bytes)
        if begin >= behind:
            return b""
        part = self._store.read_range(self._path, begin, behind, self._tag)
        if part.of_bytes != self.size_bytes:
            if self._is_opened:  # Of a server without ETags, which cannot say so itself.
                raise _replaced(self._path)
            has = f"at most {begin}" if part.of_bytes is None else str(part.of_bytes)
            raise CorruptRecordError(
                f"it has {has} bytes, its commit says {self.size_bytes}",
                min(begin if part.of_bytes is None else part.of_bytes, self.size_bytes),
            )
        self._tag, self._is_opened = part.tag, True
        return part.data

    def close(self) -> None:
        """Hold nothing open between reads."""


class S3:
    """One bucket. A path is the whole URL, `s3://bucket/key`; `s3a://` is spelled so too."""

    reads_at_once = 16

    def __init__(
        self,
        bucket: str,
        storage: Storage,
        sleep: Callable[[float], None] = time.sleep,
        once_seconds: int = ONCE_SECONDS,
    ) -> None:
        """Make the clients; nothing is sent yet. Raises `OptionError`."""
        self._bucket, self._storage, self._sleep = bucket, storage, sleep
        self._once_seconds = once_seconds
        self._no_files: set[str] = set()
        self._make_clients()

    def entries(self, directory: str) -> list[Entry]:
        """List a directory by delimiter. A prefix that nothing has is a missing directory."""
        import obstore

        key = self._key(directory)
        with self._in_words(directory, "listed"):
            found = self._ask(lambda: obstore.list_with_delimiter(self._client, key))
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

    def names_after(self, directory: str, name: str) -> list[str]:
        """List the names that sort after `name`: the server begins there (`start-after`)."""
        import obstore

        prefix = f"{self._key(directory)}/"
        offset = f"{prefix}{name}" if name else None

        def listed() -> list[str]:
            pages = obstore.list(self._client, prefix.rstrip("/"), offset=offset, chunk_size=1000)
            return [item["path"] for page in pages for item in page]

        with self._in_words(directory, "listed"):
            paths = self._ask(listed)
        return sorted(path.removeprefix(prefix) for path in paths if path.startswith(prefix))

    def open(self, path: str, size_bytes: int | None = None) -> S3File:
        """Open an object; where its size is known, nothing is sent."""
        return S3File(self, path, size_bytes)

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """Read a whole object."""
        import obstore

        def get() -> bytes:
            found = obstore.get(self._client, self._key(path))
            check_size(path, found.meta["size"], most_bytes)  # The body has not come yet.
            return bytes(found.bytes())

        with self._in_words(path, "read"):
            return self._ask(get)

    def read_range(self, path: str, begin: int, end: int, tag: str | None) -> Part:
        """Read a range that is not empty of the object that has this ETag."""
        import obstore
        from obstore.exceptions import BaseError

        def get() -> Part:
            found = obstore.get(self._client, key, options=options)
            return Part(bytes(found.bytes()), found.meta["size"], found.meta["e_tag"])

        key = self._key(path)
        options: Any = {"range": (begin, end)}
        if tag is not None:
            options["if_match"] = tag
        with self._in_words(path, "read", tag):
            try:
                return self._ask(get)
            except BaseError as exc:
                if status_of(exc) != 416:
                    raise
                return Part(b"", actual_bytes(exc), tag)

    def head(self, path: str) -> Any:
        """Give the object's size, ETag and time."""
        import obstore

        with self._in_words(path, "read"):
            return self._ask(lambda: obstore.head(self._client, self._key(path)))

    def put_if_absent(self, path: str, data: bytes) -> Put:
        """Create `path` by one conditional PutObject; only a 409 is sent again."""
        import obstore
        from obstore.exceptions import BaseError

        key = self._key(path)

        def put() -> None:
            obstore.put(self._once, key, data, mode="create", use_multipart=False)

        for tries_left in reversed(range(CONFLICT_TRIES)):
            try:
                self._ask(put)
            except (BaseError, FileNotFoundError) as exc:
                status = status_of(exc)
                if status == 412:
                    return Put.EXISTS
                if tries_left and (status == 409 or never_connected(exc)):
                    self._sleep(FIRST_PAUSE_SECONDS * 2 ** (CONFLICT_TRIES - tries_left))
                    continue
                if may_have_landed(exc):
                    return Put.UNKNOWN
                raise self._error(path, "written", exc) from self._cause(exc)
            return Put.CREATED
        raise AssertionError("a loop of no tries")

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write `path` by one PutObject, or in parts where it is large."""
        import obstore

        key, coming = self._key(path), iter(pieces)
        first = _gathered(coming)
        with self._in_words(path, "written"):
            if len(first) < PART_BYTES:
                self._ask(lambda: obstore.put(self._client, key, first, use_multipart=False))
            else:
                # The pieces come once: refused, it is not made again, but later calls may be.
                every = chain([first], coming)
                obstore.put(self._client, key, every, chunk_size=PART_BYTES)

    def delete(self, path: str) -> None:
        """Remove `path`."""
        import obstore

        with self._in_words(path, "deleted"):
            self._ask(lambda: obstore.delete(self._client, self._key(path)))

    def _make_clients(self) -> None:
        keys, once = found_keys(self._storage), Patience(0, self._once_seconds)
        self._client = s3_client(self._bucket, self._storage, _PATIENT)
        self._once = s3_client(self._bucket, self._storage, once)
        self._keys = keys  # Last: another thread takes its clients for those of these keys.

    def _ask(self, call: Callable[[], _Found]) -> _Found:
        """Make a call, and once more where its keys were refused and others are found by now."""
        from obstore.exceptions import BaseError

        keys = self._keys
        try:
            return call()
        except BaseError as exc:
            if not is_of_credentials(exc) or found_keys(self._storage) == keys:
                raise
        if self._keys == keys:  # else another thread has made them already
            self._make_clients()
        return call()

    def _key(self, path: str) -> str:
        return path.removeprefix(f"s3://{self._bucket}").strip("/")

    def _url(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}".rstrip("/")

    def _refuse_empty(self, directory: str) -> None:
        """Tell a missing directory from a file; once, as an idle poll lists it again and again."""
        if directory not in self._no_files:
            if self._is_file(directory):
                raise NotADirectoryError(f"{directory} is a file")
            if len(self._no_files) >= REMEMBERED_DIRECTORIES:
                self._no_files.clear()
            self._no_files.add(directory)
        raise FileNotFoundError(f"there is no {directory}")

    def _is_file(self, directory: str) -> bool:
        """Ask for an object of that name; a root's own name may be beyond what is allowed."""
        import obstore
        from obstore.exceptions import PermissionDeniedError

        try:
            with self._in_words(directory, "listed"), suppress(PermissionDeniedError):
                self._ask(lambda: obstore.head(self._client, self._key(directory)))
                return True
        except FileNotFoundError:
            pass
        return False

    @contextmanager
    def _in_words(self, path: str, done: str, tag: str | None = None) -> Iterator[None]:
        from obstore.exceptions import BaseError, PreconditionError

        try:
            yield
        except PreconditionError as exc:
            if tag is None:  # No condition was sent: it says nothing about the object.
                raise self._error(path, done, exc) from self._storage.cause(exc)
            raise _replaced(path) from None
        except FileNotFoundError as exc:
            if done == "written" or code_of(exc) == "NoSuchBucket":
                raise self._error(path, done, exc) from self._cause(exc)
            if done == "deleted":
                return
            raise FileNotFoundError(f"there is no {path}") from None
        except BaseError as exc:
            raise self._error(path, done, exc) from self._cause(exc)

    def _error(self, path: str, done: str, exc: Exception) -> KlogError:
        said = self._storage.redacted(in_few_words(exc), self._keys[1:])
        return KlogError(f"{path}: not {done}: {said}. {next_step(exc, done, self._bucket)}")

    def _cause(self, exc: Exception) -> Exception | None:
        return None if repeats_keys(exc) else self._storage.cause(exc, self._keys[1:])


def _replaced(path: str) -> FileNotFoundError:
    return FileNotFoundError(f"{path} was replaced while it was read")


def _gathered(pieces: Iterator[bytes]) -> bytes:
    """Take pieces until a part is full."""
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size >= PART_BYTES:
            break
    return b"".join(found)
