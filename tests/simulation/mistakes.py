"""The mistakes that docs/commit-protocol.md warns of, each as a change of klog's own code.

The rule: nothing in klog can be told to make them; a test puts them in for the time of one run.
What the checks do not notice with a mistake in place, they would not notice without.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from klog.connector.log import checkpoint, cleaning, entries, garbage, operations
from klog.connector.log import commit as commits
from klog.connector.log.commit import Actions, Progress
from klog.connector.log.commit_tail import read_by_number
from klog.connector.log.live import Live
from klog.connector.log.paths import CheckpointName, checkpoint_name
from klog.connector.log.state import Build, State, _Folding, fold, tidied
from klog.connector.log.topic_log import TopicLog, _Outcome
from klog.connector.store.contract import Put
from klog.errors import CommitStateUnknownError, KlogError
from tests.simulation import loss_mistakes, store_mistakes, writers
from tests.simulation.world import StoreDownError

Patch = Callable[[pytest.MonkeyPatch], None]


def no_read_back(patch: pytest.MonkeyPatch) -> None:
    """Take a lost answer for a failure, and a name that is there for another's."""
    usual = Live.present

    def put(log: TopicLog, made: Any) -> _Outcome:
        found = log.store.put_if_absent(log.paths.commit(made.version), commits.encode(made))
        if found is Put.UNKNOWN:
            raise CommitStateUnknownError("no answer")
        taken = found is Put.EXISTS or log.boundary() >= made.version
        return _Outcome.TAKEN if taken else _Outcome.LANDED

    patch.setattr(TopicLog, "_put", put)
    _forget_writes(patch)
    # Nets which would catch most of it: a state without writes has no last one, and the same files
    # are refused.
    patch.setattr(_Folding, "_assert_previous", lambda folding, commit: None)
    patch.setattr(operations, "_not_there", lambda state, staged: None)
    patch.setattr(
        Live,
        "present",
        lambda live, files, birth=None: usual(live, files) if birth is None else set(),
    )


def _forget_writes(patch: pytest.MonkeyPatch) -> None:
    usual = TopicLog._reload
    patch.setattr(
        TopicLog,
        "_reload",
        lambda log, *given: replace(usual(log, *given), writes={}),
    )


def hint_trusted(patch: pytest.MonkeyPatch) -> None:
    """Begin a load at the checkpoint that a hint names, and believe what follows."""
    usual = cleaning.write_checkpoint

    def write_checkpoint(log: TopicLog, state: State) -> CheckpointName:
        name = usual(log, state)
        with suppress(StoreDownError):
            log.store.put(f"{log.paths.directory}/hint.json", [json.dumps(str(name)).encode()])
        return name

    def hinted(log: TopicLog) -> State:
        with suppress(FileNotFoundError, checkpoint.NotWholeError):
            name = checkpoint_name(json.loads(log.store.read(f"{log.paths.directory}/hint.json")))
            assert name is not None
            data = log.store.read(log.paths.checkpoint(name))
            if checkpoint.is_whole(name, data):
                return checkpoint.decode(data, log.read_part)
        return State()

    def load(log: TopicLog, cached: State | None = None) -> State:
        state = cached if cached is not None else hinted(log)
        tail = read_by_number(log.read, state.version + 1)
        return tidied(fold(state, tail)) if tail else state

    patch.setattr(cleaning, "write_checkpoint", write_checkpoint)
    patch.setattr(TopicLog, "load", load)


def checkpoint_not_checked(patch: pytest.MonkeyPatch) -> None:
    """Take every checkpoint for whole."""
    patch.setattr(checkpoint, "is_whole", lambda name, data: True)


def boundary_against_the_end(patch: pytest.MonkeyPatch) -> None:
    """Compare the boundary with where the tail ends, not with where it begins."""

    def load(log: TopicLog, cached: State | None = None) -> State:
        begin = cached
        for _ in range(8):
            state = begin if begin is not None else log.newest_checkpoint()
            tail = read_by_number(log.read, state.version + 1)
            if log.boundary() > state.version + len(tail):
                begin = None
                continue
            return tidied(fold(state, tail)) if tail else state
        raise KlogError("no checkpoint")

    patch.setattr(TopicLog, "load", load)


def checkpoint_only_read(patch: pytest.MonkeyPatch) -> None:
    """Clean behind a checkpoint that can be read, and may not outlive a loss of power."""
    patch.setattr(cleaning, "_is_durable", lambda log, name: True)


