"""The mistakes that docs/commit-protocol.md warns of, each as a change of klog's own code.

The rule: no option of klog makes them; a test patches them in for a run. If the checks do not
detect a mistake here, they would not detect it in klog either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
    commit_builders,
    commit_checks,
    commit_expiration,
    commit_log,
    commit_log_paths,
    orphan_files,
    rewrite_commit,
    segment_entries,
    state_checkpoint,
    topic_vacuum,
)
from klog.connector.commit_log.commit import Actions, Commit, WriterTransaction
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_json import encode_commit
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import CheckpointName, parse_checkpoint_name
from klog.connector.commit_log.commit_tail import read_by_number
from klog.connector.commit_log.live_segments import LiveSegments
from klog.connector.commit_log.put_outcome import PutOutcome
from klog.connector.commit_log.state_replay import StateReplayer, compacted, replay
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.writable_store import PutResult
from klog.errors import CommitStateUnknownError, KlogError
from tests.simulation import (
    loss_mistakes,
    past_mistakes,
    restore_mistakes,
    store_mistakes,
    writers,
)
from tests.simulation.simulated_store import SimulatedStore
from tests.simulation.world import StoreDownError


class UnsyncedCheckpoints(SimulatedStore):
    """A store as of a writer that ends before it syncs a checkpoint."""

    def __init__(self, store: Any) -> None:
        super().__init__(store._world)

    def _sync(self, path: str) -> None:
        if "/checkpoints/" not in path:
            super()._sync(path)


Patch = Callable[[pytest.MonkeyPatch], None]


def no_read_back(patch: pytest.MonkeyPatch) -> None:
    """Take a lost answer for a failure, and an existing name for another writer's commit."""
    usual = LiveSegments.live_files_among

    def put(log: CommitLog, commit: Commit, wait: Any) -> PutOutcome:
        result = log.store.put_if_absent(log.paths.commit(commit.version), encode_commit(commit))
        if result is PutResult.UNKNOWN:
            raise CommitStateUnknownError("no answer")
        taken = result is PutResult.EXISTS or log.last_expired_version() >= commit.version
        return PutOutcome.TAKEN if taken else PutOutcome.LANDED

    patch.setattr(commit_log, "put_commit", put)
    _drop_writes(patch)
    # Without these checks, which would detect most cases: a state without writes has no last one,
    # and the same files are refused.
    patch.setattr(StateReplayer, "_assert_previous", lambda replayer, commit: None)
    patch.setattr(append_commit, "_check_not_committed", lambda state, staged: None)
    patch.setattr(
        LiveSegments,
        "live_files_among",
        lambda live, files, base_version=None: (
            usual(live, files) if base_version is None else set()
        ),
    )


def _drop_writes(patch: pytest.MonkeyPatch) -> None:
    usual = CommitLog._reload
    patch.setattr(
        CommitLog,
        "_reload",
        lambda log, *arguments: replace(usual(log, *arguments), writes={}),
    )


def hint_trusted(patch: pytest.MonkeyPatch) -> None:
    """Begin a load at the checkpoint that a hint names, and trust the commits after it."""
    usual = checkpoint_writer.write_checkpoint

    def write_checkpoint(log: CommitLog, state: TopicState) -> CheckpointName:
        name = usual(log, state)
        with suppress(StoreDownError):
            log.store.put(f"{log.paths.directory}/hint.json", [json.dumps(str(name)).encode()])
        return name

    def hinted(log: CommitLog) -> TopicState:
        with suppress(FileNotFoundError, state_checkpoint.IncompleteCheckpointError):
            name = parse_checkpoint_name(
                json.loads(log.store.read(f"{log.paths.directory}/hint.json"))
            )
            assert name is not None
            data = log.store.read(log.paths.checkpoint(name))
            if commit_log_paths.is_intact(name, data):
                return state_checkpoint.decode_checkpoint(data, log.read_part)
        return TopicState()

    def load(log: CommitLog, cached: TopicState | None = None) -> TopicState:
        state = cached if cached is not None else hinted(log)
        tail = read_by_number(log.read, state.version + 1)
        return compacted(replay(state, tail)) if tail else state

    patch.setattr(checkpoint_writer, "write_checkpoint", write_checkpoint)
    patch.setattr(CommitLog, "load", load)


