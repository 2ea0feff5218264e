"""Which store a path or URL gets. A plain path is local disk.

The rule: a scheme that klog writes to has a store of its own, without fsspec. fsspec opens every
other scheme, to read. klog registers nothing in fsspec. The module of a store is imported when a
path needs that store: fsspec alone takes a tenth of a second, in each process of Spark's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.root_urls import absolute_root, url_scheme
from klog.connector.store.local_store import LocalStore
from klog.connector.store.readable_store import ReadableStore
from klog.connector.store.writable_store import WritableStore
from klog.errors import OptionError, StoreError, StoreRefusedError

if TYPE_CHECKING:
    from klog.connector.store.hdfs_store import HdfsStore
    from klog.connector.store.s3_store import S3Store

CLIENTS = {
    "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs", "adl": "adlfs", "gs": "gcsfs",
    "gcs": "gcsfs", "http": "aiohttp", "https": "aiohttp",
}  # fmt: skip
"""Scheme that fsspec opens: the package of its client.

An error names the package and not klog's extra, so that it helps with a zip of klog, too.
"""
WRITABLE = ("a local path", "file:", "memory:", "s3://", "hdfs://", "webhdfs://")


def store_for(root: str, storage: StorageOptions = NO_STORAGE_OPTIONS) -> tuple[ReadableStore, str]:
    """Return the store of a path or URL, and the path as that store spells it.

    Args:
        root: The path or URL.
        storage: The storage options.

    Raises:
        OptionError: fsspec does not know the scheme, its client is not installed, the URL or an
            option is wrong, or an archive does not exist.
        StoreError: The file system cannot be reached.
    """
    return _writable_store(root, storage) or _fsspec_store(root, storage)


def writable_store_for(
    root: str, storage: StorageOptions = NO_STORAGE_OPTIONS
) -> tuple[WritableStore, str]:
    """Return the store of a path or URL that a commit log can be kept in, and the path there.

    Args:
        root: The path or URL.
        storage: The storage options.

    Raises:
        OptionError: As `store_for`, and for a scheme that klog does not write to.
    """
    store = _writable_store(root, storage)
    if store is None:
        raise OptionError(_refusal(root))
    return store


def log_store_for(
    root: str, storage: StorageOptions = NO_STORAGE_OPTIONS
) -> tuple[WritableStore, str]:
    """Return the store of a path or URL that has a commit log, and the path there.

    A store that klog does not write to refuses each write with an `OptionError`.

    Args:
        root: The path or URL.
        storage: The storage options.

    Raises:
        OptionError: As `store_for`.
        StoreError: The file system cannot be reached.
    """
    writable = _writable_store(root, storage)
    if writable is not None:
        return writable
    from klog.connector.store.read_only_store import ReadOnlyStore

    store, path = _fsspec_store(root, storage)
    return ReadOnlyStore(store, _refusal(root)), path


def check_path(root: str) -> None:
    """Refuse a text that cannot be a path on any store.

    Args:
        root: The path or URL.

    Raises:
        OptionError: The text is empty, or has a character that no path has.
    """
    if not root:
        raise OptionError("path: it is empty. Give a directory or a URL")
    try:
        encoded = os.fsencode(root)
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise OptionError(
            f"path: {root!a} has a NUL character, or half of a surrogate pair, which no path "
            "has. Take it out"
        )


def _refusal(root: str) -> str:
    return (
        f"path: klog cannot write to {url_scheme(root)}://, where nothing makes sure that only one "
        f"of two writers wins. Keep the log at one of: {', '.join(WRITABLE)}"
    )


def _writable_store(root: str, storage: StorageOptions) -> tuple[WritableStore, str] | None:
    """Return the store of a scheme that klog writes to; None for any other."""
    scheme = url_scheme(root)
    check_path(root)
    rest = root.removeprefix(f"{scheme}:")
    if not scheme:
        path = absolute_root(root)
        return LocalStore(root=path), path
    if scheme == "file":
        path = "/" + rest.strip("/")
        return LocalStore(root=path), path
    if scheme == "memory":
        from klog.connector.store.memory_store import MemoryStore

        return MemoryStore(), "/" + rest.strip("/")
    store_of_scheme = _STORES_OF_SCHEMES.get(scheme)
    if store_of_scheme is None:
        return None
    from klog.connector.store.client_options import refuse_fsspec_options

    refuse_fsspec_options(storage, scheme)
    return store_of_scheme(root, storage)


def _s3_store_for(root: str, storage: StorageOptions) -> tuple[WritableStore, str]:
    scheme, _, rest = root.partition(":")
    bucket, _, key = rest.lstrip("/").partition("/")
    if ":" in bucket or "@" in bucket:
        raise OptionError(
            f"path: the {scheme}:// URL has more than a bucket before its path. Write it as "
            "s3://bucket/path, and give keys as storage.access_key_id and "
            "storage.secret_access_key or by the environment"
        )
    if not bucket:
        raise OptionError(f"path: {root} names no bucket. Write it as s3://bucket/path")
    return _cached_s3_store(bucket, storage), f"s3://{bucket}/{key.strip('/')}".rstrip("/")


def _hdfs_store_for(root: str, storage: StorageOptions) -> tuple[WritableStore, str]:
    scheme, _, rest = root.partition(":")
    authority, _, path = rest.removeprefix("//").partition("/")
    if _has_user(authority):
        raise OptionError(
            f"path: the {scheme}:// URL has more than a host and a port before its path. Write "
            f"it as {scheme}://host:port/path, and give a user as storage.user"
        )
    url = f"{scheme}://{authority}"
    full_path = f"{url}/{path.strip('/')}".rstrip("/")
    if scheme == "hdfs":
        return _cached_hdfs_store(url, storage), full_path
    from klog.connector.store.webhdfs_store import WebHdfsStore

    return WebHdfsStore(url, storage), full_path


_STORES_OF_SCHEMES: dict[str, Callable[[str, StorageOptions], tuple[WritableStore, str]]] = {
    "s3": _s3_store_for,
    "s3a": _s3_store_for,
    "hdfs": _hdfs_store_for,
    "webhdfs": _hdfs_store_for,
}


@lru_cache(maxsize=64)
def _cached_s3_store(bucket: str, storage: StorageOptions) -> S3Store:
    """Return one store a bucket and process: a task opens a store for each slice that it reads."""
    from klog.connector.store.s3_store import S3Store

    return S3Store(bucket, storage)


@lru_cache(maxsize=64)
def _cached_hdfs_store(url: str, storage: StorageOptions) -> HdfsStore:
    from klog.connector.store.hdfs_store import HdfsStore

    return HdfsStore(url, storage)


def _fsspec_store(root: str, storage: StorageOptions) -> tuple[ReadableStore, str]:
    import fsspec

    from klog.connector.store.client_options import fsspec_options
    from klog.connector.store.fsspec_store import FsspecStore
    from klog.connector.store.secret_redaction import chainable, redact, url_secrets

    scheme, secrets = url_scheme(root), url_secrets(root)
    try:
        system, path = fsspec.core.url_to_fs(root, **fsspec_options(storage, scheme))
    except FileNotFoundError as exc:  # A missing archive.
        raise OptionError(f"path: there is no {root}") from chainable(exc, storage, secrets)
    except OSError as exc:  # Some file systems connect when they are made.
        message = redact(f"{type(exc).__name__}: {exc}", storage, secrets)
        error_class = StoreRefusedError if isinstance(exc, PermissionError) else StoreError
        raise error_class(
            f"{root}: cannot be opened: {message}. Check the URL, and that its host can be reached"
        ) from chainable(exc, storage, secrets)
    # A file system is made by code that may raise anything.
    except Exception as exc:
        if scheme in CLIENTS and not _is_client_installed(scheme):
            raise OptionError(
                f"path: {scheme}:// needs a client that is not installed. Run "
                f"pip install {CLIENTS[scheme]}"
            ) from exc
        message = redact(f"{type(exc).__name__}: {exc}", storage, secrets)
        raise OptionError(
            f"path: cannot read {scheme}:// here: {message}. Check {root}, and that the client of "
            "its scheme is installed"
        ) from chainable(exc, storage, secrets)
    return FsspecStore(system, storage, secrets), str(path)


def _has_user(authority: str) -> bool:
    """Return whether a user stands before the host; also one whose password has a slash."""
    port = "" if authority.endswith("]") else authority.rpartition(":")[2]
    return "@" in authority or (":" in authority and bool(port) and not port.isdigit())


def _is_client_installed(scheme: str) -> bool:
    """Return whether fsspec has the client of a scheme; some schemes come with their clients."""
    import fsspec

    try:
        fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError):
        return False
    return True
