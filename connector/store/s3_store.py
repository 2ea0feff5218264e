"""S3: put-if-absent has one winner by `If-None-Match: *`, which the server decides.

Why one winner: PutObject with that condition fails with 412 if the key exists, and S3 makes a key
visible complete. obstore's own API sends the condition; its adapter for fsspec does not, and is not
used. The client of `put_if_absent` never sends a request twice by itself: a second request would
meet the object of the first, and its 412 would mean EXISTS of one's own bytes. A lost answer
(time-out, reset, 5xx) is UNKNOWN. 409 says that nothing was written, and is tried again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from klog.connector.options.storage_options import StorageOptions
from klog.connector.store.readable_store import DirectoryEntry, check_size
from klog.connector.store.s3_errors import http_status, is_never_connected, may_have_landed
from klog.connector.store.s3_file import S3File
from klog.connector.store.s3_requests import S3Requests
from klog.connector.store.writable_store import PutResult

if TYPE_CHECKING:
    from obstore.store import S3Store as Client

MAX_PUT_TRIES = 5
"""How often a put-if-absent is sent while the server answers 409 or cannot be reached."""
FIRST_PAUSE_SECONDS = 0.05
PUT_TIMEOUT_SECONDS = 60
"""A put-if-absent that takes longer is UNKNOWN."""
PART_BYTES = 8 << 20
"""S3 takes 10,000 parts: 80 GiB of these, and a segment has at most 2 GiB."""
MAX_REMEMBERED_DIRECTORIES = 10_000


class S3Store:
    """One bucket. A path is the whole URL, `s3://bucket/key`; `s3a://` is spelled so too."""

    max_parallel_reads = 16

    def __init__(
        self,
        bucket: str,
        storage: StorageOptions,
        sleep: Callable[[float], None] = time.sleep,
        put_timeout_seconds: int = PUT_TIMEOUT_SECONDS,
    ) -> None:
        """Make the clients; nothing is sent yet.

        Args:
            bucket: The bucket.
            storage: The storage options.
            sleep: Waits between two tries of a put-if-absent.
            put_timeout_seconds: How long one try of a put-if-absent may take.

        Raises:
            OptionError: An option is wrong, or obstore is not installed.
        """
        self._requests = S3Requests(bucket, storage, put_timeout_seconds)
        self._sleep = sleep
        self._empty_directories: set[str] = set()

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """See `ReadableStore.entries`. A prefix that no key has is a missing directory."""
        import obstore

        requests = self._requests
        key = requests.key(directory)
        with requests.translate_errors(directory, "listed"):
            listing = requests.send(lambda client: obstore.list_with_delimiter(client, key))
        entries = [
            DirectoryEntry(prefix.rsplit("/", 1)[-1], requests.path(prefix), 0, True)
            for prefix in listing["common_prefixes"]
        ]
        for item in listing["objects"]:
            name = item["path"].removeprefix(f"{key}/" if key else "")
            if name and item["path"] != key:  # Otherwise it is the marker of the directory.
                path = f"{requests.path(key)}/{name}"
                entries.append(DirectoryEntry(name, path, int(item["size"]), False))
        if not entries and not listing["objects"] and key:
            self._refuse_empty(directory)
        return sorted(entries, key=lambda entry: entry.name)

    def names_after(self, directory: str, name: str) -> list[str]:
        """See `ReadableStore.names_after`. The server starts the listing there."""
        import obstore

        requests = self._requests
        prefix = f"{requests.key(directory)}/"
        offset = f"{prefix}{name}" if name else None

        def list_keys(client: Client) -> list[str]:
            pages = obstore.list(client, prefix.rstrip("/"), offset=offset, chunk_size=1000)
            return [item["path"] for page in pages for item in page]

        with requests.translate_errors(directory, "listed"):
            keys = requests.send(list_keys)
        return sorted(key.removeprefix(prefix) for key in keys if key.startswith(prefix))

    def open(self, path: str, size_bytes: int | None = None) -> S3File:
        """See `ReadableStore.open`. If the size is known, nothing is sent."""
        return S3File(self._requests, path, size_bytes)

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """See `ReadableStore.read`."""
        import obstore

        def get(client: Client) -> bytes:
            result = obstore.get(client, self._requests.key(path))
            check_size(path, result.meta["size"], max_bytes)  # The body has not come yet.
            return bytes(result.bytes())

        with self._requests.translate_errors(path, "read"):
            return self._requests.send(get)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See `WritableStore.put_if_absent`.

        It is one conditional PutObject, sent again only after a 409 or without a connection.
        """
        import obstore
        from obstore.exceptions import BaseError

        requests = self._requests

        def put(client: Client) -> None:
            obstore.put(client, requests.key(path), data, mode="create", use_multipart=False)

        for tries_left in reversed(range(MAX_PUT_TRIES)):
            try:
                requests.send_once(put)
            except (BaseError, FileNotFoundError) as exc:
                status = http_status(exc)
                if status == 412:
                    return PutResult.EXISTS
                if tries_left and (status == 409 or is_never_connected(exc)):
                    self._sleep(FIRST_PAUSE_SECONDS * 2 ** (MAX_PUT_TRIES - tries_left))
                    continue
                if may_have_landed(exc):
                    return PutResult.UNKNOWN
                raise requests.error(path, "written", exc) from requests.cause(exc)
            return PutResult.CREATED
        raise AssertionError("a loop without tries")

    def put(self, path: str, chunks: Iterable[bytes]) -> None:
        """See `WritableStore.put`. A large object is sent in parts."""
        import obstore

        requests = self._requests
        key, pending = requests.key(path), iter(chunks)
        first = _read_part(pending)

        def put(client: Client) -> None:
            obstore.put(client, key, first, use_multipart=False)

        with requests.translate_errors(path, "written"):
            if len(first) < PART_BYTES:
                requests.send(put)
            else:
                # The chunks come once: if they are refused, they cannot be sent again.
                parts = chain([first], pending)
                obstore.put(requests.client, key, parts, chunk_size=PART_BYTES)

    def delete(self, path: str) -> None:
        """See `WritableStore.delete`."""
        import obstore

        requests = self._requests
        with requests.translate_errors(path, "deleted"):
            requests.send(lambda client: obstore.delete(client, requests.key(path)))

    def _refuse_empty(self, directory: str) -> None:
        """Raise the error of an empty listing: nothing is there, or an object has the name.

        The object is looked for once, as an idle poll lists the directory again and again.
        """
        if directory not in self._empty_directories:
            if self._object_exists(directory):
                raise NotADirectoryError(f"{directory} is a file")
            if len(self._empty_directories) >= MAX_REMEMBERED_DIRECTORIES:
                self._empty_directories.clear()
            self._empty_directories.add(directory)
        raise FileNotFoundError(f"there is no {directory}")

    def _object_exists(self, path: str) -> bool:
        """Return whether an object has a name; False if this user may not ask for it."""
        import obstore
        from obstore.exceptions import PermissionDeniedError

        requests = self._requests
        try:
            with requests.translate_errors(path, "listed"), suppress(PermissionDeniedError):
                requests.send(lambda client: obstore.head(client, requests.key(path)))
                return True
        except FileNotFoundError:
            pass
        return False


def _read_part(chunks: Iterator[bytes]) -> bytes:
    """Take chunks until a part is full."""
    part, size_bytes = [], 0
    for chunk in chunks:
        part.append(chunk)
        size_bytes += len(chunk)
        if size_bytes >= PART_BYTES:
            break
    return b"".join(part)
