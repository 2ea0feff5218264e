"""Open the root that paths name: a klog root, or a broker's own log directories.

The rule: a directory with `_klog/format.json` is a klog root, and its commits say what is there.
Every other directory is raw, and its files say it. Both are a `snapshot.Root`.
"""

from __future__ import annotations

from collections.abc import Sequence

from klog.connector.commit_log.committed_snapshot import CommittedRoot
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.snapshot import Root
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
                f"path: {path} is a klog root, which is read by itself; several paths are the log "
                "directories of one broker"
            )
        return CommittedRoot(klog_root)
    return RawRoot(paths, storage)
