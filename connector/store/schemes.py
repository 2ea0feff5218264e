"""Which store stands behind a path or URL; a plain path is local disk."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import fsspec

from klog.connector.store.contract import WritableStore
from klog.connector.store.files import Store
from klog.connector.store.fsspec_store import FsspecStore
from klog.connector.store.hdfs import Hdfs
from klog.connector.store.local import LocalStore
from klog.connector.store.memory import MemoryStore
from klog.connector.store.read_only import ReadOnlyStore
from klog.connector.store.s3 import S3
from klog.connector.store.storage import EXTRAS, NOTHING_GIVEN, Storage
from klog.connector.store.webhdfs import WebHdfs
from klog.errors import KlogError, OptionError

WRITABLE = ("a local path", "file:", "memory:", "s3://", "hdfs://", "webhdfs://")


def store_for(root: str, storage: Storage = NOTHING_GIVEN) -> tuple[Store, str]:
    """Give the store behind a path or URL, and the path as that store spells it.

    Raises `OptionError` for a scheme that fsspec does not know, whose client is not installed or
    which needs more than the URL says, and where an archive is none.
    """
    return _writable(root, storage) or _read_by_fsspec(root, storage)


def writable_store_for(root: str, storage: Storage = NOTHING_GIVEN) -> tuple[WritableStore, str]:
    """Give the store behind a path or URL that a topic's log can be kept in, and its path there.

    Raises `OptionError` as `store_for` does, and for a scheme that cannot be written.
    """
    found = _writable(root, storage)
    if found is None:
        raise OptionError(_refusal(root))
    return found


def log_store_for(root: str, storage: Storage = NOTHING_GIVEN) -> tuple[WritableStore, str]:
    """Give the store behind a path or URL for a topic's log: where it must be, one that only reads.

    Raises `OptionError` as `store_for` does; on a scheme that cannot be written, so does a write.
    """
    found = _writable(root, storage)
    if found is not None:
        return found
    store, path = _read_by_fsspec(root, storage)
    return ReadOnlyStore(store, _refusal(root)), path


def _refusal(root: str) -> str:
    return (
        f"path: klog cannot write to {scheme_of(root)}://, where nothing makes sure that of two "
        f"writers only one wins. Keep the log at one of: {', '.join(WRITABLE)}"
    )


def _writable(root: str, storage: Storage) -> tuple[WritableStore, str] | None:
    """Give the store of a scheme that has a strategy of its own; None for any other."""
    scheme = scheme_of(root)
    check_path(root)
    if not scheme:
        path = str(Path(root).absolute())
        return LocalStore(root=path), path
    rest = root.removeprefix(f"{scheme}:")
    if scheme == "file":
        path = "/" + rest.strip("/")
        return LocalStore(root=path), path
    if scheme == "memory":
        return MemoryStore(), "/" + rest.strip("/")
    if scheme in ("s3", "s3a"):
        storage.refuse_fsspec(scheme)
        bucket, _, key = rest.lstrip("/").partition("/")
        if ":" in bucket or "@" in bucket:
            raise OptionError(
                f"path: the {scheme}:// URL has more than a bucket before its path. Write it as "
                "s3://bucket/path, and give keys as storage.access_key_id and "
                "storage.secret_access_key or by the environment"
            )
        if not bucket:
            raise OptionError(f"path: {root} names no bucket; write it as s3://bucket/path")
        return _s3(bucket, storage), f"s3://{bucket}/{key.strip('/')}".rstrip("/")
    if scheme in ("hdfs", "webhdfs"):
        storage.refuse_fsspec(scheme)
        authority, _, path = rest.removeprefix("//").partition("/")
        if _has_user(authority):
            raise OptionError(
                f"path: the {scheme}:// URL has more than a host and a port before its path. Write "
                f"it as {scheme}://host:port/path, and give a user as storage.user"
            )
        url = f"{scheme}://{authority}"
        store = _hdfs(url, storage) if scheme == "hdfs" else WebHdfs(url, storage)
        return store, f"{url}/{path.strip('/')}".rstrip("/")
    return None


def check_path(root: str) -> None:
    """Raise `OptionError` for a text that can be no path anywhere."""
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


@lru_cache(maxsize=64)
def _s3(bucket: str, storage: Storage) -> S3:
    """Make one client a bucket and process: a task opens a store for each slice it reads."""
    return S3(bucket, storage)


@lru_cache(maxsize=64)
def _hdfs(url: str, storage: Storage) -> Hdfs:
    return Hdfs(url, storage)


def _read_by_fsspec(root: str, storage: Storage) -> tuple[Store, str]:
    scheme = scheme_of(root)
    try:
        system, path = fsspec.core.url_to_fs(root, **storage.of_fsspec(scheme))
    except FileNotFoundError as exc:  # An archive that is not there.
        raise OptionError(f"path: there is no {root}") from storage.cause(exc, _passwords(root))
    except OSError as exc:  # Some file systems connect when they are made.
        said = storage.redacted(f"{type(exc).__name__}: {exc}", _passwords(root))
        raise KlogError(
            f"{root}: cannot be opened: {said}. Check the URL, and that its host can be reached"
        ) from storage.cause(exc, _passwords(root))
    # A file system is made by code that may raise anything.
    except Exception as exc:
        if scheme in EXTRAS and not _is_known(scheme):
            raise OptionError(
                f"path: {scheme}:// needs a client that is not installed: "
                f"pip install 'klog[{EXTRAS[scheme]}]'"
            ) from exc
        said = storage.redacted(f"{type(exc).__name__}: {exc}", _passwords(root))
        raise OptionError(
            f"path: cannot read {scheme}:// here: {said}. Check {root}, and that the client of "
            "its scheme is installed"
        ) from storage.cause(exc, _passwords(root))
    return FsspecStore(system, storage, _passwords(root)), str(path)


def _passwords(root: str) -> tuple[str, ...]:
    """Give what is secret in a URL, or in each of those chained in it, as written and as meant.

    These are the password, the query and each of its values.
    """
    written = re.findall(r"://[^/\s:]*:([^/\s]*)@", root)
    for query in re.findall(r"://[^?#]*[?#](.+)", root):
        written += [query, *re.findall(r"=([^&#]+)", query)]
    return (*written, *map(unquote, written))


def _has_user(authority: str) -> bool:
    """Tell whether a user stands before the host; also one whose password is cut by a slash."""
    port = "" if authority.endswith("]") else authority.rpartition(":")[2]
    return "@" in authority or (":" in authority and bool(port) and not port.isdigit())


def _is_known(scheme: str) -> bool:
    """Tell whether fsspec has the client of a scheme; some schemes come with their clients."""
    try:
        fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError):
        return False
    return True


def scheme_of(root: str) -> str:
    """Give the scheme of a URL; empty for a plain path, which may have a colon."""
    if "://" in root or root.startswith(("file:", "memory:")):
        return root.split(":", 1)[0]
    return ""
