"""A topic's commits, newest first.

The rule (docs/commit-protocol.md, Lost commits): the commits end where they expired, at or below
the last expired version. Above it a commit that is missing, or that is another write than the state
or the next commit says, is an error: it was lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_reader import CommitLogReader
from klog.connector.commit_log.lost_commit_errors import (
    Evidence,
    ForkedCommit,
    forked_commit_error,
    lost_commit_error,
)
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import LostCommitError


def read_newest_first(log: CommitLogReader, state: TopicState) -> Iterator[Commit]:
    """Read the commits from a state's own down to version 0, or to the first one that has expired.

    Args:
        log: The log of the topic.
        state: The state to start at.

    Yields:
        The commits, each with its sidecar.

    Raises:
        LostCommitError: A commit is lost.
    """
    write_ids = {version: write_id for write_id, version in state.writes.items()}
    next_commit: Commit | None = None
    for version in range(state.version, -1, -1):
        commit = log.read(version) or log.read(version)
        expected = None if next_commit is None else next_commit.previous_write_id
        expected = write_ids.get(version, expected)
        if commit is None or expected not in (None, commit.write_id):
            # At or below the last expired version it has expired, maybe just now.
            if log.last_expired_version() >= version:
                return
            raise _lost_error(log, version, commit, expected, next_commit)
        yield commit
        next_commit = commit


def _lost_error(
    log: CommitLogReader,
    version: int,
    commit: Commit | None,
    expected_write_id: str | None,
    next_commit: Commit | None,
) -> LostCommitError:
    source = log.paths.checkpoints if next_commit is None else log.paths.commit(version + 1)
    if commit is None or expected_write_id is None:
        evidence = Evidence(version if next_commit is None else version + 1, source)
        return lost_commit_error(log.paths, version, evidence)
    path = log.paths.commit(version)
    return forked_commit_error(ForkedCommit(path, commit, expected_write_id, source))


def version_at_time(log: CommitLog, state: TopicState, timestamp_ms: int) -> int:
    """Return the last version that is known to be committed at or before a time.

    Commits that have expired have no time any more, and may be young: a log may be kept for less
    than the grace.

    Args:
        log: The log of the topic.
        state: The state of the topic.
        timestamp_ms: The time.

    Returns:
        The version; -1 if none is known. It is found by bisection.
    """
    low, high, committed_version = log.last_expired_version(), state.version, -1
    if state.timestamp_ms <= timestamp_ms:
        return high
    while low < high - 1:
        middle = (low + high) // 2
        commit = log.read_without_sidecar(middle)
        if commit is None:
            low = middle  # It expired meanwhile: it is older than the rest.
        elif commit.timestamp_ms <= timestamp_ms:
            low = committed_version = middle
        else:
            high = middle
    return committed_version
