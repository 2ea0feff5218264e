"""A stopped writer that is taken for dead, and continues after another has taken over its name."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.store.local_store import LocalStore
from tests.connector.commit_log.memory_logs import checkpoint_and_expire
from tests.faults import process_work, signed_topic
from tests.faults.children import Child, Interrupt, steps_of
from tests.faults.signed_topic import writer

BATCH_1 = {0: ["x0", "x1"], 1: ["y0"]}
BATCH_2 = {0: ["x2"]}
AFTER = [["a0", "a1", "a2", "w0", "x0", "x1", "x2"], ["b0", "b1", "y0"]]


def log_at(root: Path) -> CommitLog:
    return signed_topic.log_on(LocalStore(), str(root))


def new_run(log: CommitLog) -> None:
    """Write what a restarted query does: batch 1 again, from its checkpoint, then the next."""
    state = signed_topic.append(log, log.load(), BATCH_1, writer(1, "the next run"))
    signed_topic.append(log, state, BATCH_2, writer(2, "the next run"))


@pytest.mark.slow
@pytest.mark.parametrize("expires", [False, True], ids=["", "and its commit expires"])
def test_f07_a_zombie_stopped_at_each_step(tmp_path: Path, expires: bool) -> None:
    """The batch is there once, whether the zombie had committed it or not."""
    base = tmp_path / "base"
    process_work.prepare(log_at(base))
    shutil.copytree(base, tmp_path / "counted")
    with steps_of(str(tmp_path / "counted"), Interrupt()) as steps:
        process_work.append_named(log_at(tmp_path / "counted"))
    outcomes = set()
    for at in range(len(steps)):
        root = tmp_path / str(at)
        shutil.copytree(base, root)
        zombie = Child(process_work.append_named, root, Interrupt(at, "before", signal.SIGSTOP))
        assert zombie.wait_for_stop()
        new_run(log_at(root))
        if expires:
            checkpoint_and_expire(log_at(root))
        assert zombie.resume() == 0
        outcomes.add(zombie.output.split(":")[0])
        assert signed_topic.records_of(log_at(root)) == AFTER
    assert outcomes == {"done"}


@pytest.mark.slow
def test_f07_a_zombie_of_a_later_batch_is_fenced(tmp_path: Path) -> None:
    """The new run has not reached its batch id yet: only its run id gives it away."""
    process_work.prepare(log_at(tmp_path))
    state = log_at(tmp_path).load()
    zombie = Child(process_work.append_far_ahead, tmp_path, Interrupt(0, "before", signal.SIGSTOP))
    assert zombie.wait_for_stop()
    signed_topic.append(log_at(tmp_path), state, BATCH_1, writer(1, "the next run"))
    assert zombie.resume() == 0
    assert zombie.output.startswith("ProducerFencedError: ")
    assert "run the next run has taken over from run a run, which must stop" in zombie.output
    assert signed_topic.records_of(log_at(tmp_path)) == [
        ["a0", "a1", "a2", "w0", "x0", "x1"],
        ["b0", "b1", "y0"],
    ]


@pytest.mark.slow
def test_f07_a_zombie_stopped_longer_than_the_grace_is_refused(tmp_path: Path) -> None:
    """Vacuum deleted its files: its commit would name missing files."""
    process_work.prepare(log_at(tmp_path))
    with steps_of(str(tmp_path), Interrupt()) as steps:
        signed_topic.stage(log_at(tmp_path), log_at(tmp_path).load(), BATCH_1)
    # Its two files are there, and the commit is not.
    zombie = Child(
        process_work.append_unnamed, tmp_path, Interrupt(len(steps), "before", signal.SIGSTOP)
    )
    assert zombie.wait_for_stop()
    log = log_at(tmp_path)
    signed_topic.append(log, log.load(), {1: ["b2"]})
    process_work.vacuum(log)
    assert zombie.resume() == 0
    assert zombie.output.startswith("CommitConflictError: this write began at version")
    assert "vacuum has deleted" in zombie.output
    assert signed_topic.records_of(log)[1] == ["b0", "b1", "b2"]
