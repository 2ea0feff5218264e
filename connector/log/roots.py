"""Where topics are read from: a klog root, or a broker's own log directories as they lie.

The rule: a directory with `_klog/format.json` is a klog root, whose commits say what is there; any
other is raw, and its files say so. Both are looked at in the words of `partition.Root`.
"""

from __future__ import annotations

from collections.abc import Sequence

from klog.connector.log.committed import CommittedRoot
from klog.connector.log.partition import Root
from klog.connector.log.raw import RawRoot
from klog.connector.log.root import find_root
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import OptionError


def open_root(paths: Sequence[str], storage: Storage = NOTHING_GIVEN) -> Root:
    """Open what these paths or URLs name: one klog root, or the log directories of one broker.

    Raises `OptionError` where a klog root is one of several.
    """
    for path in paths:
        found = find_root(path, storage)
        if found is not None and len(paths) > 1:
            raise OptionError(
                f"path: {path} is a klog root, which is read by itself; several paths are the log "
                "directories of one broker"
            )
        if found is not None:
            return CommittedRoot(found)
    return RawRoot(paths, storage)
