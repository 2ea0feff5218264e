"""A topic's commits, newest first.

The rule (docs/commit-protocol.md, Lost commits): the commits end where they were cleaned, at or
below the boundary. Above it a commit that is absent, or that is another write than the state or the
commit above says, is an error: it was lost.
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
    """Read the commits from a state's own down to version 0, or to the first one that was cleaned.

    Raises `LostCommitError` for a commit that is lost.
    """
    write_ids = {version: write_id for write_id, version in state.writes.items()}
    above: Commit | None = None
    for version in range(state.version, -1, -1):
        commit = log.read(version) or log.read(version)
        expected = None if above is None else above.previous_write_id
        expected = write_ids.get(version, expected)
        if commit is None or expected not in (None, commit.write_id):
            # At or below the boundary it was cleaned, maybe just now.
            if log.last_expired_version() >= version:
                return
            raise _lost_error(log, version, commit, expected, above)
        yield commit
        above = commit


def _lost_error(
    log: CommitLogReader,
    version: int,
    commit: Commit | None,
    expected_write_id: str | None,
    above: Commit | None,
) -> LostCommitError:
    source = log.paths.checkpoints if above is None else log.paths.commit(version + 1)
    if commit is None or expected_write_id is None:
        evidence = Evidence(version if above is None else version + 1, source)
        return lost_commit_error(log.paths, version, evidence)
    path = log.paths.commit(version)
    return forked_commit_error(ForkedCommit(path, commit, expected_write_id, source))


def version_at_time(log: CommitLog, state: TopicState, timestamp_ms: int) -> int:
    """Give the last version that is known to be committed at or before a time; -1 if none is.

    By bisection. Commits that were cleaned have no time any more, and may be young: a log may keep
    less than the grace.
    """
    low, high, known = log.last_expired_version(), state.version, -1
    if state.timestamp_ms <= timestamp_ms:
        return high
    while low < high - 1:
        middle = (low + high) // 2
        found = log.read_without_sidecar(middle)
        if found is None:
            low = middle  # Cleaned meanwhile: it is older than those left.
        elif found.timestamp_ms <= timestamp_ms:
            low = known = middle
        else:
            high = middle
    return known
