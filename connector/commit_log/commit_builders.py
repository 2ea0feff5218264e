"""The commit of each operation on top of a state, and the states that refuse it.

The rule (docs/commit-protocol.md, Commit): each function returns the `build` of one commit. It is
called again for each state that others' commits lead to, so it decides by that state alone: an
append gets the log ends of that state, a rewrite checks that its inputs are still live, and a named
write checks whether it has been committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from klog.connector import arrow_compute as pc
from klog.connector.commit_log import commit_checks, segment_entries
from klog.connector.commit_log.commit import Actions, Topic
from klog.connector.commit_log.commit_checks import amount_of
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError


def create_topic(topic: Topic, config: Mapping[str, str]) -> CommitBuilder:
    """Return the builder of a commit that creates a topic.

    Args:
        topic: The topic.
        config: Its configs, as text.

    Returns:
        The builder. It raises `CommitConflictError` if the topic exists.
    """

    def build(state: TopicState) -> Actions:
        if state.topic_id:
            raise CommitConflictError(
                f"the topic already exists, with id {state.topic_id}. Give another name, or "
                "alter this one"
            )
        return Actions(create_topic=topic, config=dict(config))

    return build


def delete_topic(topic_id: str) -> CommitBuilder:
    """Return the builder of a commit that deletes a topic.

    Args:
        topic_id: The id of the topic. A topic that was created again under the name is not deleted.

    Returns:
        The builder. It makes no commit if the topic is not there any more.
    """

    def build(state: TopicState) -> Actions | None:
        if state.topic_id != topic_id:
            return None
        return Actions(delete_topic=True, removed=amount_of(state.segments))

    return build


def alter_config(
    topic_id: str, base_config: Mapping[str, str], config: Mapping[str, str | None]
) -> CommitBuilder:
    """Return the builder of a commit that sets and unsets configs.

    Args:
        topic_id: The id of the topic.
        base_config: The configs of the topic as of the state that the change was planned on.
        config: The new value of each config; None unsets it.

    Returns:
        The builder. It raises `CommitConflictError` if one of these configs was changed meanwhile.
    """

    def build(state: TopicState) -> Actions:
        commit_checks.check_same_topic(state, topic_id)
        for name in config:
            if state.config.get(name) != base_config.get(name):
                raise CommitConflictError(
                    f"config {name} was changed meanwhile; check it, then try again"
                )
        return Actions(config=dict(config))

    return build


def add_partitions(topic_id: str, partitions: int) -> CommitBuilder:
    """Return the builder of a commit that adds partitions to a topic.

    Args:
        topic_id: The id of the topic.
        partitions: The new number of partitions.

    Returns:
        The builder. It raises `CommitConflictError` if the topic has as many or more.
    """

    def build(state: TopicState) -> Actions:
        commit_checks.check_same_topic(state, topic_id)
        if partitions <= state.partitions:
            raise CommitConflictError(
                f"the topic has {state.partitions} partitions, which cannot become {partitions}. "
                "Give a higher number"
            )
        return Actions(partitions=partitions)

    return build


def delete_records(
    topic_id: str, log_start: Mapping[int, int], base_version: int | None = None
) -> CommitBuilder:
    """Return the builder of a commit that raises log starts and removes the segments before them.

    Args:
        topic_id: The id of the topic.
        log_start: The new log start by partition. An offset after the log end means the log end.
        base_version: The version of the log that the offsets were chosen by: after a restore since
            then they are refused. None if they hold for any.

    Returns:
        The builder. It makes no commit if each log start is that high already.
    """

    def build(state: TopicState) -> Actions | None:
        commit_checks.check_same_topic(state, topic_id)
        if base_version is not None:
            commit_checks.check_not_restored(state, base_version)
        starts = {}
        for partition, offset in log_start.items():
            if partition >= state.partitions:
                raise CommitConflictError(
                    f"partition {partition} does not exist. Give one from 0 to "
                    f"{state.partitions - 1}"
                )
            start = min(offset, state.log_end[partition])
            if start > state.log_start[partition]:
                starts[partition] = start
        if not starts:
            return None
        remove: list[str] = []
        for partition, start in starts.items():
            segments = segment_entries.rows_of_partition(state.segments, partition)
            remove += segments.filter(pc.less_equal(segments["next_offset"], start))[
                "file"
            ].to_pylist()
        _, removed = segment_entries.split_by_files(state.segments, remove)
        return Actions(log_start=starts, remove=tuple(remove), removed=amount_of(removed))

    return build


def set_vacuum_version(vacuum_version: int, purge: Sequence[str]) -> CommitBuilder:
    """Return the builder of a commit that allows vacuum to delete files without a commit.

    Args:
        vacuum_version: The new vacuum version. Files of a lower base version may be deleted if no
            commit names them.
        purge: Removed segments whose files are gone.
    """

    def build(state: TopicState) -> Actions | None:
        if vacuum_version <= state.vacuum_version and not purge:
            return None
        _, purged_rows = segment_entries.split_by_files(state.removed, purge)
        return Actions(
            vacuum_version=max(vacuum_version, state.vacuum_version),
            purge=tuple(purged_rows["file"].to_pylist()),
        )

    return build


CommitBuilder = Callable[[TopicState], Actions | None]
"""Returns the actions of a commit on top of a state; None if they have been committed.

It raises an error, which ends the commit, if the state refuses it.
"""