def checkpoint_not_checked(patch: pytest.MonkeyPatch) -> None:
    """Take every checkpoint for intact."""
    patch.setattr(commit_log_paths, "is_intact", lambda name, data: True)


def boundary_against_the_end(patch: pytest.MonkeyPatch) -> None:
    """Compare the last expired version with the end of the tail, not with its start."""

    def load(log: CommitLog, cached: TopicState | None = None) -> TopicState:
        begin = cached
        for _ in range(8):
            state = begin if begin is not None else log.newest_checkpoint()
            tail = read_by_number(log.read, state.version + 1)
            if log.last_expired_version() > state.version + len(tail):
                begin = None
                continue
            return compacted(replay(state, tail)) if tail else state
        raise KlogError("no checkpoint")

    patch.setattr(CommitLog, "load", load)


def checkpoint_only_read(patch: pytest.MonkeyPatch) -> None:
    """Expire commits before a checkpoint that can be read but may not survive a power loss.

    Writers end before they sync a checkpoint, as a killed one may: this shows the mistake often.
    """
    usual = checkpoint_writer.write_checkpoint

    def write_checkpoint(log: CommitLog, state: TopicState) -> CheckpointName:
        return usual(replace(log, store=UnsyncedCheckpoints(log.store)), state)

    patch.setattr(checkpoint_writer, "write_checkpoint", write_checkpoint)
    patch.setattr(commit_expiration, "_is_durable", lambda log, name: True)


def expiration_only_read(patch: pytest.MonkeyPatch) -> None:
    """Delete expired commits by an expiration file that may not survive a power loss.

    Each sync of these files fails, except in the final check: this shows the mistake often.
    """
    usual = SimulatedStore._sync

    def sync(store: SimulatedStore, path: str) -> None:
        if "/gc/" in path and store._world.current_actor() is not None:
            raise StoreDownError("not synced")
        usual(store, path)

    patch.setattr(SimulatedStore, "_sync", sync)
    patch.setattr(commit_expiration, "_is_expiration_durable", lambda log, last_expired: True)


def no_boundary(patch: pytest.MonkeyPatch) -> None:
    """Delete commits without first writing the last expired version, and never read it."""
    patch.setattr(CommitLog, "last_expired_version", lambda log: -1)


def offsets_as_staged(patch: pytest.MonkeyPatch) -> None:
    """Append at the offsets expected when the write began, and accept such commits."""
    patch.setattr(append_commit, "with_offset_shift", lambda segment, shift: segment)

    def add(replayer: Any, entry: segment_entries.SegmentEntry) -> None:
        partition = entry["partition"]
        replayer._log_end[partition] = max(replayer._log_end[partition], entry["next_offset"])
        replayer._live.add(entry["file"])
        replayer._additions[entry["file"]] = entry

    patch.setattr(StateReplayer, "_add", add)
    patch.setattr(StateReplayer, "_assert_ends", lambda replayer, log_end: None)


def batches_without_a_name(patch: pytest.MonkeyPatch) -> None:
    """Never check whether a batch is committed already."""
    patch.setattr(append_commit, "is_committed", lambda state, writer: False)


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """Let every run continue."""

    def writer_transaction(state: TopicState, writer: append_commit.Writer) -> Any:
        return WriterTransaction(writer.name, writer.batch_id, writer.query_id, writer.run_id)

    patch.setattr(append_commit, "_next_transaction", writer_transaction)


def inputs_not_checked(patch: pytest.MonkeyPatch) -> None:
    """Replace segments whether they are live or not."""

    def replace_segments(
        topic_id: str, base_version: int, inputs: Any, outputs: Any, cleaned_to: Any
    ) -> CommitBuilder:
        def build(state: TopicState) -> Actions:
            commit_checks.check_base_version(state, base_version)
            _, segments = segment_entries.split_by_files(state.segments, inputs)
            return Actions(add=tuple(outputs), remove=tuple(segments["file"].to_pylist()))

        return build

    patch.setattr(rewrite_commit, "replace_segments", replace_segments)


def partitions_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Append records that were partitioned for fewer partitions than there are now."""
    patch.setattr(append_commit, "_check_partitions", lambda state, partitions: None)


def topic_id_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Take a re-created topic for the deleted one."""
    patch.setattr(commit_checks, "check_same_topic", lambda state, topic_id: None)


