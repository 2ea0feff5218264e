"""A real process killed at each of its steps on local disk, and what the next process reads."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import (
    parse_checkpoint_name,
    parse_commit_version,
    parse_expiration_version,
)
from klog.connector.commit_log.segment_path import parse_segment_path
from klog.connector.store.local_store import LocalStore
from klog.connector.store.temporary_names import TEMPORARY_NAME
from tests.faults import process_work, signed_topic
from tests.faults.children import Child, Interrupt, Task, steps_of

BEFORE = [["a0", "a1", "a2", "w0"], ["b0", "b1"]]
APPENDED = [["a0", "a1", "a2", "w0", "x0", "x1"], ["b0", "b1", "y0"]]
RESTORED = [["a0", "a1", "a2"], ["b0"]]
TASKS: list[tuple[Task, list[list[str]]]] = [
    (process_work.append_named, APPENDED),
    (process_work.merge, BEFORE),
    (process_work.checkpoint_and_expire, BEFORE),
    (process_work.vacuum, BEFORE),
    (process_work.restore, RESTORED),
]
"""Tasks, each with the records after it."""


@pytest.mark.slow
@pytest.mark.parametrize(("task", "after"), TASKS, ids=lambda value: getattr(value, "__name__", ""))
def test_f06_killed_at_each_step(tmp_path: Path, task: Task, after: list[list[str]]) -> None:
    base = tmp_path / "base"
    process_work.prepare(log_at(base))
    for interrupt in interrupts(base, tmp_path / "counted", task):
        root = tmp_path / "root"
        shutil.copytree(base, root)
        child = Child(task, root, interrupt)
        assert child.wait() == -signal.SIGKILL
        assert child.output == ""
        assert_no_torn_file(root)
        assert signed_topic.records_of(log_at(root)) in (BEFORE, after)
        task(log_at(root))
        assert signed_topic.records_of(log_at(root)) == after
        assert_no_torn_file(root)
        shutil.rmtree(root)


def interrupts(base: Path, root: Path, task: Task) -> list[Interrupt]:
    """Return each point where a task can be killed: after a step is before the next."""
    shutil.copytree(base, root)
    with steps_of(str(root), Interrupt()) as steps:
        task(log_at(root))
    writes = [at for at, step in enumerate(steps) if step.startswith("write")]
    assert len(steps) > 5
    assert writes
    return [
        *(Interrupt(at) for at in range(len(steps))),
        *(Interrupt(at, "during") for at in writes),
        Interrupt(len(steps) - 1, "after"),
    ]


def log_at(root: Path) -> CommitLog:
    return signed_topic.log_on(LocalStore(), str(root))


def assert_no_torn_file(root: Path) -> None:
    """Assert that every file has a valid name and is complete, except temporary files."""
    log = log_at(root)
    for path in root.rglob("*"):
        if path.is_dir() or TEMPORARY_NAME.fullmatch(path.name):
            continue
        name, data = path.name, path.read_bytes()
        if path.parent.name == "log":
            version = parse_commit_version(name)
            assert version is not None
            assert log.read(version) is not None
        elif path.parent.name == "checkpoints":
            checkpoint = parse_checkpoint_name(name)
            assert checkpoint is not None
            assert checkpoint.size_bytes == len(data)
        elif path.parent.name == "gc":
            assert parse_expiration_version(name) is not None
        else:
            assert parse_segment_path(f"{path.parent.name}/{name}") is not None
            assert data
