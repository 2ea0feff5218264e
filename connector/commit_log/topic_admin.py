"""The topics of a klog root: make, alter, delete, describe, and tell what happened to them.

The rule: each change is one commit of the topic's log, checked against the state that it lands on,
so that two people who change a topic at once cannot make of two right configs a wrong one. What is
wrong in itself (a name, a number, a config) is refused before the store is asked. A topic that is
made again after it was deleted goes on in the same log with a new id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from klog.connector.commit_log import commit_builders
from klog.connector.commit_log.commit import Actions, Commit, Topic
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_history import read_newest_first
from klog.connector.commit_log.commit_info import CommitInfo, NewId, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot, check_topic_name
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.topic_partition import MAX_PARTITIONS
from klog.errors import CommitConflictError, OptionError
from klog.logformat.topic_config import check_config_names, normalize_topic_config
from klog.logformat.topic_config_defaults import klog_config_names

NO_CONFIG: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """What one partition holds as of a version; the last stable offset is the log end."""

    partition: int
    log_start: int
    log_end: int
    segments: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as of a version. `config` has what was given, as text."""

    topic: str
    topic_id: str
    version: int
    timestamp_ms: int
    config: Mapping[str, str]
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True)
class TopicAdmin:
    """The administration of a root's topics; `engine` is who commits, for `history`."""

    root: KlogRoot
    engine: str = field(default_factory=this_engine)
    new_id: NewId = random_uuid

    def names(self) -> list[str]:
        """List the topics that are there; each log is loaded, for a deleted one leaves its log."""
        names = self.root.topic_names()
        return [name for name in names if self.root.log_to_read(name).load().topic_id]

    def create(
        self, topic: str, partitions: int | None = None, config: Mapping[str, str] = NO_CONFIG
    ) -> TopicState:
        """Make a topic, by default with as many partitions as the root's `num.partitions`.

        Raises `OptionError` for a topic that is there, and as `ensure`.
        """
        state, is_new = self.ensure(topic, partitions, config)
        if not is_new:
            raise OptionError(
                f"topic {topic} already exists in {self.root.location}, with id {state.topic_id}. "
                "Give another name, or alter this one"
            )
        return state

    def ensure(
        self, topic: str, partitions: int | None = None, config: Mapping[str, str] = NO_CONFIG
    ) -> tuple[TopicState, bool]:
        """Make a topic unless it is there, whatever partitions and configs that one has.

        Tells whether this call made it. Raises `OptionError` for a name, a number or a config that
        Kafka or klog refuses.
        """
        kept = check_new_topic(topic, partitions, config)
        made = Topic(self.new_id(), partitions or self.root.num_partitions)
        refuse_collision(self.root, topic)
        log = self.root.log_to_write(topic)
        before = log.load()  # Of a topic that has lost its `topic.json`, raises: none is made then.
        if not before.topic_id:
            log = self.root.new_log(topic)

        def build(state: TopicState) -> Actions | None:
            return None if state.topic_id else Actions(create_topic=made, config=kept)

        state = self._commit(log, before, build, "create-topic")
        return state, state.topic_id == made.topic_id

    def alter_config(
        self, topic: str, change: Mapping[str, str], unset: Iterable[str] = ()
    ) -> TopicState:
        """Set configs, and give others back to their defaults; no change is no commit.

        Raises `OptionError` for what the topic would not be made with, and `CommitConflictError`
        where another changed the same config meanwhile.
        """
        log = self.root.log_to_write(topic)
        before = self.root.load(log)
        change, unset = normalize_topic_config(change), list(unset)
        both = sorted(change.keys() & set(unset))
        if both:
            raise OptionError(f"{', '.join(both)}: set and unset at once; give one of the two")
        # One that is given may be of another klog: it can be taken away, though not set.
        check_config_names(name for name in unset if name not in before.config)
        wanted: dict[str, str | None] = {**change, **dict.fromkeys(unset)}
        changed = {name: text for name, text in wanted.items() if before.config.get(name) != text}
        if not changed:
            return before
        alter = commit_builders.alter_config(before.topic_id, before.config, changed)

        def build(state: TopicState) -> Actions | None:
            actions = alter(state)
            normalize_topic_config(_known({**state.config, **changed}))
            return actions

        return self._commit(log, before, build, "alter-config")

    def add_partitions(self, topic: str, partitions: int) -> TopicState:
        """Give a topic more partitions, so many in all.

        Keys go to other partitions from then on, as in Kafka. Raises `OptionError` where there are
        as many or more.
        """
        log = self.root.log_to_write(topic)
        before = self.root.load(log)
        _check_partitions(partitions)
        if partitions <= before.partitions:
            raise OptionError(
                f"topic {topic} has {before.partitions} partitions, which cannot become "
                f"{partitions}: they only grow in number"
            )
        build = commit_builders.add_partitions(before.topic_id, partitions)
        return self._commit(log, before, build, "add-partitions")

    def delete(self, topic: str) -> TopicState:
        """Delete a topic; its files go when vacuum runs, later than the readers' grace."""
        log = self.root.log_to_write(topic)
        before = self.root.load(log)
        return self._commit(
            log, before, commit_builders.delete_topic(before.topic_id), "delete-topic"
        )

    def describe(self, topic: str) -> TopicDescription:
        """Tell what a topic holds, from its state alone."""
        return describe_state(topic, self.root.load(self.root.log_to_read(topic)))

    def history(self, topic: str) -> Iterator[Commit]:
        """Give a topic's commits, newest first, those of earlier topics of the name too.

        It ends above version 0 where older commits were cleaned: a checkpoint stands for them.
        """
        log = self.root.log_to_read(topic)
        state = log.load()
        if state.version < 0:
            self.root.load(log, state)  # raises
        return read_newest_first(log, state)

    def _commit(
        self, log: CommitLog, state: TopicState, build: CommitBuilder, operation: str
    ) -> TopicState:
        try:
            return log.commit(state, build, CommitInfo(self.new_id(), operation, self.engine))
        except CommitConflictError as exc:
            raise CommitConflictError(
                f"topic {log.paths.topic} of {self.root.location}: {exc}"
            ) from exc


