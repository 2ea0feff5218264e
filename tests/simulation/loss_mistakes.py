"""Ways to miss a commit that was lost at rest: section 3 of the protocol.

The rule: each replaces klog's own code during a run, and `losses.py` must detect it.
"""

from __future__ import annotations

from typing import Any

import pytest

from klog.connector.commit_log import commit_log_reader
from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.commit_log_reader import CommitLogReader
from klog.connector.commit_log.commit_tail import ReadCommit, Tail, read_by_number, read_listed
from klog.connector.commit_log.lost_commit_errors import Evidence
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.readable_store import ReadableStore
from klog.errors import LostCommitError


def tail_ends_at_a_gap(patch: pytest.MonkeyPatch) -> None:
    """Read version by version until one is absent, and list nothing."""

    def tail(
        store: ReadableStore,
        paths: TopicPaths,
        read: ReadCommit,
        start: int,
        evidence: Evidence | None,
    ) -> Tail:
        return Tail(read_by_number(read, start))

    patch.setattr(commit_log_reader, "read_listed", tail)
    patch.setattr(CommitLogReader, "is_listing_due", lambda log, state: False)


def previous_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Replay a commit without checking which commit precedes it."""
    patch.setattr(Commit, "is_on_top_of", lambda commit, write_id: True)


def one_read_proves(patch: pytest.MonkeyPatch) -> None:
    """Take a commit for lost after a single read misses it."""
    usual = read_listed

    def tail(store: ReadableStore, paths: TopicPaths, read: ReadCommit, *more: Any) -> Tail:
        absent: set[int] = set()

        def once(version: int) -> Commit | None:
            commit = None if version in absent else read(version)
            if commit is None:
                absent.add(version)
            return commit

        return usual(store, paths, once, *more)

    patch.setattr(commit_log_reader, "read_listed", tail)


def lost_below_the_boundary(patch: pytest.MonkeyPatch) -> None:
    """Take an absent commit of a listed log for lost, even if it has expired."""
    usual = read_listed

    def tail(store: ReadableStore, paths: TopicPaths, read: ReadCommit, *more: Any) -> Tail:
        result = usual(store, paths, read, *more)
        if result.lost_version is not None:
            raise LostCommitError(paths.commit(result.lost_version))
        return result

    patch.setattr(commit_log_reader, "read_listed", tail)


def own_state_no_evidence(patch: pytest.MonkeyPatch) -> None:
    """Load the remaining commits, whatever this process has loaded before."""
    usual = CommitLogReader.load_cold

    def load_cold(log: CommitLogReader, known: TopicState | None) -> TopicState:
        return usual(log, None)

    patch.setattr(CommitLogReader, "load_cold", load_cold)
    patch.setattr(CommitLogReader, "_list_again", lambda log, cached: usual(log, None))


def known_write_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Compare only the version with the state that this process loaded before."""
    patch.setattr(commit_log_reader, "check_not_replaced", lambda paths, known, state: None)
