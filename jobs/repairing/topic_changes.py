"""What lost commits did to the topic itself: made it, deleted it, gave it more partitions.

The rule: later commits show that it was done, and only the user knows what exactly was said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from klog.connector.log.author import NewId
from klog.connector.log.commit import Actions, Commit, Topic
from klog.connector.log.state import State
from klog.errors import KlogError
from klog.jobs.repairing.filling import Choices, shown_ends
from klog.logformat.topic_config import klog_topic_config

NEW_ID = "new"
"""What is given for a topic id that nobody knows any more."""
NEVER_EXPIRES = {"retention.ms": "-1"}
"""The config of a topic whose own is lost: nothing goes until its owner says what may."""


def topic_actions(
    state: State, choices: Choices, later: Sequence[Commit], used: int, new_id: NewId
) -> Actions:
    """Return what the first lost commit of a range says of the topic.

    `state` is that before the loss, `later` are the commits after it, and `used` is how many
    partitions the segments need that the user named. Raises `KlogError` where the user has to say.
    """
    needs_topic = _needs_topic(later)
    least = max([used, *(partition + 1 for partition in shown_ends(later))])
    if state.topic_id:
        makes_topic = any(commit.actions.create_topic is not None for commit in later)
        is_made_again = makes_topic and not needs_topic
        return Actions(delete_topic=True) if is_made_again else _partitions(state, choices, least)
    if state.version >= 0 and not needs_topic:
        return Actions()
    return _new_topic(choices, max(least, 1), new_id)


def _new_topic(choices: Choices, least: int, new_id: NewId) -> Actions:
    """Return what makes the topic, as the user knows it."""
    if not choices.topic_id or choices.partitions < least:
        raise KlogError(
            "the commit that made the topic is lost, and no complete checkpoint stands for it. "
            f"Restore it from a copy, or give --partitions (at least {least}) and --topic-id, or "
            f"--topic-id {NEW_ID} if nobody knows it"
        )
    topic_id = new_id() if choices.topic_id == NEW_ID else choices.topic_id
    return Actions(
        create_topic=Topic(topic_id, choices.partitions),
        config=NEVER_EXPIRES | klog_topic_config(choices.config),
    )


def _partitions(state: State, choices: Choices, least: int) -> Actions:
    """Return what gives the topic more partitions, if a lost commit did."""
    if least > max(state.partitions, choices.partitions):
        raise KlogError(
            f"a lost commit gave the topic more partitions than {state.partitions}. Give "
            f"--partitions, at least {least}"
        )
    if choices.partitions <= state.partitions:
        return Actions()
    return Actions(partitions=choices.partitions)


def _needs_topic(commits: Iterable[Commit]) -> bool:
    """Return whether commits are on a topic that none of them makes; a vacuum needs none."""
    for commit in commits:
        actions = commit.actions
        if actions.create_topic is not None:
            return False
        if actions != Actions(horizon=actions.horizon, forget=actions.forget):
            return True
    return False
