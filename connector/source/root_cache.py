"""The klog roots that this process has read, with the states of their topics.

The rule: Spark's planner processes live on between the queries of a session. A query of a topic
that such a process has read before continues from the state that it knows, which costs two reads
and a listing, as a stream's poll does (docs/commit-protocol.md, Load). A root is the one that is
known if its `format.json`, which is read each time, says so: another root at the same path has
another cluster id. The roots of the last few reads are kept, unless their states are large.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from klog.connector.commit_log.committed_snapshot import CommittedRoot
from klog.connector.open_root import open_root
from klog.connector.options.storage_options import StorageOptions
from klog.connector.snapshot import Root

MAX_ROOTS = 4
"""A session reads few roots; each may keep a hundred megabytes."""
MAX_SEGMENTS = 500_000
"""A root whose states have more segments is loaded again: a million are 300 MB."""


class RootCache:
    """The roots of the last few reads. Not safe to share between threads."""

    def __init__(self) -> None:
        """Start empty."""
        self._roots: OrderedDict[tuple[str, StorageOptions], CommittedRoot] = OrderedDict()

    def open(self, directories: Sequence[str], storage: StorageOptions) -> Root:
        """Open a root as `open_root` does; a klog root that is known has its states.

        Args:
            directories: The roots of a read.
            storage: The options of their stores.

        Raises:
            OptionError: As `open_root`.
        """
        root = open_root(directories, storage)
        if not isinstance(root, CommittedRoot):
            return root
        key = (directories[0], storage)
        cached = self._roots.pop(key, None)
        if cached is not None and cached.loaded_segments <= MAX_SEGMENTS:
            root = cached if cached.is_same_root(root) else root
        self._roots[key] = root
        if len(self._roots) > MAX_ROOTS:
            self._roots.popitem(last=False)
        return root


ROOTS = RootCache()
"""The one of this process."""
