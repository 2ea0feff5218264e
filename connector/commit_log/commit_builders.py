"""What each operation commits on top of a state, and what of a state forbids it.

The rule (docs/commit-protocol.md, 4): each function makes the `build` of one commit. It is called
anew for each state that others' commits lead to, so it decides by that state alone: an append gets
the offsets of the moment, a rewrite asks whether its inputs are still what they were, a named write
whether it is there already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow.compute as pc

from klog.connector.commit_log import commit_checks, segment_entries
from klog.connector.commit_log.commit import Actions, Topic
from klog.connector.commit_log.commit_checks import amount_of
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError


def create_topic(topic: Topic, config: Mapping[str, str]) -> CommitBuilder:
    """Make the topic; one that is there is a `CommitConflictError`."""

    def build(state: TopicState) -> Actions:
        if state.topic_id:
            raise CommitConflictError(f"the topic already exists, with id {state.topic_id}")
        return Actions(create_topic=topic, config=dict(config))

    return build


def delete_topic(topic_id: str) -> CommitBuilder:
    """Delete this topic, not one that was made anew under its name."""

    def build(state: TopicState) -> Actions | None:
        if state.topic_id != topic_id:
            return None
        return Actions(delete_topic=True, removed=amount_of(state.segments))

    return build


def alter_config(
    topic_id: str, seen: Mapping[str, str], config: Mapping[str, str | None]
) -> CommitBuilder:
    """Set and unset configs that still have the values `seen`."""

    def build(state: TopicState) -> Actions:
        commit_checks.check_same_topic(state, topic_id)
        for name in config:
            if state.config.get(name) != seen.get(name):
                raise CommitConflictError(f"config {name} was changed meanwhile; look at it again")
        return Actions(config=dict(config))

    return build


def add_partitions(topic_id: str, partitions: int) -> CommitBuilder:
    """Give the topic more partitions."""

    def build(state: TopicState) -> Actions:
        commit_checks.check_same_topic(state, topic_id)
        if partitions <= state.partitions:
            raise CommitConflictError(
                f"the topic has {state.partitions} partitions, which cannot become {partitions}"
            )
        return Actions(partitions=partitions)

    return build


def delete_records(topic_id: str, log_start: Mapping[int, int]) -> CommitBuilder:
    """Begin partitions at higher offsets, and take out the segments that lie wholly below.

    An offset above the log's end means its end. Nothing left to do is nothing committed.
    """

    def build(state: TopicState) -> Actions | None:
        commit_checks.check_same_topic(state, topic_id)
        starts = {}
        for partition, offset in log_start.items():
            if partition >= state.partitions:
                raise CommitConflictError(f"there is no partition {partition}")
            start = min(offset, state.log_end[partition])
            if start > state.log_start[partition]:
                starts[partition] = start
        if not starts:
            return None
        remove: list[str] = []
        for partition, start in starts.items():
            own = segment_entries.rows_of_partition(state.segments, partition)
            remove += own.filter(pc.less_equal(own["next_offset"], start))["file"].to_pylist()
        _, found = segment_entries.split_by_files(state.segments, remove)
        return Actions(log_start=starts, remove=tuple(remove), removed=amount_of(found))

    return build


def set_vacuum_version(horizon: int, forget: Sequence[str]) -> CommitBuilder:
    """Say that files born before `horizon` may go if no commit names them (vacuum)."""

    def build(state: TopicState) -> Actions | None:
        if horizon <= state.vacuum_version and not forget:
            return None
        _, known = segment_entries.split_by_files(state.removed, forget)
        return Actions(
            vacuum_version=max(horizon, state.vacuum_version),
            purge=tuple(known["file"].to_pylist()),
        )

    return build


CommitBuilder = Callable[[TopicState], Actions | None]
"""Makes the actions of a commit on top of a state; None: what it would do is done already.

Raises what ends the commit: it would not be right on top of this state.
"""
