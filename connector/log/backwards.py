"""A topic's commits, newest first.

The rule (docs/commit-protocol.md, Lost commits): the commits end where they were cleaned, at or
below the boundary. Above it a commit that is absent, or that is another write than the state or the
commit above says, is an error: it was lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from klog.connector.log.commit import Commit
from klog.connector.log.log_reader import LogReader
from klog.connector.log.loss_errors import (
    Evidence,
    ForkedCommit,
    forked_commit_error,
    lost_commit_error,
)
from klog.connector.log.state import State
from klog.errors import LostCommitError


def read_backwards(log: LogReader, state: State) -> Iterator[Commit]:
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
            if log.boundary() >= version:
                return
            raise _lost_error(log, version, commit, expected, above)
        yield commit
        above = commit


def _lost_error(
    log: LogReader,
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
