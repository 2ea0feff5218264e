"""Mistakes of restores and undeletions, each as a change of klog's own code: see `mistakes.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from klog.connector.commit_log import commit_checks, orphan_files, restore_commit, undelete_commit
from klog.connector.commit_log.commit import Actions, Restore, UndeletedTopic
from klog.connector.commit_log.state_replay import StateReplayer

Change = Callable[[StateReplayer, Restore], None]


def restore_lowers_log_ends(patch: pytest.MonkeyPatch) -> None:
    """Let later appends have the offsets after the end of the restored version."""

    def lower(replayer: StateReplayer, restore: Restore) -> None:
        for partition, end in restore.log_end.items():
            replayer._log_end[partition] = end
        replayer._holes = [
            hole
            for hole in replayer._holes
            if hole.next_offset <= restore.log_end.get(hole.partition, hole.next_offset)
        ]

    _after_restore(patch, lower)
    patch.setattr(StateReplayer, "_assert_ends", lambda replayer, log_end: None)


def restored_files_stay_removed(patch: pytest.MonkeyPatch) -> None:
    """Keep a segment that is live again among the removed ones."""
    usual = StateReplayer._restore

    def restore(replayer: StateReplayer, actions: Actions, change: Restore) -> None:
        replayer._update_tables()
        removed = replayer._removed
        usual(replayer, actions, change)
        replayer._removed = removed

    patch.setattr(StateReplayer, "_restore", restore)


def vacuumed_files_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Restore segments that vacuum has deleted, or has decided to delete."""
    nothing = restore_commit.MissingSegments()
    patch.setattr(restore_commit, "missing_segments", lambda *arguments: nothing)


def removed_files_deleted_without_a_commit(patch: pytest.MonkeyPatch) -> None:
    """Delete removed segments after the grace, before a commit has raised the vacuum version."""
    usual = orphan_files._aged_removals
    patch.setattr(
        orphan_files,
        "_aged_removals",
        lambda *arguments: dict.fromkeys(usual(*arguments), 0),
    )


def named_writers_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Forget the last batches of named writers at a restore."""

    def forget(replayer: StateReplayer, restore: Restore) -> None:
        replayer._transactions = {}

    _after_restore(patch, forget)


def restore_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Commit a rewrite that was planned before a restore."""
    patch.setattr(commit_checks, "check_not_restored", lambda state, base_version: None)


def writers_forgotten_at_an_undelete(patch: pytest.MonkeyPatch) -> None:
    """Bring a topic back without the last batches of its named writers."""
    usual = StateReplayer._undelete

    def undelete(replayer: StateReplayer, actions: Actions, topic: UndeletedTopic) -> None:
        usual(replayer, actions, replace(topic, writer_transactions=()))

    patch.setattr(StateReplayer, "_undelete", undelete)


def deletion_looked_up_once(patch: pytest.MonkeyPatch) -> None:
    """Bring a topic back, though others were created and deleted after its deletion."""
    patch.setattr(undelete_commit, "_check_planned", lambda state, planned: None)


def _after_restore(patch: pytest.MonkeyPatch, change: Change) -> None:
    usual = StateReplayer._restore

    def restore(replayer: StateReplayer, actions: Actions, restore: Restore) -> None:
        usual(replayer, actions, restore)
        change(replayer, restore)

    patch.setattr(StateReplayer, "_restore", restore)
