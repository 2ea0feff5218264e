"""A klog root with one topic read as an earlier commit left it.

The rule: a read of the past is a read of a snapshot whose topic has the state of that version. All
else is as for a read of now: offsets, isolation, limits, slices. What differs is that the file of a
segment may have been deleted by vacuum, because no later version needs it: this is an error when
the segment is planned, and when a task does not find the file and plans it again.
"""

from __future__ import annotations

from klog.connector.commit_log.committed_snapshot import CommittedRoot, CommittedSnapshot
from klog.connector.commit_log.past_files import PastFiles
from klog.connector.commit_log.past_snapshot import PastSnapshot
from klog.connector.commit_log.past_versions import load_version, version_at
from klog.connector.options.as_of import AsOf, AsOfAge, AsOfVersion
from klog.connector.options.consumer_strategy import ConsumerStrategy
from klog.connector.snapshot import Root, Snapshot
from klog.connector.source.subscription import describe_topics, subscribed_partitions
from klog.errors import OptionError, with_context


class PastRoot:
    """A root whose snapshots have one topic, as of an earlier version."""

    def __init__(self, root: Root, topic: str | ConsumerStrategy, as_of: AsOf) -> None:
        """Take the root; nothing is read yet.

        Args:
            root: The root.
            topic: The topic, or what the read subscribes to, which must be one topic.
            as_of: The version that it asks for.

        Raises:
            OptionError: The root has no commits.
        """
        if not isinstance(root, CommittedRoot):
            raise OptionError(
                f"{as_of.option}: the path has log directories of a broker, which keep no earlier "
                "versions: a klog root does. To read the records up to a time, end the read at "
                "that time"
            )
        self._root, self._topic, self._as_of = root, topic, as_of

    @property
    def is_klog_root(self) -> bool:
        """Return True."""
        return True

    def snapshot(self) -> PastSnapshot:
        """Return the topic as of the version.

        Raises:
            OptionError: The version cannot be loaded, or the read is not one of one topic.
        """
        return self.past_of(self._root.snapshot())

    def past_of(self, now: Snapshot) -> PastSnapshot:
        """Return the topic as of the version, from a snapshot of now.

        Args:
            now: The snapshot of the root.

        Raises:
            OptionError: As `snapshot`.
        """
        assert isinstance(now, CommittedSnapshot), "a snapshot of a klog root is one"
        topic = self._topic_in(now)
        current, log = now.state(topic), self._root.root.log(topic)
        try:
            if isinstance(self._as_of, AsOfVersion):
                version = self._as_of.version
            else:
                as_of = self._as_of
                time = as_of.at(log.clock()) if isinstance(as_of, AsOfAge) else as_of
                version = version_at(log, time.timestamp_ms, current)
            state = load_version(log, version, current)
        except OptionError as exc:
            raise with_context(exc, f"{self._as_of.option}: {exc}") from exc
        files = PastFiles(log, current, self._as_of.option)
        return PastSnapshot(self._root, topic, state, files)

    def _topic_in(self, now: Snapshot) -> str:
        """Return the topic, or the only one that the read subscribes to."""
        if isinstance(self._topic, str):
            if self._topic not in now.topics:
                raise OptionError(
                    f"{self._as_of.option}: {now.missing_topic_reason(self._topic)}; "
                    f"{describe_topics(now)}"
                )
            return self._topic
        names = subscribed_partitions(self._topic, now, lambda _: None)
        topics = sorted({name.topic for name in names})
        if len(topics) == 1:
            return topics[0]
        subscription = f"subscribes to {', '.join(topics)}" if topics else "subscribes to none"
        raise OptionError(
            f"{self._as_of.option}: must be of one topic, as each topic has versions of its own, "
            f"and this read {subscription}. Read each topic by itself"
        )
