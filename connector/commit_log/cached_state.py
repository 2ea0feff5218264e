"""Compare the state that a process has cached with the log that it loads now.

The rule (docs/commit-protocol.md, Lost commits): the last commit of a state that a process has
loaded is a fact about the log. If the log has another write at this version, the commit was lost
and another was put in its place. The log is another one, and the state says nothing about it, only
if it has another topic id and no write in common: its folder was deleted and created again by hand.
If klog deletes a topic and creates it again, the topic stays in its log with all its writes.
"""

from __future__ import annotations

from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.lost_commit_errors import replaced_commit_error
from klog.connector.commit_log.topic_state import TopicState


def is_of_another_log(cached: TopicState, state: TopicState) -> bool:
    """Return whether a log that has commits is not the one of the cached state.

    Args:
        cached: The state that the process has loaded before.
        state: The state of the log now.
    """
    if state.version < 0 or cached.version < 0:
        return False
    if cached.topic_id and cached.topic_id == state.topic_id:
        return False
    return cached.writes.keys().isdisjoint(state.writes.keys())


def check_not_replaced(paths: TopicPaths, cached: TopicState, state: TopicState) -> None:
    """Refuse a log that lacks the last commit of a cached state.

    A log that no longer remembers the write is not refused.

    Args:
        paths: The paths of the log.
        cached: The state that the process has loaded before.
        state: The state of the log now, at or above that version.

    Raises:
        ForkedCommitError: Another commit is in the place of the cached one.
    """
    version = cached.version
    if version < 0 or state.writes.get(cached.last_write_id) == version:
        return
    if not state.remembers(version) or is_of_another_log(cached, state):
        return
    write_id = next((key for key, value in state.writes.items() if value == version), "none")
    raise replaced_commit_error(paths.commit(version), version, write_id, cached.last_write_id)
