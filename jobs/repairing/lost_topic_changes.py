"""What lost commits did to the topic itself: created it, deleted it, gave it more partitions.

The rule: later commits show that it was done, but only the user knows with which values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from klog.connector.commit_log.commit import Actions, Commit, Topic
from klog.connector.commit_log.commit_info import NewId
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import KlogError
from klog.jobs.repairing.missing_offsets import shown_log_ends
from klog.jobs.repairing.new_topic_id import NEW_ID
from klog.jobs.repairing.repair_choices import RepairChoices
from klog.logformat.topic_config import normalize_topic_config

NEVER_EXPIRES = {"retention.ms": "-1"}
"""The config of a topic whose own is lost: nothing expires until its owner sets another."""


def topic_actions(
    state: TopicState,
    choices: RepairChoices,
    later: Sequence[Commit],
    named_partitions: int,
    new_id: NewId,
) -> Actions:
    """Return what the first lost commit of a range did to the topic.

    Args:
        state: The state before the loss.
        choices: What the user knows.
        later: The commits after the lost ones.
        named_partitions: How many partitions the segments need that the user named.
        new_id: Makes a topic id.

    Raises:
        KlogError: The user must give a value.
    """
    needs_topic = _needs_topic(later)
    shown_partitions = [partition + 1 for partition in shown_log_ends(later)]
    min_partitions = max([named_partitions, *shown_partitions])
    if state.topic_id:
        creates_topic = any(commit.actions.created_topic is not None for commit in later)
        if creates_topic and not needs_topic:
            return Actions(delete_topic=True)
        return _added_partitions(state, choices, min_partitions)
    if state.version >= 0 and not needs_topic:
        return Actions()
    return _created_topic(choices, max(min_partitions, 1), new_id)


def _created_topic(choices: RepairChoices, min_partitions: int, new_id: NewId) -> Actions:
    """Return what creates the topic as the user knows it."""
    if not choices.topic_id or choices.partitions < min_partitions:
        raise KlogError(
            "the commit that made the topic is lost, and no complete checkpoint stands for it. "
            f"Restore it from a copy, or give --partitions (at least {min_partitions}) and "
            f"--topic-id, or --topic-id {NEW_ID} if nobody knows it"
        )
    topic_id = new_id() if choices.topic_id == NEW_ID else choices.topic_id
    return Actions(
        create_topic=Topic(topic_id, choices.partitions),
        config=NEVER_EXPIRES | normalize_topic_config(choices.config),
    )


def _added_partitions(state: TopicState, choices: RepairChoices, min_partitions: int) -> Actions:
    """Return what gives the topic more partitions, if a lost commit did."""
    if min_partitions > max(state.partitions, choices.partitions):
        raise KlogError(
            f"a lost commit gave the topic more partitions than {state.partitions}. Give "
            f"--partitions, at least {min_partitions}"
        )
    if choices.partitions <= state.partitions:
        return Actions()
    return Actions(partitions=choices.partitions)


def _needs_topic(commits: Iterable[Commit]) -> bool:
    """Return whether commits need a topic that they do not create; a vacuum needs none."""
    for commit in commits:
        actions = commit.actions
        if actions.created_topic is not None:
            return False
        if actions != Actions(vacuum_version=actions.vacuum_version, purge=actions.purge):
            return True
    return False
