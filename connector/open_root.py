"""Open the root that paths name: a klog root, or a broker's own log directories.

The rule: a directory with `_klog/format.json` is a klog root, and its commits say what is there.
Every other directory is raw, and its files say it. Both are a `snapshot.Root`. What writes, and the
jobs, need a klog root: `open_klog_root`.
"""

from __future__ import annotations

from collections.abc import Sequence

from klog.connector.commit_log.committed_snapshot import CommittedRoot
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.snapshot import Root
from klog.connector.store.store_for_url import log_store_for
from klog.errors import OptionError


def open_root(paths: Sequence[str], storage: StorageOptions = NO_STORAGE_OPTIONS) -> Root:
    """Open a root.

    Args:
        paths: Paths or URLs: one klog root, or the log directories of one broker.
        storage: Options of the stores.

    Raises:
        OptionError: If a klog root is one of several paths.
    """
    for path in paths:
        klog_root = find_root(path, storage)
        if klog_root is None:
            continue
        if len(paths) > 1:
            raise OptionError(
                f"path: {path} is a klog root, which is read by itself. Give it alone; several "
                "paths are the log directories of one broker"
            )
        return CommittedRoot(klog_root)
    # What knows a broker's directories is not needed for a klog root.
    from klog.connector.kafka_dir.raw_root import RawRoot

    return RawRoot(paths, storage)


_NEXT_STEP = (
    "it has no commit logs, and a broker keeps its own logs in order. Give a root that "
    "`klog topics create` or a write has made"
)


def open_klog_root(
    path: str, storage: StorageOptions = NO_STORAGE_OPTIONS, next_step: str = _NEXT_STEP
) -> KlogRoot:
    """Open a klog root.

    Args:
        path: The root, as the caller gave it.
        storage: The options of its store.
        next_step: What to do with another directory.

    Raises:
        OptionError: There is no such directory, or it has no commit logs.
    """
    root = find_root(path, storage)
    if root is None:
        raise not_a_klog_root(path, storage, next_step)
    return root


def not_a_klog_root(
    path: str, storage: StorageOptions = NO_STORAGE_OPTIONS, next_step: str = _NEXT_STEP
) -> OptionError:
    """Return the error for a path that is not a klog root: one listing.

    Args:
        path: The directory, as the caller gave it.
        storage: The options of its store.
        next_step: What to do with a directory that has no commit logs.
    """
    store, directory = log_store_for(path, storage)
    try:
        store.entries(directory)
    except FileNotFoundError:
        return OptionError(
            f"there is no directory {path}. Give one that exists, or create a klog root there: "
            "`klog topics create`"
        )
    except NotADirectoryError:
        return OptionError(f"{path} is a file. Give the directory of a klog root")
    return OptionError(f"{path} is not a klog root: {next_step}")
