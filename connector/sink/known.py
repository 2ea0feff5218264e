"""What this process remembers of the topics that it writes to: their logs, and states as last seen.

The rule: a state goes on from the last one, so that a micro-batch in a process that has seen the
topic reads three small files. It is believed only while the log still has the commit that it is of.
A log that lacks it has lost it, which is an error, unless it is another log: a process of Spark's
outlives what its user deletes and makes again. What is there, a commit's number decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from klog.connector.log.author import random_uuid
from klog.connector.log.root import KlogRoot, find_root, make_root
from klog.connector.log.state import State
from klog.connector.log.topic_log import TopicLog
from klog.connector.sink.write_options import WriteOptions
from klog.connector.store.storage import Storage
from klog.errors import OptionError

MOST_TOPICS = 64
"""As many states are kept; those of large topics take some memory."""


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic of a root; its state has no topic id where there is no such topic."""

    root: KlogRoot
    log: TopicLog
    state: State


def find(options: WriteOptions) -> KlogRoot:
    """Find the root of a write, or make it. Raises `OptionError` where none is to be made."""
    root = find_root(options.path, options.storage)
    if root is not None:
        return root
    if options.create_topic:
        return make_root(options.path, random_uuid(), options.storage)
    raise OptionError(
        f"path: {options.path} is no klog root, and createTopic=false; klog topics create makes one"
    )


class KnownTopics:
    """Topics by root and name. Not safe to share between threads."""

    def __init__(self) -> None:
        """Begin with none."""
        self._topics: dict[tuple[str, Storage, str], KnownTopic] = {}

    def load(self, options: WriteOptions, topic: str) -> KnownTopic:
        """Load a topic of a write's root from what is known of it.

        Raises `LostCommitError` where the log does not have the last commit that is known, and as
        `KlogRoot.log_to_write` and `find` do.
        """
        known = self._topics.get((options.path, options.storage, topic))
        if known is not None and known.state.topic_id:
            state = known.log.follow(known.state)
            if state is not None and state.topic_id == known.state.topic_id:
                return self.keep(options, KnownTopic(known.root, known.log, state))
        # Made anew maybe, by a klog that asks for another writer: all is looked at again.
        root = find(options)
        log = root.log_to_write(topic)
        # A folder without `topic.json` was deleted, so that what this process knows is not of it.
        seen = known.state if known is not None and log.is_described else None
        return self.keep(options, KnownTopic(root, log, log.load_cold(seen)))

    def last(self, options: WriteOptions, topic: str, seen: tuple[str, int]) -> KnownTopic:
        """Give the topic unasked where it is known as another has just seen it; else load it.

        `seen` are its id and version, which say that this process has missed nothing.
        """
        known = self._topics.get((options.path, options.storage, topic))
        if known is not None and seen[0] and (known.state.topic_id, known.state.version) == seen:
            return known
        return self.load(options, topic)

    def keep(self, options: WriteOptions, known: KnownTopic) -> KnownTopic:
        """Remember a topic; the one that was seen longest ago makes room for it."""
        # `topic.json` may be lost by the next load.
        known = replace(known, log=replace(known.log, is_described=False))
        name = (options.path, options.storage, known.log.paths.topic)
        self._topics.pop(name, None)
        self._topics[name] = known
        if len(self._topics) > MOST_TOPICS:
            del self._topics[next(iter(self._topics))]
        return known


KNOWN = KnownTopics()
"""The process's own."""
