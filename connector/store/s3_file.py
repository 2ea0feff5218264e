"""An object of S3, read by ranges; a read after it was replaced is a `FileNotFoundError`.

The rule: an object whose size is known is opened by its first read, without a HEAD. Another size
than the known one is a `CorruptRecordError`: its commit says the size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from klog.connector.store.s3_errors import http_status, object_bytes
from klog.connector.store.s3_requests import S3Requests, replaced_error
from klog.errors import CorruptRecordError

if TYPE_CHECKING:
    from obstore.store import S3Store as Client


@dataclass(frozen=True, slots=True)
class _ObjectRange:
    """A range of an object, cut at its end.

    Attributes:
        data: The bytes.
        object_bytes: The size of the object; None if the server did not say it.
        etag: The ETag of the object, if it has one.
    """

    data: bytes
    object_bytes: int | None
    etag: str | None


class S3File:
    """An object, as of its opening."""

    def __init__(self, requests: S3Requests, path: str, size_bytes: int | None) -> None:
        """Open an object; if its size is known, nothing is sent.

        Args:
            requests: The requests of the store.
            path: The URL of the object.
            size_bytes: Its size; None if it is to be asked for.

        Raises:
            FileNotFoundError: It is asked for, and there is no such object.
        """
        self._requests, self._path, self._is_opened = requests, path, size_bytes is None
        if size_bytes is not None:
            self.size_bytes, self._etag, self.identity, self.stamp = size_bytes, None, "", ""
            return
        metadata = _object_metadata(requests, path)
        self.size_bytes = int(metadata["size"])
        self._etag = metadata["e_tag"]
        modified = metadata["last_modified"].isoformat()
        self.identity = self.stamp = f"{self.size_bytes}-{self._etag or modified}"

    def read(self, start: int, end: int) -> bytes:
        """See `File.read`. It sends one request."""
        end = min(end, self.size_bytes)
        if start >= end:
            return b""
        result = _read_range(self._requests, self._path, start, end, self._etag)
        if result.object_bytes != self.size_bytes:
            if self._is_opened:  # The server has no ETags, and cannot say that by itself.
                raise replaced_error(self._path)
            unknown = result.object_bytes is None
            size = f"at most {start}" if unknown else str(result.object_bytes)
            position = start if result.object_bytes is None else result.object_bytes
            raise CorruptRecordError(
                f"it has {size} bytes, its commit says {self.size_bytes}",
                min(position, self.size_bytes),
            )
        self._etag, self._is_opened = result.etag, True
        return result.data

    def close(self) -> None:
        """Do nothing: nothing is open between reads."""


def _object_metadata(requests: S3Requests, path: str) -> Any:
    """Return the size, the ETag and the time of an object, by one HEAD."""
    import obstore

    with requests.translate_errors(path, "read"):
        return requests.send(lambda client: obstore.head(client, requests.key(path)))


def _read_range(
    requests: S3Requests, path: str, start: int, end: int, etag: str | None
) -> _ObjectRange:
    """Read a range that is not empty of the object that has this ETag."""
    import obstore
    from obstore.exceptions import BaseError

    def get(client: Client) -> _ObjectRange:
        result = obstore.get(client, requests.key(path), options=options)
        return _ObjectRange(bytes(result.bytes()), result.meta["size"], result.meta["e_tag"])

    options: Any = {"range": (start, end)}
    if etag is not None:
        options["if_match"] = etag
    with requests.translate_errors(path, "read", etag):
        try:
            return requests.send(get)
        except BaseError as exc:
            if http_status(exc) != 416:
                raise
            return _ObjectRange(b"", object_bytes(exc), etag)
