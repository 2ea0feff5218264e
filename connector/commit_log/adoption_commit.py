"""The commits that add a broker's log to a topic.

The rule: `adopt` creates a topic with its whole log in one commit; `import_partition` adds one
partition a commit. Neither adds anything to a partition that has other segments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from klog.connector.commit_log import commit_checks
from klog.connector.commit_log.commit import Actions, Topic
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError


@dataclass(frozen=True, slots=True)
class BrokerPartition:
    """A partition as a broker left it.

    `segments` have entries of origin `adopt`, in order of offset. `cleaned_to` is the offset where
    the broker's log cleaner would continue.
    """

    partition: int
    log_start: int
    log_end: int
    cleaned_to: int = 0
    segments: Sequence[SegmentEntry] = field(default_factory=tuple)


def adopt(
    topic: Topic, config: Mapping[str, str], partitions: Sequence[BrokerPartition]
) -> CommitBuilder:
    """Return the builder of a commit that creates a topic from all partitions of a broker.

    Args:
        topic: The topic to create.
        config: Its configs, as text.
        partitions: What the broker left of each partition.

    Returns:
        The builder. It raises `CommitConflictError` if the log has a commit.
    """

    def build(state: TopicState) -> Actions:
        if state.version >= 0:
            raise CommitConflictError(
                "another process created the topic meanwhile; look at it, then run this again"
            )
        return _actions(topic, config, partitions)

    return build


def import_partition(
    topic: Topic, config: Mapping[str, str], base_version: int, partition: BrokerPartition
) -> CommitBuilder:
    """Return the builder of a commit that adds a copied partition, and creates a missing topic.

    Args:
        topic: The topic to create if there is none. An existing one must have its id.
        config: Configs of a new topic, as text.
        base_version: The version of the log that the copies were planned on.
        partition: The partition, whose segments are the copies.

    Returns:
        The builder. It raises `CommitConflictError` if the topic is another one or the partition is
        not empty.
    """

    def build(state: TopicState) -> Actions:
        commit_checks.check_base_version(state, base_version)
        if not state.topic_id:
            return _actions(topic, config, [partition])
        if state.topic_id != topic.topic_id:
            raise CommitConflictError(
                f"the topic is another one: its id is {state.topic_id}, not {topic.topic_id}. "
                "Import into another root"
            )
        number = partition.partition
        if number >= state.partitions or state.log_end[number]:
            raise CommitConflictError(
                f"partition {number} was written to meanwhile, or imported by another process; "
                "look at it, then run this again"
            )
        return _actions(None, {}, [partition])

    return build


def _actions(
    topic: Topic | None, config: Mapping[str, str], partitions: Sequence[BrokerPartition]
) -> Actions:
    empty = [partition for partition in partitions if not partition.segments]
    return Actions(
        add=tuple(entry for partition in partitions for entry in partition.segments),
        create_topic=topic,
        config=dict(config),
        log_start=_nonzero({p.partition: p.log_start for p in partitions}),
        explicit_log_end=_nonzero({p.partition: p.log_end for p in empty}),
        cleaned_to=_nonzero({p.partition: p.cleaned_to for p in partitions}),
        asserted_log_end=_nonzero({p.partition: p.log_end for p in partitions}),
    )


def _nonzero(offsets: Mapping[int, int]) -> dict[int, int]:
    return {partition: offset for partition, offset in offsets.items() if offset}
