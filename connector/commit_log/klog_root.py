"""A klog root: a directory whose topics have commit logs. One without `_klog/` is raw Kafka.

    _klog/format.json              who may read and write (description.py), `clusterId`, `config`
    _klog/topics/<topic>/topic.json    who may read and write this topic

The rule: `_klog/format.json` makes a directory a klog root. It is created once, in a directory that
has no broker's files, and never changed; `config` holds the root's `num.partitions`, what a topic
gets that is made without a number. `topic.json` is there before a topic's first commit. A topic is
there if the state of its log says so: a folder under `_klog/topics` may be that of a deleted one.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from klog.connector.commit_log import format_description
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import KLOG, TOPICS, TopicPaths
from klog.connector.commit_log.file_size_limits import MAX_SMALL_FILE_BYTES
from klog.connector.commit_log.format_description import FormatDescription
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.writable_store import PutResult, WritableStore
from klog.connector.system_clock import back_off, now_ms
from klog.errors import KlogError, OptionError
from klog.logformat.broker_files.file_names import is_topic


@dataclass(frozen=True, slots=True)
class KlogRoot:
    """A root as it was given, its store, and its path as the store spells it."""

    location: str
    store: WritableStore
    path: str
    cluster_id: str
    num_partitions: int
    description: FormatDescription

    def segment_path(self, entry: SegmentEntry) -> str:
        """Return the path of a segment's file as the store spells it."""
        return f"{self.path}/{entry['file']}"

    def topic_names(self) -> list[str]:
        """List the topics that have a log, deleted ones too: one listing.

        A file that a desktop or a copy left among them is no topic, whatever its name.
        """
        try:
            entries = self.store.entries(f"{self.path}/{KLOG}/{TOPICS}")
        except FileNotFoundError:
            return []
        return sorted(
            entry.name for entry in entries if entry.is_directory and is_topic(entry.name)
        )

    def log(self, topic: str) -> CommitLog:
        """Return the log of a topic, which need not be there; nobody has looked for `topic.json`.

        Raises `OptionError` for a bad name.
        """
        check_topic_name(topic)
        paths = TopicPaths(self.path, topic)
        return CommitLog(self.store, paths, now_ms, back_off, has_description=False)

    def log_to_read(self, topic: str) -> CommitLog:
        """Give the log of a topic that this klog may read: one read.

        Raises `UnsupportedFormatError` where `topic.json` asks for a newer klog.
        """
        log = self.log(topic)
        return replace(log, has_description=self._described(log) is not None)

    def log_to_write(self, topic: str) -> CommitLog:
        """Give the log of a topic that this klog may write: one read. Raises as `log_to_read`."""
        self.description.check_writer()
        log = self.log(topic)
        found = self._described(log)
        if found is not None:
            found.check_writer()
        return replace(log, has_description=found is not None)

    def new_log(self, topic: str) -> CommitLog:
        """Give the log of a topic that is about to be made: `topic.json` is there then.

        One request where the topic is new. Raises as `log_to_read`.
        """
        self.description.check_writer()
        log = self.log(topic)
        path = log.paths.description
        if (
            self.store.put_if_absent(path, format_description.encode_description({}))
            is not PutResult.CREATED
        ):
            found = self._described(log)
            if found is None:
                raise KlogError(f"{path}: the store did not say whether it was made; try again")
            found.check_writer()
        return replace(log, has_description=True)

    def load(self, log: CommitLog, cached: TopicState | None = None) -> TopicState:
        """Load the state of a topic that has to be there.

        Raises `OptionError` that tells one that was deleted from one that never was.
        """
        return self._existing(log.paths.topic, log.load(cached))

    def load_to_commit(self, log: CommitLog, cached: TopicState | None) -> TopicState:
        """Load the state of a topic for a commit that follows at once. Raises as `load` does."""
        return self._existing(log.paths.topic, log.load_to_commit(cached))

    def _existing(self, topic: str, state: TopicState) -> TopicState:
        """Return the state of a topic that exists. Raises as `load` does."""
        if state.topic_id:
            return state
        if state.version >= 0:
            raise OptionError(
                f"topic {topic} of {self.location} was deleted; `klog history --topic {topic}` "
                "says when and by whom. A topic created again under its name has another id"
            )
        others = [name for name in self.topic_names() if name != topic]
        if not others:
            raise OptionError(
                f"there is no topic {topic}: {self.location} has no topics. Create one "
                "with `klog topics create`, or write to one"
            )
        close = self._close_topic(topic, others)
        raise OptionError(
            f"there is no topic {topic} in {self.location}; "
            + (f"did you mean {close}?" if close else "`klog topics list` names those there are")
        )

    def _close_topic(self, topic: str, others: Sequence[str]) -> str:
        """Return the topic that is there with the most similar name; "" if there is none."""
        for name in difflib.get_close_matches(topic, others):
            try:
                if self.log(name).load().topic_id:
                    return name
            except (KlogError, OSError):
                return name  # A topic that cannot be read is there.
        return ""

    def _described(self, log: CommitLog) -> FormatDescription | None:
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
    """Raise `OptionError` for a name that Kafka allows no topic."""
    if not is_topic(topic):
        raise OptionError(
            f"{topic!r} is no topic name: letters, digits, '.', '_' and '-', at most 249, and "
            "neither '.' nor '..'"
        )
