"""Ways to pass over a commit that was lost at rest: section 3 of the protocol.

The rule: each is put in the place of klog's own way for the time of one run; `losses.py` has to see
what comes of it.
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
    """Read by number until one is absent, and list nothing."""

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
    """Replay a commit on top of another than the one that it was put on top of."""
    patch.setattr(Commit, "is_on_top_of", lambda commit, write_id: True)


def one_read_proves(patch: pytest.MonkeyPatch) -> None:
    """Take a commit for lost that one read has not found."""
    usual = read_listed

    def tail(store: ReadableStore, paths: TopicPaths, read: ReadCommit, *more: Any) -> Tail:
        absent: set[int] = set()

        def once(version: int) -> Commit | None:
            found = None if version in absent else read(version)
            if found is None:
                absent.add(version)
            return found

        return usual(store, paths, once, *more)

    patch.setattr(commit_log_reader, "read_listed", tail)


def lost_below_the_boundary(patch: pytest.MonkeyPatch) -> None:
    """Take a listed log's absent commit for lost, and do not ask for the boundary."""
    usual = read_listed

    def tail(store: ReadableStore, paths: TopicPaths, read: ReadCommit, *more: Any) -> Tail:
        found = usual(store, paths, read, *more)
        if found.lost_version is not None:
            raise LostCommitError(paths.commit(found.lost_version))
        return found

    patch.setattr(commit_log_reader, "read_listed", tail)


def own_state_no_evidence(patch: pytest.MonkeyPatch) -> None:
    """Load what is left, whatever this process has loaded before."""
    usual = CommitLogReader.load_cold

    def load_cold(log: CommitLogReader, known: TopicState | None) -> TopicState:
        return usual(log, None)

    patch.setattr(CommitLogReader, "load_cold", load_cold)
    patch.setattr(CommitLogReader, "_list_again", lambda log, cached: usual(log, None))


def known_write_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Go by the version alone of what this process has loaded before."""
    patch.setattr(commit_log_reader, "check_not_replaced", lambda paths, known, state: None)
