"""How far a topic's past reaches: for how long commits and removed segments stay.

The rule (docs/topics.md, The past): two configs of the topic, as of its last commit, each unless
the caller of a vacuum says another time. Commits, with the checkpoints that stand for expired ones,
are small and are the history of the topic. Removed segments are as large as what replaced them.
"""

from __future__ import annotations

from klog.connector.commit_log.topic_state import TopicState
from klog.logformat.topic_config import parse_topic_config
from klog.logformat.topic_config_defaults import (
    COMMIT_RETENTION_MS,
    REMOVED_FILE_RETENTION_MS,
)


def commit_retention_ms(state: TopicState, given_ms: int | None = None) -> int:
    """Return the age from which commits of a topic may expire.

    Args:
        state: The state of the topic.
        given_ms: What the caller of the expiration says; None to go by the topic's config.
    """
    return _retention_ms(state, COMMIT_RETENTION_MS) if given_ms is None else given_ms


def removed_file_retention_ms(state: TopicState, given_ms: int | None = None) -> int:
    """Return how long the files of removed segments stay for readers.

    Args:
        state: The state of the topic.
        given_ms: What the caller of the vacuum says; None to go by the topic's config.
    """
    return _retention_ms(state, REMOVED_FILE_RETENTION_MS) if given_ms is None else given_ms


def _retention_ms(state: TopicState, name: str) -> int:
    # Others are left out: a newer klog may have set some that this one does not know.
    config = {name: state.config[name]} if name in state.config else {}
    return parse_topic_config(config).number(name)
