"""Requests to one bucket of S3: sent again with renewed keys, and their errors translated.

The rule: expired keys are looked up again. If there are others now, because `aws sso login` has
renewed the profile, say, the refused call is sent again with them, and so are all later calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from klog.connector.options.storage_options import StorageOptions
from klog.connector.store.s3_client import RetryPolicy, make_s3_client
from klog.connector.store.s3_credentials import current_keys
from klog.connector.store.s3_errors import (
    error_code,
    is_about_credentials,
    is_permanent,
    may_repeat_keys,
    next_step,
    short_message,
)
from klog.connector.store.secret_redaction import chainable, redact
from klog.errors import StoreError, StoreRefusedError

if TYPE_CHECKING:
    from obstore.store import S3Store as Client

Result = TypeVar("Result")

RETRY_POLICY = RetryPolicy(max_retries=5, timeout_seconds=600)


class S3Requests:
    """Sends requests to a bucket by two clients: one tries again by itself, one never does."""

    def __init__(self, bucket: str, storage: StorageOptions, put_timeout_seconds: int) -> None:
        """Make the clients; nothing is sent yet.

        Args:
            bucket: The bucket.
            storage: The storage options.
            put_timeout_seconds: How long a request of the client without retries may take.

        Raises:
            OptionError: An option is wrong, or obstore is not installed.
        """
        self._bucket, self._storage = bucket, storage
        self._put_policy = RetryPolicy(max_retries=0, timeout_seconds=put_timeout_seconds)
        self._make_clients()

    @property
    def client(self) -> Client:
        """Return the client that sends a request again if it fails on the way."""
        return self._client

    def key(self, path: str) -> str:
        """Return the key of a path.

        Args:
            path: The whole URL.
        """
        return path.removeprefix(f"s3://{self._bucket}").strip("/")

    def path(self, key: str) -> str:
        """Return the path of a key.

        Args:
            key: The key in the bucket.
        """
        return f"s3://{self._bucket}/{key}".rstrip("/")

    def send(self, request: Callable[[Client], Result]) -> Result:
        """Return the result of a request, sent again by the client if it fails on the way.

        Args:
            request: Sends the request by the client that it is called with.

        Raises:
            BaseError: The request failed, and renewed keys did not help.
        """
        return self._send(lambda: request(self._client))

    def send_once(self, request: Callable[[Client], Result]) -> Result:
        """Return the result of a request that the client never sends twice.

        Args:
            request: Sends the request by the client that it is called with.

        Raises:
            BaseError: As `send`.
        """
        return self._send(lambda: request(self._client_without_retries))

    @contextmanager
    def translate_errors(
        self, path: str, operation: str, etag: str | None = None
    ) -> Iterator[None]:
        """Raise errors of obstore as `StoreError`s that name the path and the next step.

        A missing object keeps its class when it is read or listed, and is not an error when it is
        deleted. An object whose ETag is not `etag` counts as missing.

        Args:
            path: The object.
            operation: What would have been done: "read", "listed", "written" or "deleted".
            etag: The ETag that the request asks for, if it does.

        Raises:
            StoreError: The operation failed.
        """
        from obstore.exceptions import BaseError, PreconditionError

        try:
            yield
        except PreconditionError as exc:
            if etag is None:  # Without a condition, the answer says nothing about the object.
                raise self.error(path, operation, exc) from self.cause(exc)
            raise replaced_error(path) from None
        except FileNotFoundError as exc:
            if operation == "written" or error_code(exc) == "NoSuchBucket":
                raise self.error(path, operation, exc) from self.cause(exc)
            if operation == "deleted":
                return
            raise FileNotFoundError(f"there is no {path}") from None
        except BaseError as exc:
            raise self.error(path, operation, exc) from self.cause(exc)

    def error(self, path: str, operation: str, exc: Exception) -> StoreError:
        """Return the `StoreError` for an error of obstore, without secrets.

        Args:
            path: The object.
            operation: What was to be done: "read", "listed", "written" or "deleted".
            exc: The error.
        """
        message = redact(short_message(exc), self._storage, self._keys[1:])
        error_class = StoreRefusedError if is_permanent(exc) else StoreError
        return error_class(
            f"{path}: not {operation}: {message}. {next_step(exc, operation, self._bucket)}"
        )

    def cause(self, exc: Exception) -> Exception | None:
        """Return an error of obstore's to chain another one to; None if it may have a secret.

        Args:
            exc: The error.
        """
        return None if may_repeat_keys(exc) else chainable(exc, self._storage, self._keys[1:])

    def _make_clients(self) -> None:
        keys = current_keys(self._storage)
        self._client = make_s3_client(self._bucket, self._storage, RETRY_POLICY)
        self._client_without_retries = make_s3_client(self._bucket, self._storage, self._put_policy)
        self._keys = keys  # Last: another thread takes the clients for those of these keys.

    def _send(self, call: Callable[[], Result]) -> Result:
        from obstore.exceptions import BaseError

        keys = self._keys
        try:
            return call()
        except BaseError as exc:
            if not is_about_credentials(exc) or current_keys(self._storage) == keys:
                raise
        if self._keys == keys:  # Otherwise another thread has made new clients already.
            self._make_clients()
        return call()


def replaced_error(path: str) -> FileNotFoundError:
    """Return the error for an object that was replaced after it was opened.

    Args:
        path: The object.
    """
    return FileNotFoundError(f"{path} was replaced while it was read")
