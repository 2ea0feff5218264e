"""The mistakes that docs/commit-protocol.md warns of, each as a change of klog's own code.

The rule: nothing in klog can be told to make them; a test puts them in for the time of one run.
What the checks do not notice with a mistake in place, they would not notice without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from klog.connector.log import checkpoint, entries, garbage, operations
from klog.connector.log import commit as commits
from klog.connector.log.commit import Actions, Progress
from klog.connector.log.paths import checkpoint_name
from klog.connector.log.state import State, _Folding, fold, tidied
from klog.connector.log.topic_log import TopicLog, _Outcome
from klog.connector.store.contract import Put
from klog.errors import CommitStateUnknownError, KlogError
from tests.simulation.actors import Cast
from tests.simulation.world import SimulatedStore

Patch = Callable[[pytest.MonkeyPatch], None]


def exists_then_write(patch: pytest.MonkeyPatch) -> None:
    """Look whether the name is free, then write it."""

    def put_if_absent(store: Any, path: str, data: bytes) -> Put:
        try:
            store.read(path)
        except FileNotFoundError:
            store._world.hand_over("put", lambda: store._overwrite(path, data))
            return Put.CREATED
        return Put.EXISTS

    def overwrite(store: Any, path: str, data: bytes) -> None:
        store._world.files[path] = data
        store._world.created.append((path, data))

    patch.setattr(SimulatedStore, "_overwrite", overwrite, raising=False)
    patch.setattr(SimulatedStore, "put_if_absent", put_if_absent)


def no_read_back(patch: pytest.MonkeyPatch) -> None:
    """Take a lost answer for a failure, and a name that is there for another's."""

    def put(log: TopicLog, made: Any) -> _Outcome:
        found = log.store.put_if_absent(log.paths.commit(made.version), commits.encode(made))
        if found is Put.UNKNOWN:
            raise CommitStateUnknownError("no answer")
        taken = found is Put.EXISTS or log.boundary() >= made.version
        return _Outcome.TAKEN if taken else _Outcome.LANDED

    patch.setattr(TopicLog, "_put", put)
    _forget_writes(patch)


def _forget_writes(patch: pytest.MonkeyPatch) -> None:
    usual = TopicLog._reload
    patch.setattr(
        TopicLog,
        "_reload",
        lambda log, *given: replace(usual(log, *given), writes={}),
    )


def hint_trusted(patch: pytest.MonkeyPatch) -> None:
    """Begin a load where some checkpoint says, not at the newest, and believe what follows."""

    def oldest(log: TopicLog) -> State:
        names = sorted(filter(None, map(checkpoint_name, log.names(log.paths.checkpoints))))
        for name in names:
            data = log.store.read(log.paths.checkpoint(name))
            if checkpoint.is_whole(name, data):
                return checkpoint.decode(data)
        return State()

    def load(log: TopicLog, cached: State | None = None) -> State:
        state = cached if cached is not None else oldest(log)
        tail = list(log._commits_from(state.version + 1))
        return tidied(fold(state, tail)) if tail else state

    patch.setattr(TopicLog, "load", load)


def checkpoint_not_checked(patch: pytest.MonkeyPatch) -> None:
    """Take every checkpoint for whole."""
    patch.setattr(checkpoint, "is_whole", lambda name, data: True)


def boundary_against_the_end(patch: pytest.MonkeyPatch) -> None:
    """Compare the boundary with where the tail ends, not with where it begins."""

    def load(log: TopicLog, cached: State | None = None) -> State:
        begin = cached
        for _ in range(8):
            state = begin if begin is not None else log._newest_checkpoint()
            tail = list(log._commits_from(state.version + 1))
            if log.boundary() > state.version + len(tail):
                begin = None
                continue
            return tidied(fold(state, tail)) if tail else state
        raise KlogError("no checkpoint")

    patch.setattr(TopicLog, "load", load)


def no_boundary(patch: pytest.MonkeyPatch) -> None:
    """Delete commits without saying so first, and never ask."""
    patch.setattr(TopicLog, "boundary", lambda log: -1)


def offsets_as_staged(patch: pytest.MonkeyPatch) -> None:
    """Append at the offsets expected when the write began, and believe a log that does."""
    patch.setattr(operations, "shifted", lambda segment, shift: segment)

    def add(folding: Any, entry: entries.Entry) -> None:
        partition = entry["partition"]
        folding._log_end[partition] = max(folding._log_end[partition], entry["next_offset"])
        if folding._live is not None:
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
    ) -> operations.Build:
        def build(state: State) -> Actions:
            operations.check_birth(state, birth)
            _, found = entries.without(state.segments, inputs)
            return Actions(add=tuple(outputs), remove=tuple(found["file"].to_pylist()))

        return build

    patch.setattr(operations, "replace_segments", replace_segments)


def abort_deletes(patch: pytest.MonkeyPatch) -> None:
    """Delete what was staged when a commit seems to have failed."""

    def abort(cast: Cast, log: TopicLog, staged: operations.Staged) -> None:
        for entry in staged.segments:
            log.store.delete(log.paths.data(entry["file"]))

    patch.setattr(Cast, "abort", abort)


def no_grace(patch: pytest.MonkeyPatch) -> None:
    """Delete what a commit took out at once."""
    usual = garbage.find_garbage
    patch.setattr(garbage, "find_garbage", lambda log, grace_ms: usual(log, -(10**12)))


def clock_instead_of_horizon(patch: pytest.MonkeyPatch) -> None:
    """Take a file for garbage by its age, not by a horizon that its writer has to look at."""
    patch.setattr(operations, "check_birth", lambda state, birth: None)


MISTAKES: dict[str, Patch] = {
    one.__name__: one
    for one in (
        exists_then_write,
        no_read_back,
        hint_trusted,
        checkpoint_not_checked,
        boundary_against_the_end,
        no_boundary,
        offsets_as_staged,
        batches_without_a_name,
        no_fence,
        inputs_not_checked,
        abort_deletes,
        no_grace,
        clock_instead_of_horizon,
    )
}


@contextmanager
def making(name: str) -> Iterator[None]:
    """Make a mistake for a while; the empty name makes none."""
    with pytest.MonkeyPatch.context() as patch:
        if name:
            MISTAKES[name](patch)
        yield
