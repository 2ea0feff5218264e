"""A klog root: a directory whose topics have commit logs. One without `_klog/` is raw Kafka.

    _klog/format.json              `format_description.py`, with `clusterId` and `config`
    _klog/topics/<topic>/topic.json    who may read and write this topic

The rule: `_klog/format.json` makes a directory a klog root. It is created once, in a directory that
has no broker's files, and never changed; `config` has the root's `num.partitions`, the partitions
of a topic that is created without a number. `topic.json` is created before a topic's first commit.
A topic exists if the state of its log says so: a folder under `_klog/topics` may be that of a
deleted one.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from klog.connector.back_off import back_off
from klog.connector.commit_log import format_description
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.file_size_limits import MAX_SMALL_FILE_BYTES
from klog.connector.commit_log.format_description import FormatDescription
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.root_files import KLOG, TOPICS
from klog.connector.store.writable_store import PutResult, WritableStore
from klog.connector.system_clock import now_ms
from klog.errors import KlogError, OptionError, StoreError
from klog.logformat.broker_files.file_names import is_topic


@dataclass(frozen=True, slots=True)
class KlogRoot:
    """A root: its location as the user wrote it, its store, and its path as the store spells it."""

    location: str
    store: WritableStore
    path: str
    cluster_id: str
    num_partitions: int
    description: FormatDescription

    def segment_path(self, entry: SegmentEntry) -> str:
        """Return the path of a segment's file as the store spells it.

        Args:
            entry: The entry of the segment.
        """
        return f"{self.path}/{entry['file']}"

    def topic_names(self) -> list[str]:
        """List the topics that have a log, deleted ones too: one listing.

        A file among their folders is not a topic, whatever its name.
        """
        try:
            entries = self.store.entries(f"{self.path}/{KLOG}/{TOPICS}")
        except FileNotFoundError:
            return []
        return sorted(
            entry.name for entry in entries if entry.is_directory and is_topic(entry.name)
        )

    def log(self, topic: str) -> CommitLog:
        """Return the log of a topic, which need not exist; `topic.json` is not read.

        Args:
            topic: The name of the topic.

        Raises:
            OptionError: The name is not one of a topic.
        """
        check_topic_name(topic)
        paths = TopicPaths(self.path, topic)
        return CommitLog(self.store, paths, now_ms, back_off, has_description=False)

    def log_to_read(self, topic: str) -> CommitLog:
        """Return the log of a topic that this klog may read: one read.

        Args:
            topic: The name of the topic.

        Raises:
            UnsupportedFormatError: `topic.json` needs a newer klog.
            OptionError: The name is not one of a topic.
        """
        log = self.log(topic)
        return replace(log, has_description=self._read_description(log) is not None)

    def log_to_write(self, topic: str) -> CommitLog:
        """Return the log of a topic that this klog may write: one read.

        Args:
            topic: The name of the topic.

        Raises:
            UnsupportedFormatError: The root or `topic.json` needs a newer klog.
            OptionError: The name is not one of a topic.
        """
        self.description.check_writer()
        log = self.log(topic)
        description = self._read_description(log)
        if description is not None:
            description.check_writer()
        return replace(log, has_description=description is not None)

    def new_log(self, topic: str) -> CommitLog:
        """Return the log of a topic that is about to be created, after `topic.json` was created.

        Args:
            topic: The name of the topic.

        Returns:
            The log. A new topic costs one request.

        Raises:
            UnsupportedFormatError: The root or `topic.json` needs a newer klog.
            OptionError: The name is not one of a topic.
            StoreError: The store does not say whether `topic.json` was created.
        """
        self.description.check_writer()
        log = self.log(topic)
        path = log.paths.description
        if (
            self.store.put_if_absent(path, format_description.encode_description({}))
            is not PutResult.CREATED
        ):
            description = self._read_description(log)
            if description is None:
                raise StoreError(f"{path}: the store did not say whether it was created; try again")
            description.check_writer()
        return replace(log, has_description=True)

    def load(self, log: CommitLog, cached: TopicState | None = None) -> TopicState:
        """Load the state of a topic that must exist.

        Args:
            log: The log of the topic.
            cached: The state of an earlier load; None if there is none.

        Raises:
            OptionError: The topic was deleted, or never existed.
        """
        return self._require_topic(log.paths.topic, log.load(cached))

    def load_to_commit(self, log: CommitLog, cached: TopicState | None) -> TopicState:
        """Load the state of a topic that must exist, for a commit that follows at once.

        Args:
            log: The log of the topic.
            cached: The state of an earlier load; None if there is none.

        Raises:
            OptionError: The topic was deleted, or never existed.
        """
        return self._require_topic(log.paths.topic, log.load_to_commit(cached))

    def _require_topic(self, topic: str, state: TopicState) -> TopicState:
        """Return the state of a topic that exists. Raises as `load` does."""
        if state.topic_id:
            return state
        if state.version >= 0:
            raise OptionError(
                f"topic {topic} of {self.location} was deleted; `klog history --topic {topic}` "
                "says when and by whom. `klog topics undelete` restores it while its files are "
                "there. A topic created again under its name has another id"
            )
        other_topics = [name for name in self.topic_names() if name != topic]
        if not other_topics:
            raise OptionError(
                f"there is no topic {topic}: {self.location} has no topics. Create one "
                "with `klog topics create`, or write to one"
            )
        close = self._close_topic(topic, other_topics)
        raise OptionError(
            f"there is no topic {topic} in {self.location}; "
            + (f"did you mean {close}?" if close else "`klog topics list` names the topics")
        )

    def _close_topic(self, topic: str, other_topics: Sequence[str]) -> str:
        """Return the existing topic with the most similar name; "" if there is none."""
        for name in difflib.get_close_matches(topic, other_topics):
            try:
                if self.log(name).load().topic_id:
                    return name
            except (KlogError, OSError):
                return name  # A topic that cannot be read exists.
        return ""

    def _read_description(self, log: CommitLog) -> FormatDescription | None:
        path = log.paths.description
        try:
            return format_description.decode_description(
                path, self.store.read(path, MAX_SMALL_FILE_BYTES)
            )
        except FileNotFoundError:
            return None
        except NotADirectoryError as exc:
            raise OptionError(
                f"there is no topic {log.paths.topic} in {self.location}: {log.paths.directory} is "
                "a file that is not klog's; `klog topics list` names the topics"
            ) from exc


def check_topic_name(topic: str) -> None:
    """Refuse a name that Kafka does not allow for a topic.

    Args:
        topic: The name of the topic.

    Raises:
        OptionError: Kafka does not allow it.
    """
    if not is_topic(topic):
        raise OptionError(
            f"{topic!r} is not a topic name: it has at most 249 letters, digits, '.', '_' and '-', "
            "and is neither '.' nor '..'"
        )
