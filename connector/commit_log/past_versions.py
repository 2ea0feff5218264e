"""A topic as one of its earlier commits left it.

The rule (docs/commit-protocol.md, The past): the state of version V is that of the newest complete
checkpoint at or below V, and of the commits after it up to V. The last expired version is read
after them: a version can be loaded if none of these commits is at or below it. As the last expired
version is that of a complete checkpoint, which is kept, every version from it on can be loaded. A
root of klog 0.2 may have a last expired version without a checkpoint: there the first complete
checkpoint above it is the oldest version.
"""

from __future__ import annotations

from klog.connector.commit_log.checkpoint_store import oldest_complete_checkpoint
from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_reader import MAX_LOADS
from klog.connector.commit_log.commit_tail import Tail, read_up_to
from klog.connector.commit_log.lost_commit_errors import (
    Evidence,
    ForkedCommit,
    forked_commit_error,
    lost_commit_error,
)
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import KlogError, OptionError
from klog.text_output import time_text


def load_version(log: CommitLog, version: int, current: TopicState) -> TopicState:
    """Load the state of a topic as of a version.

    Without parts of checkpoints, a cold load costs two listings and one read besides the commits
    that it reads. The state is for reading: no commit may be put on top of it.

    Args:
        log: The log of the topic.
        version: The version.
        current: The state of the topic that was just loaded. It may be that of a deleted topic.

    Returns:
        The state, whose version is `version`.

    Raises:
        OptionError: The version never existed or has expired, or the topic did not exist then or
            was another one.
        LostCommitError: A commit that the state needs is lost.
        KlogError: A commit or a checkpoint is damaged. The error names the file.
    """
    if not 0 <= version <= current.version:
        raise OptionError(
            f"topic {log.paths.topic} has no version {version}: {_existing(log, current)}"
        )
    state = current if version == current.version else _load(log, version, current)
    if not state.topic_id:
        raise OptionError(
            f"topic {log.paths.topic} does not exist in version {version}, which deleted it, or "
            "another one before it did. Give an earlier or a later version; "
            f"{_history_hint(log)}"
        )
    if current.topic_id and state.topic_id != current.topic_id:
        raise OptionError(
            f"topic {log.paths.topic} was deleted and created again after version {version}, which "
            f"is of the earlier topic with id {state.topic_id}. Give a later version; "
            f"{_history_hint(log)}"
        )
    return state


def oldest_version(log: CommitLog, current: TopicState) -> int:
    """Return the version from which on every version of a topic's log can be loaded.

    Args:
        log: The log of the topic.
        current: The state of the topic that was just loaded.
    """
    last_expired = log.last_expired_version()
    if last_expired < 0:
        return 0
    name = oldest_complete_checkpoint(log, last_expired)
    return current.version if name is None else min(name.version, current.version)


def version_at(log: CommitLog, timestamp_ms: int, current: TopicState) -> int:
    """Return the last version that was committed at or before a time, found by bisection.

    Args:
        log: The log of the topic.
        timestamp_ms: The time, in ms since the epoch.
        current: The state of the topic that was just loaded.

    Raises:
        OptionError: The first commit is later than the time, or those before it have expired.
        LostCommitError: A commit whose time is needed is lost.
    """
    if current.timestamp_ms <= timestamp_ms:
        return current.version
    last_expired = low = log.last_expired_version()
    high, high_ms = current.version, current.timestamp_ms
    while high - low > 1:
        middle = (low + high) // 2
        commit = log.read_without_sidecar(middle) or log.read_without_sidecar(middle)
        if commit is None:
            last_expired = low = log.last_expired_version()
            if low < middle:
                _refuse_lost(log, Tail([], middle), current)
        elif commit.timestamp_ms <= timestamp_ms:
            low = middle
        else:
            high, high_ms = middle, commit.timestamp_ms
    if low > last_expired:
        return low
    checkpoint = log.newest_checkpoint(last_expired) if last_expired >= 0 else None
    if checkpoint is not None and checkpoint.version == last_expired:
        high, high_ms = last_expired, checkpoint.timestamp_ms
        if high_ms <= timestamp_ms:
            return last_expired
    raise OptionError(
        f"topic {log.paths.topic} has no version at {time_text(timestamp_ms)}: "
        f"{_existing(log, current)}. Version {high} is of {time_text(high_ms)}"
    )


def _load(log: CommitLog, version: int, current: TopicState) -> TopicState:
    """Load the state of a version below the current one."""
    seen_expired = -1
    for _ in range(MAX_LOADS):
        state = log.newest_checkpoint(version)
        tail = read_up_to(log.store, log.read, state.version + 1, Evidence(version, ""))
        # After the commits: one that was read, or was missing, may have expired.
        last_expired = log.last_expired_version()
        if state.version < version and last_expired > state.version:
            if seen_expired == last_expired or last_expired > version:
                raise _expired_error(log, version, current)
            # A checkpoint may have been deleted after it was listed: a newer one replaces it.
            seen_expired = last_expired
            continue
        _refuse_lost(log, tail, current)
        state = log.replay_tail(state, tail.commits) if tail.commits else state
        _check_write(log, state, tail.commits, current)
        return state
    raise KlogError(
        f"{log.paths.directory}: version {version} could not be loaded, because commits expired "
        "meanwhile. Try again"
    )


def _refuse_lost(log: CommitLog, tail: Tail, current: TopicState) -> None:
    """Raise `LostCommitError` if the commits end before the version."""
    if tail.lost_version is None:
        return
    version, path = current.version, log.paths.commit(current.version)
    if current.checkpoint is not None and current.checkpoint.version >= tail.lost_version:
        version, path = current.checkpoint.version, log.paths.checkpoint(current.checkpoint)
    raise lost_commit_error(log.paths, tail.lost_version, Evidence(version, path))


def _check_write(
    log: CommitLog, state: TopicState, commits: list[Commit], current: TopicState
) -> None:
    """Refuse a state whose last commit is not the one that the current state remembers.

    Raises:
        ForkedCommitError: Another commit is in its place.
        KlogError: The state is that of a checkpoint of another log.
    """
    version = state.version
    if current.writes.get(state.last_write_id) == version or not current.remembers(version):
        return
    if not commits:
        assert state.checkpoint is not None  # No other state is loaded without a commit.
        raise KlogError(
            f"{log.paths.checkpoint(state.checkpoint)}: this checkpoint is not one of these "
            "commits, though its version is. Move it away; `klog verify` checks the log"
        )
    write_id = next((key for key, value in current.writes.items() if value == version), "none")
    raise forked_commit_error(
        ForkedCommit(log.paths.commit(version), commits[-1], write_id, log.paths.checkpoints)
    )


def _expired_error(log: CommitLog, version: int, current: TopicState) -> OptionError:
    return OptionError(
        f"version {version} of topic {log.paths.topic} has expired: {_existing(log, current)}"
    )


def _existing(log: CommitLog, current: TopicState) -> str:
    """Return the versions that can be loaded, and what to do, for the end of an error."""
    if current.version < 0:
        return "it has no commits. `klog topics list` names the topics"
    oldest = oldest_version(log, current)
    if oldest == current.version:
        return f"the only one that can be loaded is {oldest}, its last. Give that one"
    return (
        f"those that can be loaded are {oldest} to {current.version}. Give one of them; "
        f"{_history_hint(log)}"
    )


def _history_hint(log: CommitLog) -> str:
    return f"`klog history --topic {log.paths.topic}` shows them"
