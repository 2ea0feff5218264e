"""When a checkpoint is due."""

from __future__ import annotations

from klog.connector.commit_log.topic_state import TopicState

MIN_COMMITS = 100
TAIL_SHARE = 10
"""A tail is too long if so many times its size is the size of the checkpoint."""


def is_checkpoint_due(state: TopicState) -> bool:
    """Return whether the tail of commits after the newest checkpoint has become too long.

    Args:
        state: The state, which knows the newest checkpoint and the size of the tail.
    """
    newest = state.checkpoint
    version, size_bytes = (-1, 0) if newest is None else (newest.version, newest.size_bytes)
    return state.version - version >= MIN_COMMITS and state.tail_bytes * TAIL_SHARE >= size_bytes
