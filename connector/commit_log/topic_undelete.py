"""Bring a deleted topic back: find its deletion, load the state before it, and commit it again.

The rule (docs/commit-protocol.md, Undelete): the commits are read from the last one down to the
deletion. If another commit comes meanwhile, all of it is done again: it may have created the topic,
or have raised the vacuum version.
"""

from __future__ import annotations

from klog.connector.commit_log.commit import UNDELETE
from klog.connector.commit_log.commit_history import read_newest_first
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.past_versions import load_version
from klog.connector.commit_log.topic_restore import existing_segments
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.commit_log.undelete_commit import StaleDeletionError, undelete_topic
from klog.errors import CommitConflictError, OptionError, with_context

MAX_TRIES = 10


def undelete_log(
    log: CommitLog, state: TopicState, commit_info: CommitInfo | None = None
) -> TopicState:
    """Bring the topic of a log back.

    Args:
        log: The log.
        state: The state of the log that was just loaded.
        commit_info: The write id, operation and engine of the commit; None for new ones.

    Returns:
        The state of the topic.

    Raises:
        OptionError: The topic exists, or its deletion has expired.
        CommitConflictError: Vacuum has deleted a segment, or others committed again and again.
    """
    info = commit_info or CommitInfo(random_uuid(), UNDELETE, this_engine())
    for _ in range(MAX_TRIES):
        target = load_version(log, _deletion(log, state) - 1, state)
        build = undelete_topic(target, state, existing_segments(log, target, state))
        try:
            return log.commit(state, build, info)
        except StaleDeletionError:
            state = log.load()
            if info.write_id in state.writes:
                return state
        except CommitConflictError as exc:
            raise with_context(exc, f"topic {log.paths.topic}: {exc}") from exc
    raise CommitConflictError(
        f"topic {log.paths.topic}: others committed {MAX_TRIES} times before it could be brought "
        "back; run this again when nothing else works on the topic"
    )


def _deletion(log: CommitLog, state: TopicState) -> int:
    """Return the version of the commit that deleted the topic."""
    topic = log.paths.topic
    if state.topic_id:
        raise OptionError(
            f"topic {topic} exists, with id {state.topic_id}: only a topic that is deleted can be "
            "brought back. An earlier topic of the same name does not come back once another one "
            "was created"
        )
    version = state.version + 1
    for commit in read_newest_first(log, state):
        version = commit.version
        if commit.actions.delete_topic:
            return version
    raise OptionError(
        f"topic {topic} was deleted before version {version}, and the commits before that version "
        "have expired: it cannot be brought back. `klog topics create` creates a new one"
    )
