"""When a checkpoint is due.

The rule: when the tail after the newest checkpoint has 100 commits and a tenth of its size,
whichever comes last. Sizes are bytes on the store: those of the commits with their sidecars, and
those of the checkpoint's own file, which is written in full each time. Its parts are written again
only if they have changed. So a load reads a bounded tail, and checkpoints write at most about ten
times what commits write.
"""

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