def no_boundary(patch: pytest.MonkeyPatch) -> None:
    """Delete commits without saying so first, and never ask."""
    patch.setattr(TopicLog, "boundary", lambda log: -1)


def offsets_as_staged(patch: pytest.MonkeyPatch) -> None:
    """Append at the offsets expected when the write began, and believe a log that does."""
    patch.setattr(operations, "shifted", lambda segment, shift: segment)

    def add(folding: Any, entry: entries.Entry) -> None:
        partition = entry["partition"]
        folding._log_end[partition] = max(folding._log_end[partition], entry["next_offset"])
        folding._live.add(entry["file"])
        folding._added[entry["file"]] = entry

    patch.setattr(_Folding, "_add", add)
    patch.setattr(_Folding, "_assert_ends", lambda folding, log_end: None)


def batches_without_a_name(patch: pytest.MonkeyPatch) -> None:
    """Never ask whether a batch is there already."""
    patch.setattr(operations, "is_done", lambda state, writer: False)


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """Let every run go on."""

    def progress(state: State, writer: operations.Writer) -> Any:
        return Progress(writer.name, writer.batch_id, writer.query_id, writer.run_id)

    patch.setattr(operations, "_progress", progress)


def inputs_not_checked(patch: pytest.MonkeyPatch) -> None:
    """Put segments in the place of others whether these are there or not."""

    def replace_segments(
        topic_id: str, birth: int, inputs: Any, outputs: Any, cleaned_to: Any
    ) -> Build:
        def build(state: State) -> Actions:
            operations.check_birth(state, birth)
            _, found = entries.without(state.segments, inputs)
            return Actions(add=tuple(outputs), remove=tuple(found["file"].to_pylist()))

        return build

    patch.setattr(operations, "replace_segments", replace_segments)


def partitions_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Append what was spread over fewer partitions than there are now."""
    patch.setattr(operations, "_same_partitions", lambda state, partitions: None)


def topic_id_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Take a topic that was made anew for the one that was."""
    patch.setattr(operations, "_same_topic", lambda state, topic_id: None)


def config_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Change a config whatever it is by now."""

    def alter_config(topic_id: str, seen: Any, config: Any) -> Build:
        return lambda state: Actions(config=dict(config)) if state.topic_id == topic_id else None

    patch.setattr(operations, "alter_config", alter_config)


def other_query_skipped(patch: pytest.MonkeyPatch) -> None:
    """Take another query's batch of that number for one's own."""

    def is_done(state: State, writer: operations.Writer) -> bool:
        found = state.progress.get(writer.name)
        return found is not None and writer.batch_id <= found.batch_id

    patch.setattr(operations, "is_done", is_done)


def abort_deletes(patch: pytest.MonkeyPatch) -> None:
    """Delete what was staged when a commit seems to have failed."""

    def abort(cast: Any, log: TopicLog, staged: operations.Staged) -> None:
        for entry in staged.segments:
            with suppress(StoreDownError):
                log.store.delete(log.paths.data(entry["file"]))

    patch.setattr(writers, "abort", abort)


def no_grace(patch: pytest.MonkeyPatch) -> None:
    """Delete what a commit took out at once."""
    usual = garbage.find_garbage
    patch.setattr(
        garbage, "find_garbage", lambda log, grace_ms, **more: usual(log, -(10**12), **more)
    )


def pins_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Delete what a reader has pinned."""
    patch.setattr(garbage, "pinned_version", lambda log, pins: None)


def pins_kept(patch: pytest.MonkeyPatch) -> None:
    """Leave the pins of readers that crashed."""
    patch.setattr(garbage, "drop_pins", lambda log, limit_ms: None)


def clock_instead_of_horizon(patch: pytest.MonkeyPatch) -> None:
    """Take a file for garbage by its age, not by a horizon that its writer has to look at."""
    patch.setattr(operations, "check_birth", lambda state, birth: None)


MISTAKES: dict[str, Patch] = {
    one.__name__: one
    for one in (
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
        loss_mistakes.tail_ends_at_a_gap,
        loss_mistakes.previous_not_looked_at,
        loss_mistakes.one_read_proves,
        loss_mistakes.lost_below_the_boundary,
        loss_mistakes.own_state_no_evidence,
        loss_mistakes.known_write_not_looked_at,
    )
}


@contextmanager
def making(name: str) -> Iterator[None]:
    """Make a mistake for a while; the empty name makes none."""
    with pytest.MonkeyPatch.context() as patch:
        if name:
            MISTAKES[name](patch)
        yield
