"""When a checkpoint is due."""

from __future__ import annotations

from klog.connector.commit_log.topic_state import TopicState

MIN_COMMITS = 100
TAIL_SHARE = 10
"""A tail of one part in so many of a checkpoint's size is too long."""


def is_checkpoint_due(state: TopicState) -> bool:
    """Tell whether the tail that led to a state has become too long."""
    newest = state.checkpoint
    version, size_bytes = (-1, 0) if newest is None else (newest.version, newest.size_bytes)
    return state.version - version >= MIN_COMMITS and state.tail_bytes * TAIL_SHARE >= size_bytes
