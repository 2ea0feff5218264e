"""The topics that this process has written to: their logs, and the last states it has loaded.

The rule: a load continues from the cached state, so that a micro-batch reads three small files in a
process that knows the topic. A cached state is trusted only while the log still has the commit of
that state. If the commit is missing, the log has lost it, which is an error, unless it is another
log: a user may delete a root and create it again while Spark's processes live on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions
from klog.connector.options.write_options import WriteOptions

MAX_TOPICS = 64
"""The cache keeps so many states; those of large topics take some memory."""


@dataclass(frozen=True, slots=True)
class CachedTopic:
    """A topic of a root; its state has an empty topic id if the topic does not exist."""

    root: KlogRoot
    log: CommitLog
    state: TopicState


def find_or_create_write_root(options: WriteOptions) -> KlogRoot:
    """Return the root of a write; create it if the write may create topics.

    Args:
        options: The options of the write.

    Raises:
        OptionError: The path is not a klog root, and the write must not create one.
    """
    if options.create_topic:
        root = find_root(options.path, options.storage)
        return root or find_or_create_root(options.path, random_uuid(), options.storage)
    return open_klog_root(
        options.path,
        options.storage,
        "createTopic=false creates no root. Create one with `klog topics create`",
    )


class TopicStateCache:
    """Topics by root and name. Not safe to share between threads."""

    def __init__(self) -> None:
        """Start empty."""
        self._topics: dict[tuple[str, StorageOptions, str], CachedTopic] = {}

    def load(self, options: WriteOptions, topic: str) -> CachedTopic:
        """Load a topic of a write's root, starting from the cached state.

        Args:
            options: The options of the write.
            topic: The topic.

        Raises:
            LostCommitError: The log does not have the commit of the cached state.
            OptionError: As `find_or_create_write_root` and `KlogRoot.log_to_write`.
        """
        cached = self._topics.get((options.path, options.storage, topic))
        if cached is not None and cached.state.topic_id:
            state = cached.log.follow(cached.state)
            if state is not None and state.topic_id == cached.state.topic_id:
                return self.keep(options, CachedTopic(cached.root, cached.log, state))
        # The root may have been created again by a klog that asks for another writer, so all of it
        # is read again.
        root = find_or_create_write_root(options)
        log = root.log_to_write(topic)
        # A folder without `topic.json` was deleted, so the cached state is not of its log.
        cached_state = cached.state if cached is not None and log.has_description else None
        return self.keep(options, CachedTopic(root, log, log.load_cold(cached_state)))

    def load_unless_at(
        self, options: WriteOptions, topic: str, topic_id: str, version: int
    ) -> CachedTopic:
        """Return the cached topic if its state has this id and version; load it otherwise.

        Args:
            options: The options of the write.
            topic: The topic.
            topic_id: The id that another process has just seen.
            version: The version that the other process has just seen.
        """
        cached = self._topics.get((options.path, options.storage, topic))
        if (
            cached is not None
            and topic_id
            and (cached.state.topic_id, cached.state.version) == (topic_id, version)
        ):
            return cached
        return self.load(options, topic)

    def keep(self, options: WriteOptions, topic: CachedTopic) -> CachedTopic:
        """Put a topic into the cache; if it is full, the topic that was used longest ago leaves it.

        Args:
            options: The options of the write.
            topic: The topic and its state.
        """
        # By the next load `topic.json` may be lost.
        topic = replace(topic, log=replace(topic.log, has_description=False))
        key = (options.path, options.storage, topic.log.paths.topic)
        self._topics.pop(key, None)
        self._topics[key] = topic
        if len(self._topics) > MAX_TOPICS:
            del self._topics[next(iter(self._topics))]
        return topic


TOPIC_STATES = TopicStateCache()
"""The cache of this process."""
