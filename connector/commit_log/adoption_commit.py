"""Commit what a broker left of a topic."""

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
    """A partition as a broker left it; `segments` have entries of origin `adopt`, in order.

    `cleaned_to` is where its log cleaner would go on.
    """

    partition: int
    log_start: int
    log_end: int
    cleaned_to: int = 0
    segments: Sequence[SegmentEntry] = field(default_factory=tuple)


def adopt(
    topic: Topic, config: Mapping[str, str], partitions: Sequence[BrokerPartition]
) -> CommitBuilder:
    """Make a topic of all that a broker left of it; one that is there is a conflict."""

    def build(state: TopicState) -> Actions:
        if state.version >= 0:
            raise CommitConflictError(
                "another made the topic meanwhile; run it again, and see what is there"
            )
        return _actions(topic, config, partitions)

    return build


def import_partition(
    topic: Topic, config: Mapping[str, str], birth: int, partition: BrokerPartition
) -> CommitBuilder:
    """Put a partition that was copied into a topic that has nothing there yet, or make the topic.

    `birth` is that of the copies. Raises `CommitConflictError` where something is there.
    """

    def build(state: TopicState) -> Actions:
        commit_checks.check_base_version(state, birth)
        if not state.topic_id:
            return _actions(topic, config, [partition])
        if state.topic_id != topic.topic_id:
            raise CommitConflictError(
                f"the topic is another one: its id is {state.topic_id}, not {topic.topic_id}"
            )
        number = partition.partition
        if number >= state.partitions or state.log_end[number]:
            raise CommitConflictError(
                f"partition {number} was written to meanwhile, or taken in by another: run it "
                "again, and see what is there"
            )
        return _actions(None, {}, [partition])

    return build


def _actions(
    topic: Topic | None, config: Mapping[str, str], partitions: Sequence[BrokerPartition]
) -> Actions:
    ends = {one.partition: one.log_end for one in partitions if one.log_end}
    return Actions(
        add=tuple(entry for one in partitions for entry in one.segments),
        create_topic=topic,
        config=dict(config),
        log_start={one.partition: one.log_start for one in partitions if one.log_start},
        explicit_log_end={
            one.partition: one.log_end for one in partitions if one.log_end and not one.segments
        },
        cleaned_to={one.partition: one.cleaned_to for one in partitions if one.cleaned_to},
        asserted_log_end=ends,
    )
