"""The roots that this process has read, with what it knows of them.

The rule: Spark's planner processes live on between the queries of a session. A query of a topic
that such a process has read before continues from what it knows, as a stream's poll does. Of a klog
root that is the state, which costs two reads and a listing (docs/commit-protocol.md, Load); it is
the root that is known if its `format.json`, which is read each time, says so: another root at the
same path has another cluster id. Of a broker's directories it is where logs ended and which
transactions were open; each file shows whether it is the one that is known. The roots of the last
few reads are kept, unless their states are large.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

from klog.connector.commit_log.committed_snapshot import CommittedRoot
from klog.connector.open_root import open_root
from klog.connector.options.storage_options import StorageOptions
from klog.connector.snapshot import Root

Key: TypeAlias = tuple[tuple[str, ...], StorageOptions]
"""The directories of a read, and the options of their stores."""
MAX_ROOTS = 4
"""A session reads few roots; each may keep a hundred megabytes."""
MAX_SEGMENTS = 500_000
"""A root whose states have more segments is loaded again: a million are 300 MB."""


class RootCache:
    """The roots of the last few reads. Not safe to share between threads."""

    def __init__(self) -> None:
        """Start empty."""
        self._roots: OrderedDict[Key, Root] = OrderedDict()

    def open(self, directories: Sequence[str], storage: StorageOptions) -> Root:
        """Open a root as `open_root` does; one that is known has what it knew.

        Args:
            directories: The roots of a read.
            storage: The options of their stores.

        Raises:
            OptionError: As `open_root`.
        """
        root = open_root(directories, storage)
        key = (tuple(directories), storage)
        cached = self._roots.pop(key, None)
        if cached is not None and _is_same_root(cached, root):
            root = cached
        self._roots[key] = root
        if len(self._roots) > MAX_ROOTS:
            self._roots.popitem(last=False)
        return root


def _is_same_root(cached: Root, root: Root) -> bool:
    if isinstance(cached, CommittedRoot) and isinstance(root, CommittedRoot):
        return cached.loaded_segments <= MAX_SEGMENTS and cached.is_same_root(root)
    return not cached.is_klog_root and not root.is_klog_root


ROOTS = RootCache()
"""The one of this process."""
