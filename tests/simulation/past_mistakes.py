"""Mistakes with the last expired version and its checkpoint, which the past depends on."""

from __future__ import annotations

import pytest

from klog.connector.commit_log import commit_expiration, past_versions
from klog.connector.commit_log.checkpoint_store import complete_checkpoints, retained_parts
from klog.connector.commit_log.commit_history import version_at_time
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.writable_store import PutResult


def boundary_past_a_checkpoint(patch: pytest.MonkeyPatch) -> None:
    """Raise the last expired version to one without a checkpoint, as klog 0.2 did."""

    def expire_log(log: CommitLog, retention_ms: int) -> int:
        state, last_expired = log.load(), log.last_expired_version()
        checkpoint = next(complete_checkpoints(log), None)
        if checkpoint is None or not all(map(retained_parts(log), checkpoint[1])):
            return last_expired
        name, _ = checkpoint
        retention_version = version_at_time(log, state, log.clock() - retention_ms)
        version = min(name.version, state.version - 1, retention_version)
        if version <= last_expired or not commit_expiration._is_durable(log, name):
            return last_expired
        path = log.paths.expiration(version)
        if log.store.put_if_absent(path, str(name).encode()) is not PutResult.UNKNOWN:
            commit_expiration._delete_below(log, version)
        return version

    patch.setattr(commit_expiration, "expire_log", expire_log)


def checkpoint_of_the_boundary_deleted(patch: pytest.MonkeyPatch) -> None:
    """Delete the checkpoint of the last expired version with those below it."""
    usual = commit_expiration._delete_below

    def delete_below(log: CommitLog, last_expired: int) -> None:
        usual(log, last_expired)
        names = sorted(log.checkpoint_names())
        for name in names[:-1]:
            if name.version <= last_expired:
                log.store.delete(log.paths.checkpoint(name))

    patch.setattr(commit_expiration, "_delete_below", delete_below)


def past_without_the_boundary(patch: pytest.MonkeyPatch) -> None:
    """Load a version from what is there, and never read the last expired version."""

    def load(log: CommitLog, version: int, current: TopicState) -> TopicState:
        state = log.newest_checkpoint(version)
        commits = [log.read(number) for number in range(state.version + 1, version + 1)]
        tail = [commit for commit in commits if commit is not None]
        return log.replay_tail(state, tail) if tail else state

    patch.setattr(past_versions, "_load", load)