def config_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Change a config whatever its current value is."""

    def alter_config(topic_id: str, seen: Any, config: Any) -> CommitBuilder:
        return lambda state: Actions(config=dict(config)) if state.topic_id == topic_id else None

    patch.setattr(commit_builders, "alter_config", alter_config)


def other_query_skipped(patch: pytest.MonkeyPatch) -> None:
    """Take another query's batch with the same id for one's own."""

    def is_done(state: TopicState, writer: append_commit.Writer) -> bool:
        transaction = state.writer_transactions.get(writer.name)
        return transaction is not None and writer.batch_id <= transaction.batch_id

    patch.setattr(append_commit, "is_committed", is_done)


def abort_deletes(patch: pytest.MonkeyPatch) -> None:
    """Delete staged files when a commit seems to have failed."""

    def abort(cast: Any, log: CommitLog, staged: append_commit.StagedSegments) -> None:
        for entry in staged.segments:
            with suppress(StoreDownError):
                log.store.delete(log.paths.data(entry["file"]))

    patch.setattr(writers, "abort", abort)


def no_grace(patch: pytest.MonkeyPatch) -> None:
    """Delete removed segments at once."""
    usual = orphan_files._aged_removals
    patch.setattr(
        orphan_files,
        "_aged_removals",
        lambda files, state, before_ms, leased: dict.fromkeys(
            usual(files, state, 10**15, leased), 0
        ),
    )


def pins_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Delete files under a reader's snapshot lease."""
    usual = orphan_files._aged_removals
    patch.setattr(
        orphan_files,
        "_aged_removals",
        lambda files, state, before_ms, leased: dict.fromkeys(
            usual(files, state, before_ms, None), 0
        ),
    )


def pins_kept(patch: pytest.MonkeyPatch) -> None:
    """Leave the snapshot leases of crashed readers."""
    patch.setattr(topic_vacuum, "delete_expired_leases", lambda log, limit_ms: None)


def clock_instead_of_horizon(patch: pytest.MonkeyPatch) -> None:
    """Delete orphan files by their age, not by a vacuum version that their writer checks."""
    patch.setattr(commit_checks, "check_base_version", lambda state, base_version: None)


MISTAKES: dict[str, Patch] = {
    mistake.__name__: mistake
    for mistake in (
        store_mistakes.exists_then_write,
        store_mistakes.renamed_over,
        store_mistakes.created_and_filled,
        store_mistakes.answer_dropped,
        store_mistakes.not_synced,
        hint_trusted,
        checkpoint_not_checked,
        boundary_against_the_end,
        no_boundary,
        checkpoint_only_read,
        expiration_only_read,
        no_read_back,
        offsets_as_staged,
        batches_without_a_name,
        other_query_skipped,
        no_fence,
        inputs_not_checked,
        partitions_not_looked_at,
        topic_id_not_looked_at,
        config_not_looked_at,
        abort_deletes,
        no_grace,
        pins_not_looked_at,
        pins_kept,
        clock_instead_of_horizon,
        restore_mistakes.restore_lowers_log_ends,
        restore_mistakes.restored_files_stay_removed,
        restore_mistakes.vacuumed_files_not_looked_at,
        restore_mistakes.removed_files_deleted_without_a_commit,
        restore_mistakes.named_writers_forgotten,
        restore_mistakes.restore_not_looked_at,
        restore_mistakes.writers_forgotten_at_an_undelete,
        restore_mistakes.deletion_looked_up_once,
        loss_mistakes.tail_ends_at_a_gap,
        loss_mistakes.previous_not_looked_at,
        loss_mistakes.one_read_proves,
        loss_mistakes.lost_below_the_boundary,
        loss_mistakes.own_state_no_evidence,
        loss_mistakes.known_write_not_looked_at,
        past_mistakes.boundary_past_a_checkpoint,
        past_mistakes.checkpoint_of_the_boundary_deleted,
        past_mistakes.past_without_the_boundary,
    )
}


@contextmanager
def with_mistake(name: str) -> Iterator[None]:
    """Patch a mistake in while the context lasts; the empty name patches nothing."""
    with pytest.MonkeyPatch.context() as patch:
        if name:
            MISTAKES[name](patch)
        yield
