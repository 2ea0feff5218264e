"""One topic of a klog root as an earlier commit left it: what a read of the past reads.

The rule: everything is as in a snapshot of now, but that the files of segments may be gone. They
are looked for when the segments are about to be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from klog.connector.commit_log.committed_snapshot import (
    CommittedPartition,
    CommittedRoot,
    CommittedSnapshot,
    TopicsOfSnapshot,
)
from klog.connector.commit_log.past_files import PastFiles, VersionFiles
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.options.as_of import AsOf, AsOfVersion
from klog.logformat.topic_partition import TopicPartition


class PastSnapshot(CommittedSnapshot):
    """A topic as of an earlier version; the root has no other topics."""

    def __init__(
        self, root: CommittedRoot, topic: str, state: TopicState, files: PastFiles
    ) -> None:
        """Take the state of the topic.

        Args:
            root: The root.
            topic: The topic.
            state: Its state as of the version.
            files: Looks whether the files of the version are there.
        """
        super().__init__(root)
        self._loaded[topic] = state
        self.topics = TopicsOfSnapshot(self, lambda: [topic])
        self.version = state.version
        self._files = files

    def resolved(self, as_of: AsOf) -> AsOfVersion:
        """Return what a read asked for as a version, which stays when more commits follow.

        Args:
            as_of: What it asked for.
        """
        return AsOfVersion(self.version, as_of.option)

    def open(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedPartition]:
        """See `CommittedSnapshot.open`."""
        files = VersionFiles(self._files, self.version)
        opened = super().open(names)
        return {name: replace(log, files=files) for name, log in opened.items()}
