"""F28 on local disk: errors name missing space and permissions, and no file is incomplete."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from klog.connector.store.local_store import LocalStore
from tests.faults import process_work, signed_topic
from tests.faults.children import Child
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS

BEFORE = [["a0", "a1", "a2", "w0"], ["b0", "b1"]]
APPENDED = [["a0", "a1", "a2", "w0", "x0", "x1"], ["b0", "b1", "y0"]]
WORDS = {"tmpfs": "No space left on device. Free some space there", "limit": "File too large"}


def full_disk(folder: Path, way: str) -> Any:
    command = [sys.executable, "-m", "tests.faults.full_disk", str(folder), way]
    return json_output(with_small_disk(folder, command) if way == "tmpfs" else command)


def with_small_disk(folder: Path, command: list[str]) -> list[str]:
    """Return a command that runs another with the folder as a file system of 1 MiB."""
    script = 'mount -t tmpfs -o size=1m none "$1" && shift && exec "$@"'
    return [*IN_A_NAMESPACE, "sh", "-c", script, "sh", str(folder), *command]


def json_output(command: list[str]) -> Any:
    done = subprocess.run(
        command, capture_output=True, timeout=TIMEOUT_SECONDS, cwd=PROJECT, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


IN_A_NAMESPACE = ("unshare", "-U", "-r", "-m")


def way_to_fill() -> str:
    """Return how to fill a disk here: `tmpfs` if this user may mount one, else `limit`."""
    if shutil.which("unshare") is None:
        return "limit"
    script = "mount -t tmpfs none /tmp"
    tried = subprocess.run([*IN_A_NAMESPACE, "sh", "-c", script], capture_output=True, check=False)
    return "tmpfs" if tried.returncode == 0 else "limit"


@pytest.mark.slow
@pytest.mark.parametrize("way", sorted({"limit", way_to_fill()}))
def test_f28_a_full_disk(tmp_path: Path, way: str) -> None:
    """Fill a file system if this user may mount one; a limit on files works everywhere."""
    errors = set()
    for run in full_disk(tmp_path, way):
        assert run["temporary"] == []
        assert run["before"] == BEFORE
        assert run["after"] == (APPENDED if run["task"] == "append_named" else BEFORE)
        if run["error"]:
            assert run["during"] == BEFORE
            assert "not written: " in str(run["error"])
            assert WORDS[way] in str(run["error"])
            assert str(run["error"]).startswith("StoreRefusedError: ")
        errors.add((run["task"], bool(run["error"])))
    assert {task for task, failed in errors if failed} == {
        "append_named", "checkpoint_and_expire", "merge",
    }  # fmt: skip
    assert ("append_named", False) in errors


# Elsewhere tests/connector/commit_log/test_full_store.py alone shows it.
if way_to_fill() == "tmpfs":

    @pytest.mark.slow
    def test_f28_a_vacuum_makes_room_on_a_full_disk(tmp_path: Path) -> None:
        command = [sys.executable, "-m", "tests.faults.full_disk_vacuum", str(tmp_path)]
        reports = json_output(with_small_disk(tmp_path, command))
        freed, nothing = reports["freed"], reports["nothing"]
        topic = freed["during"]["topics"]["t"]
        assert "error" not in topic
        assert len(topic["removed"]) == 3
        assert topic["bytes"] > 3 * 4096
        assert freed["codes"] == [0, 0]
        assert freed["horizon"] > 0
        assert freed["live"] == [True] * 3
        error = nothing["during"]["topics"]["t"]["error"]
        assert "not written: No space left on device. Free some space there" in error
        assert nothing["codes"] == [1, 0]
        assert nothing["live"] == [True] * 6


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder that any user can reach; pytest's own are for one user."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.mark.parametrize("closed", ["_klog/topics/orders/log", "orders-0", "orders-1"])
def test_f28_a_directory_without_write_permission(folder: Path, closed: str) -> None:
    log = signed_topic.log_on(LocalStore(), str(folder))
    process_work.prepare(log)
    for directory in ("_klog/topics/orders/log", "orders-0", "orders-1"):
        (folder / directory).chmod(0o555 if directory == closed else 0o777)
    child = Child(process_work.append_as_nobody, folder)
    assert child.wait() == 0
    assert child.output.startswith(f"StoreRefusedError: {folder}/{closed}/")
    assert "not written: Permission denied. Run as a user who may, or give uid" in child.output
    assert signed_topic.records_of(log) == BEFORE
    (folder / closed).chmod(0o777)
    process_work.append_named(log)
    assert signed_topic.records_of(log) == APPENDED


@pytest.mark.parametrize("closed", ["log", "log/00000000000000000003.json", "checkpoints", "gc"])
def test_f28_an_unreadable_file_is_not_a_missing_file(folder: Path, closed: str) -> None:
    """A log does not end earlier because a commit or the expired version cannot be read."""
    log = signed_topic.log_on(LocalStore(), str(folder))
    process_work.prepare(log)
    process_work.checkpoint_and_expire(log)
    state = signed_topic.append(log, log.load(), {1: ["b2"]})
    path = folder / "_klog/topics/orders" / closed.replace("3.json", f"{state.version}.json")
    path.chmod(0)
    child = Child(process_work.load_as_nobody, folder)
    assert child.wait() == 0
    assert "Permission denied. Run as a user who may" in child.output
    assert str(path) in child.output
    path.chmod(0o755)
