"""The topics of a klog root: create, alter, delete, undelete and describe them; their history.

The rule: each change is one commit of the topic's log, checked against the state that it lands on,
so that two changes at the same time cannot turn two right configs into a wrong one. A name, number
or config that is wrong in itself is refused before the store is read. A topic that is created again
after it was deleted continues in the same log with a new id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from klog.connector.commit_log import commit_builders
from klog.connector.commit_log.commit import UNDELETE, Actions, Commit, Topic
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_history import read_newest_first
from klog.connector.commit_log.commit_info import CommitInfo, NewId, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot, check_topic_name
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.commit_log.topic_undelete import undelete_log
from klog.errors import CommitConflictError, OptionError, with_context
from klog.logformat.topic_config import check_config_names, normalize_topic_config
from klog.logformat.topic_config_defaults import klog_config_names
from klog.logformat.topic_partition import MAX_PARTITIONS

NO_CONFIG: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition of a topic, as of a version.

    Attributes:
        partition: Its number.
        log_start: Its log start offset.
        log_end: Its log end offset, the offset of the next record.
        segments: The number of its live segments.
        size_bytes: The size of these segments in bytes, without their indexes.
    """

    partition: int
    log_start: int
    log_end: int
    segments: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic, as of a version.

    Attributes:
        topic: Its name.
        topic_id: Its id, as Kafka writes it. A topic that is deleted and created again has another.
        version: The version of its last commit.
        timestamp_ms: The time of that commit, in milliseconds since 1970.
        config: The configs that were set, as text. Configs with their default are not in it.
        partitions: Its partitions, by number.
    """

    topic: str
    topic_id: str
    version: int
    timestamp_ms: int
    config: Mapping[str, str]
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True)
class EnsuredTopic:
    """The state of a topic that exists now, and whether this call created it."""

    state: TopicState
    is_created: bool


@dataclass(frozen=True, slots=True)
class TopicAdmin:
    """The administration of a root's topics; `engine` is the one of its commits, for `history`."""

    root: KlogRoot
    engine: str = field(default_factory=this_engine)
    new_id: NewId = random_uuid

    def names(self) -> list[str]:
        """List the topics that exist; each log is loaded, for a deleted topic leaves its log."""
        names = self.root.topic_names()
        return [name for name in names if self.root.log_to_read(name).load().topic_id]

    def create(
        self, topic: str, partitions: int | None = None, config: Mapping[str, str] = NO_CONFIG
    ) -> TopicState:
        """Create a topic.

        Args:
            topic: The name of the topic.
            partitions: The number of partitions; None for the root's `num.partitions`.
            config: Its configs, as text.

        Raises:
            OptionError: The topic exists, or Kafka or klog refuses its name, number or configs.
        """
        ensured = self.ensure(topic, partitions, config)
        if not ensured.is_created:
            raise OptionError(
                f"topic {topic} already exists in {self.root.location}, with id "
                f"{ensured.state.topic_id}. Give another name, or alter this one"
            )
        return ensured.state

    def ensure(
        self, topic: str, partitions: int | None = None, config: Mapping[str, str] = NO_CONFIG
    ) -> EnsuredTopic:
        """Create a topic unless it exists, whatever partitions and configs it has.

        Args:
            topic: The name of the topic.
            partitions: The number of partitions; None for the root's `num.partitions`.
            config: Its configs, as text.

        Returns:
            The topic.

        Raises:
            OptionError: Kafka or klog refuses the name, number or configs.
        """
        normalized = check_new_topic(topic, partitions, config)
        new_topic = Topic(self.new_id(), partitions or self.root.num_partitions)
        refuse_collision(self.root, topic)
        log = self.root.log_to_write(topic)
        before = log.load()  # Raises if the topic has lost its `topic.json`.
        if not before.topic_id:
            log = self.root.new_log(topic)

        def build(state: TopicState) -> Actions | None:
            return None if state.topic_id else Actions(create_topic=new_topic, config=normalized)

        state = self._commit(log, before, build, "create-topic")
        return EnsuredTopic(state, state.topic_id == new_topic.topic_id)

    def alter_config(
        self, topic: str, change: Mapping[str, str], unset: Iterable[str] = ()
    ) -> TopicState:
        """Set configs, and unset others; without a change there is no commit.

        Args:
            topic: The name of the topic.
            change: The configs to set, as text.
            unset: The configs to set back to their defaults.

        Raises:
            OptionError: The topic could not be created with these configs.
            CommitConflictError: Another commit changed one of them meanwhile.
        """
        log = self.root.log_to_write(topic)
        before = self.root.load(log)
        change, unset = normalize_topic_config(change), list(unset)
        in_both = sorted(change.keys() & set(unset))
        if in_both:
            raise OptionError(f"{', '.join(in_both)}: set and unset at once; give one of the two")
        # A config of the topic may be one of a newer klog: it can be unset, but not set.
        check_config_names(name for name in unset if name not in before.config)
        new_values: dict[str, str | None] = {**change, **dict.fromkeys(unset)}
        changes = {
            name: text for name, text in new_values.items() if before.config.get(name) != text
        }
        if not changes:
            return before
        alter = commit_builders.alter_config(before.topic_id, before.config, changes)

        def build(state: TopicState) -> Actions | None:
            actions = alter(state)
            normalize_topic_config(_known_configs({**state.config, **changes}))
            return actions

        return self._commit(log, before, build, "alter-config")

    def add_partitions(self, topic: str, partitions: int) -> TopicState:
        """Add partitions to a topic. Keys go to other partitions from then on, as in Kafka.

        Args:
            topic: The name of the topic.
            partitions: The new number of partitions.

        Raises:
            OptionError: The topic has as many or more.
        """
        log = self.root.log_to_write(topic)
        before = self.root.load(log)
        _check_partitions(partitions)
        if partitions <= before.partitions:
            raise OptionError(
                f"topic {topic} has {before.partitions} partitions, which cannot become "
                f"{partitions}: they only grow in number. Give a higher one"
            )
        build = commit_builders.add_partitions(before.topic_id, partitions)
        return self._commit(log, before, build, "add-partitions")

    def delete(self, topic: str) -> TopicState:
        """Delete a topic. Vacuum deletes its files after the readers' grace.

        Args:
            topic: The name of the topic.
        """
        log = self.root.log_to_write(topic)
        before = self.root.load(log)
        return self._commit(
            log, before, commit_builders.delete_topic(before.topic_id), "delete-topic"
        )

    def undelete(self, topic: str) -> TopicState:
        """Restore a deleted topic, as its last version left it (docs/restore.md).

        Args:
            topic: The name of the topic.

        Raises:
            OptionError: The topic exists, never existed, or its deletion has expired.
            CommitConflictError: Vacuum has deleted a file of the topic.
        """
        log = self.root.log_to_write(topic)
        before = log.load()
        if before.version < 0:
            self.root.load(log, before)  # raises
        refuse_collision(self.root, topic)
        return undelete_log(log, before, CommitInfo(self.new_id(), UNDELETE, self.engine))

    def describe(self, topic: str) -> TopicDescription:
        """Return the description of a topic, from its state alone.

        Args:
            topic: The name of the topic.
        """
        return describe_state(topic, self.root.load(self.root.log_to_read(topic)))

    def history(self, topic: str) -> Iterator[Commit]:
        """Read a topic's commits, newest first, also those of earlier topics of the name.

        It ends above version 0 if older commits have expired.

        Args:
            topic: The name of the topic.

        Raises:
            OptionError: The topic never existed.
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
            raise with_context(
                exc, f"topic {log.paths.topic} of {self.root.location}: {exc}"
            ) from exc


def check_new_topic(
    topic: str, partitions: int | None, config: Mapping[str, str]
) -> dict[str, str]:
    """Return the configs of a new topic as its commit has them.

    Args:
        topic: The name of the topic.
        partitions: The number of partitions; None if the root decides.
        config: Its configs, as text.

    Raises:
        OptionError: Kafka or klog refuses the name, number or configs.
    """
    check_topic_name(topic)
    if partitions is not None:
        _check_partitions(partitions)
    return normalize_topic_config(config)


def refuse_collision(root: KlogRoot, topic: str) -> None:
    """Refuse a new topic whose name differs from another one only in '.' and '_'.

    A broker could not have both, for its metrics do not distinguish them. If two processes create
    such a pair at the same moment, both succeed: klog itself does not depend on it.

    Args:
        root: The klog root.
        topic: The name of the topic.

    Raises:
        OptionError: Such a topic exists.
    """
    for other in similar_names(root, topic):
        if root.log_to_read(other).load().topic_id:
            raise OptionError(f"{collision(topic, other)}. Give another name")


def similar_names(root: KlogRoot, topic: str) -> list[str]:
    """Return the names of other topics, deleted ones too, that differ only in '.' and '_'.

    Args:
        root: The klog root.
        topic: The name of the topic.
    """
    if "." not in topic and "_" not in topic:
        return []
    return [
        other
        for other in root.topic_names()
        if other != topic and other.replace(".", "_") == topic.replace(".", "_")
    ]


def collision(topic: str, other: str) -> str:
    """Return why a broker could not have two topics.

    Args:
        topic: The new one.
        other: One of its `similar_names`, which exists.
    """
    return (
        f"topic {topic} collides with topic {other}, which exists: a broker's metrics do not "
        "distinguish '.' from '_', so it could not have both"
    )


def describe_state(topic: str, state: TopicState) -> TopicDescription:
    """Return the description of a topic: one row for each partition, with or without segments.

    Args:
        topic: The name of the topic.
        state: Its state.
    """
    columns = state.segments.select(["partition", "file", "size_bytes"])
    totals = columns.group_by("partition").aggregate([("file", "count"), ("size_bytes", "sum")])
    sizes = {
        row["partition"]: (row["file_count"], row["size_bytes_sum"]) for row in totals.to_pylist()
    }
    partitions = tuple(
        PartitionDescription(partition, start, end, *sizes.get(partition, (0, 0)))
        for partition, (start, end) in enumerate(zip(state.log_start, state.log_end, strict=True))
    )
    return TopicDescription(
        topic, state.topic_id, state.version, state.timestamp_ms, state.config, partitions
    )


def _known_configs(config: Mapping[str, str | None]) -> dict[str, str]:
    """Return the configs that this klog knows; a newer klog may have set others, which stay."""
    names = klog_config_names()
    return {name: text for name, text in config.items() if text is not None and name in names}


def _check_partitions(partitions: int) -> None:
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise OptionError(f"{partitions} partitions: a topic has from 1 to {MAX_PARTITIONS:,}")