def check_new_topic(
    topic: str, partitions: int | None, config: Mapping[str, str]
) -> dict[str, str]:
    """Raise `OptionError` for what is wrong in itself; gives the configs as they are to be kept."""
    check_topic_name(topic)
    if partitions is not None:
        _check_partitions(partitions)
    return normalize_topic_config(config)


def refuse_collision(root: KlogRoot, topic: str) -> None:
    """Raise `OptionError` for a new topic that only '.' and '_' tell from another.

    A broker could not take in both, for its metrics do not tell them apart. Two who make such a
    pair at the same moment both succeed: nothing of klog's depends on it.
    """
    if "." not in topic and "_" not in topic:
        return
    for other in root.topic_names():
        collides = other != topic and other.replace(".", "_") == topic.replace(".", "_")
        if collides and root.log_to_read(other).load().topic_id:
            raise OptionError(
                f"topic {topic} collides with topic {other}, which is there: a broker takes "
                "'.' and '_' for the same in its metrics, and could not have both. Give "
                "another name"
            )


def describe_state(topic: str, state: TopicState) -> TopicDescription:
    """Tell what a topic holds as of a state: one row a partition, whatever its segments."""
    columns = state.segments.select(["partition", "file", "size_bytes"])
    grouped = columns.group_by("partition").aggregate([("file", "count"), ("size_bytes", "sum")])
    held = {
        row["partition"]: (row["file_count"], row["size_bytes_sum"]) for row in grouped.to_pylist()
    }
    partitions = tuple(
        PartitionDescription(partition, start, end, *held.get(partition, (0, 0)))
        for partition, (start, end) in enumerate(zip(state.log_start, state.log_end, strict=True))
    )
    return TopicDescription(
        topic, state.topic_id, state.version, state.timestamp_ms, state.config, partitions
    )


def _known(config: Mapping[str, str | None]) -> dict[str, str]:
    """Give the configs that this klog knows; a newer one may have set others, which stay."""
    names = klog_config_names()
    return {name: text for name, text in config.items() if text is not None and name in names}


def _check_partitions(partitions: int) -> None:
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise OptionError(f"{partitions} partitions: a topic has from 1 to {MAX_PARTITIONS:,}")
