"""Which states refuse a commit, whatever its operation.

The rule (docs/commit-protocol.md, Commit): a commit is built again on each state that it may land
on, so each builder makes these checks on that state alone.
"""

from __future__ import annotations

import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.commit import Amount
from klog.connector.commit_log.past_restores import last_restore
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError, LostCommitError


def check_same_topic(state: TopicState, topic_id: str) -> None:
    """Refuse a topic that was deleted, or deleted and created again, since the work began.

    Args:
        state: The state that the commit is to land on.
        topic_id: The id of the topic that the work was planned on.

    Raises:
        CommitConflictError: The state has another topic id, or none.
    """
    if not state.topic_id:
        raise CommitConflictError(
            "the topic was deleted meanwhile; create it again if it is needed, then run this again"
        )
    if state.topic_id != topic_id:
        raise CommitConflictError(
            "the topic was deleted and created again meanwhile: its id is "
            f"{state.topic_id}, not {topic_id}. Look at the new one, then run this again"
        )


def check_base_version(state: TopicState, base_version: int) -> None:
    """Refuse files that vacuum may have taken for orphans, and a log that has lost its end.

    Args:
        state: The state that the commit is to land on.
        base_version: The version of the log that the files were planned on.

    Raises:
        CommitConflictError: Vacuum may have deleted the files.
        LostCommitError: The log ends before `base_version`.
    """
    if base_version > max(state.version, 0):
        raise LostCommitError(
            f"this write began at version {base_version}, and the log ends at version "
            f"{state.version}: its last commits are lost. Restore them from a copy, then write "
            "again"
        )
    if base_version < state.vacuum_version:
        raise CommitConflictError(
            f"this write began at version {base_version}, and vacuum has deleted what was not "
            f"committed before version {state.vacuum_version}: write again, in less time than "
            "vacuum's grace"
        )


def check_not_restored(state: TopicState, base_version: int) -> None:
    """Refuse work that was planned on records that a restore has changed since.

    A compaction may have dropped records for later ones that are gone now, and a retention may
    have counted bytes that are.

    Args:
        state: The state that the commit is to land on.
        base_version: The version of the log that the work was planned on.

    Raises:
        CommitConflictError: A commit after that version has restored an earlier one.
    """
    if (restore := last_restore(state.restores)) > base_version:
        raise CommitConflictError(
            f"commit {restore} has restored an earlier version since this began at version "
            f"{base_version}; run it again on what is there now"
        )


def amount_of(segments: pa.Table) -> Amount | None:
    """Return the records and bytes of segments; None if there are no segments.

    Args:
        segments: A table of `segment_entries.SCHEMA`.
    """
    if not segments.num_rows:
        return None
    return Amount(*(pc.sum(segments[name]).as_py() for name in ("record_count", "size_bytes")))
