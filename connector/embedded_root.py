"""The root of a `klog.open`: what it has, as readers and as writers see it.

The rule: the root is opened when it is asked for, and then again only if its kind was not known. A
snapshot starts from the states of earlier ones.
"""

from __future__ import annotations

from os import PathLike, fspath

from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.open_root import open_klog_root, open_root
from klog.connector.options.storage_options import StorageOptions
from klog.connector.root_urls import absolute_root
from klog.connector.snapshot import Root, Snapshot
from klog.errors import OptionError


class EmbeddedRoot:
    """One root, of either kind. Not safe to share between threads."""

    def __init__(self, path: str, storage: StorageOptions) -> None:
        """Take the path or URL of the root; nothing is read yet."""
        self.path, self.storage = path, storage
        self.read_root: Root | None = None
        self._write_root: KlogRoot | None = None

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the root, which starts from the states of earlier ones.

        An empty directory may become a klog root, so its kind is not remembered.
        """
        if self.read_root is not None:
            return self.read_root.snapshot()
        root = open_root([self.path], self.storage)
        snapshot = root.snapshot()
        if root.is_klog_root or snapshot.topics:
            self.read_root = root
        return snapshot

    def snapshot_with(self, topic: str) -> Snapshot:
        """Return a snapshot that has a topic.

        Args:
            topic: The name of the topic.

        Raises:
            OptionError: There is no such topic.
        """
        snapshot = self.snapshot()
        if topic not in snapshot.topics:
            raise self._missing_topic(topic)
        return snapshot

    def _missing_topic(self, topic: str) -> OptionError:
        """Return the error for a missing topic; `KlogRoot.load` raises a more precise one."""
        root = find_root(self.path, self.storage)
        if root is not None:
            root.load(root.log_to_read(topic))
        return OptionError(
            f"there is no topic {topic} in {self.path}. Choose one that topics() returns"
        )

    def klog_root(self) -> KlogRoot:
        """Return the klog root, which is read once: `format.json` never changes.

        Raises:
            OptionError: It is none.
        """
        if self._write_root is None:
            self._write_root = open_klog_root(
                self.path,
                self.storage,
                "create one by create_topic, in a directory that has no broker's files",
            )
        return self._write_root

    def find_or_create(self) -> KlogRoot:
        """Return the klog root, made if there is none; a reader looks again at what it is."""
        root = find_or_create_root(self.path, random_uuid(), self.storage)
        self.read_root = None
        return root


def absolute_path(root: str | PathLike[str]) -> str:
    """Return a URL, or an absolute path, which stays the same when the process changes folders.

    Args:
        root: The path or URL of a root, as a caller gives it.

    Raises:
        OptionError: It is not a path.
    """
    try:
        path = fspath(root)
    except TypeError:
        path = ""
    if not isinstance(path, str) or not path:
        raise OptionError(f"root: must be a path or a URL, such as s3://bucket/path, got {root!r}")
    return absolute_root(path)
