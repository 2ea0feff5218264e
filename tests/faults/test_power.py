"""F29: power is lost after each system call that changes the disk; acknowledged data is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from klog.connector.store import local_store
from klog.connector.store.local_store import LocalStore
from tests.connector.commit_log.memory_logs import CountingStore
from tests.faults import process_work, signed_topic
from tests.faults.power_loss_disk import Disk, recording

BEFORE = [["a0", "a1", "a2", "w0"], ["b0", "b1"]]
APPENDED = [["a0", "a1", "a2", "w0", "x0", "x1"], ["b0", "b1", "y0"]]


@pytest.mark.slow
def test_f29_power_lost_after_each_call(tmp_path: Path) -> None:
    """A commit that returned is there, and every named file has all its bytes."""
    disk = Disk(str(tmp_path))
    log = signed_topic.log_on(LocalStore(), f"{tmp_path}/root")
    calls: list[str] = []
    allowed: list[list[list[str]]] = []

    def check_files(call: str) -> None:
        calls.append(call)
        for files in (disk.durable_files(), disk.named_files()):
            if allowed:
                recovered = signed_topic.log_on(CountingStore(files), log.paths.root)
                assert signed_topic.records_of(recovered) in allowed, calls[-20:]

    with recording(disk, check_files):
        process_work.prepare(log)
        for task, after in (
            (process_work.append_named, APPENDED),
            (process_work.merge, APPENDED),
            (process_work.checkpoint_and_expire, APPENDED),
            (process_work.vacuum, APPENDED),
        ):
            allowed[:] = [BEFORE if task is process_work.append_named else APPENDED, after]
            task(log)
            allowed[:] = [after]
            check_files(f"done {task.__name__}")
    assert sum(call.startswith("fsync") for call in calls) > 20
    assert sum(call.startswith("unlink") for call in calls) > 10


def test_f29_a_missing_sync_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of these tests loses what was not synced: otherwise the test above shows nothing."""
    with recording(disk := Disk(str(tmp_path)), lambda _: None):
        LocalStore().put_if_absent(f"{tmp_path}/whole", b"whole")
        monkeypatch.setattr(local_store, "sync_directory", lambda directory: None)
        LocalStore().put_if_absent(f"{tmp_path}/unnamed", b"whole")
        monkeypatch.setattr(os, "fsync", lambda descriptor: None)
        LocalStore().put_if_absent(f"{tmp_path}/torn", b"whole")
        monkeypatch.undo()
    assert {path for path in disk.durable_files() if "/." not in path} == {f"{tmp_path}/whole"}
    assert disk.named_files() == {
        f"{tmp_path}/whole": b"whole",
        f"{tmp_path}/unnamed": b"whole",
        f"{tmp_path}/torn": b"",
    }
