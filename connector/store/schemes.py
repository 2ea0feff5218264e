"""Which store stands behind a path or URL; a plain path is local disk."""

from __future__ import annotations

from pathlib import Path

import fsspec

from klog.connector.store.contract import WritableStore
from klog.connector.store.files import Store
from klog.connector.store.fsspec_store import FsspecStore
from klog.connector.store.local import LocalStore
from klog.connector.store.memory import MemoryStore
from klog.errors import OptionError


def store_for(root: str) -> tuple[Store, str]:
    """Give the store behind a path or URL, and the path as that store spells it.

    Raises `OptionError` for a scheme that fsspec does not know, whose client is not installed or
    which needs more than the URL says, and where an archive is none.
    """
    if "://" not in root and not root.startswith("file:"):
        return LocalStore(), str(Path(root).absolute())
    scheme = root.split(":", 1)[0]
    if scheme == "file":
        return LocalStore(), "/" + root.removeprefix("file:").strip("/")
    if scheme == "memory":
        return MemoryStore(), "/" + root.removeprefix("memory:").strip("/")
    try:
        system, path = fsspec.core.url_to_fs(root)
    except OSError:
        raise
    # A file system is made by code that may raise anything.
    except Exception as exc:
        raise OptionError(
            f"path: cannot read {scheme}:// here: {type(exc).__name__}: {exc}. Check {root}, and "
            "that the client of its scheme is installed"
        ) from exc
    return FsspecStore(system), str(path)


def writable_store_for(root: str) -> tuple[WritableStore, str]:
    """Give the store behind a path or URL that a topic's log can be kept in, and its path there.

    Raises `OptionError` as `store_for` does, and for a scheme that cannot be written.
    """
    store, path = store_for(root)
    if isinstance(store, LocalStore | MemoryStore):
        return store, path
    raise OptionError(
        f"path: klog cannot write to {root.split(':', 1)[0]}://, as nothing there makes sure that "
        "of two writers only one wins. Keep the log on local disk"
    )
