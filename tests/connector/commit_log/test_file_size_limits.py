"""Files of a log that are larger than they can be: refused by their size, and not read."""

from __future__ import annotations

import os
import resource
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import klog
from klog.cli import main
from klog.connector.commit_log import (
    background_checkpointer,
    checkpoint_schedule,
    checkpoint_writer,
    commit_builders,
    commit_expiration,
    commit_json,
    commit_sidecar,
    file_size_limits,
    parquet_tables,
    snapshot_leases,
    state_checkpoint,
)
from klog.connector.commit_log.checkpoint_parts import Part
from klog.connector.commit_log.commit import Actions, Commit
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import CheckpointName, SidecarName
from klog.connector.commit_log.file_size_limits import MAX_TABLE_BYTES
from klog.connector.commit_log.past_versions import load_version
from klog.connector.commit_log.root_discovery import find_root
from klog.errors import FileTooLargeError, InvalidFileError, KlogError
from tests.connector.committed_topic import table

HUGE = 1 << 30
PIN = "0123456789abcdef"
VERBS = ("describe", "append", "verify", "consume")


def new_root(folder: Path) -> tuple[str, CommitLog]:
    """Create a root with a topic, and two commits after its creation."""
    path = str(folder / "root")
    log = klog.open(path)
    log.create_topic("t", 1)
    for first in (0, 10):
        log.append("t", table(first, 10))
    return path, log_of(path)


def log_of(path: str) -> CommitLog:
    root = find_root(path)
    assert root is not None
    return root.log("t")


def grow(path: str) -> None:
    """Make it a GiB, most of it a hole."""
    with Path(path).open("ab"):
        os.truncate(path, HUGE)


@pytest.fixture(autouse=True)
def _is_not_read() -> object:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown_bytes < HUGE // 4


def test_a_commit(tmp_path: Path) -> None:
    path, log = new_root(tmp_path)
    grow(log.paths.commit(3))
    with pytest.raises(FileTooLargeError, match=rf"3.json: it has {HUGE} bytes.* at most 33554432"):
        log_of(path).load()


def test_the_format_of_a_root(tmp_path: Path) -> None:
    path, _ = new_root(tmp_path)
    grow(f"{path}/_klog/format.json")
    with pytest.raises(
        FileTooLargeError, match=rf"format.json: it has {HUGE} bytes.*at most 1048576"
    ):
        find_root(path)


def test_a_pin_keeps_all(tmp_path: Path) -> None:
    _, log = new_root(tmp_path)
    snapshot_leases.take_lease(log, PIN, 2, 60_000)
    assert snapshot_leases.min_leased_version(log, snapshot_leases.read_leases(log)) == 2
    grow(log.paths.lease(PIN))
    assert snapshot_leases.min_leased_version(log, snapshot_leases.read_leases(log)) == 0


def test_a_checkpoint_and_its_parts_are_passed_over(tmp_path: Path) -> None:
    path, log = new_root(tmp_path)
    state = log.load()
    checkpoint_writer.write_checkpoint(log, state)
    for folder in (log.paths.checkpoints, log.paths.parts):
        for name in log.names(folder):
            grow(f"{folder}/{name}")
            assert log_of(path).load().version == state.version


def sparse(path: str, size_bytes: int) -> None:
    """Make a file that is a hole."""
    Path(path).parent.mkdir(exist_ok=True)
    with Path(path).open("wb"):
        os.truncate(path, size_bytes)


@pytest.mark.parametrize("size_bytes", [3 << 30, MAX_TABLE_BYTES])
@pytest.mark.parametrize("kind", ["checkpoint", "part"])
def test_a_checkpoint_or_part_is_not_believed_what_its_name_says_of_its_size(
    tmp_path: Path, kind: str, size_bytes: int
) -> None:
    """One of any size that a name may say stays out of memory, and the state is read without it."""
    path, log = new_root(tmp_path)
    state = log.load()
    name = CheckpointName(state.version, size_bytes, 7)
    if kind == "checkpoint":
        sparse(log.paths.checkpoint(name), size_bytes)
    else:
        sparse(log.paths.part(name), size_bytes)
        own_name, data = state_checkpoint.encode_checkpoint(state, [Part(name, 0, 1, 5)])
        log.store.put_if_absent(log.paths.checkpoint(own_name), data)
    assert log_of(path).load().version == state.version
    assert commit_expiration.expire_log(log, 0) == -1
    checkpoint_writer.write_checkpoint(log, state)


@pytest.mark.parametrize(
    ("verb", "size_bytes"),
    [*((verb, 3 << 30) for verb in VERBS), ("describe", MAX_TABLE_BYTES)],
)
def test_a_sidecar_is_not_believed_what_its_name_says_of_its_size(
    tmp_path: Path, size_bytes: int, verb: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path, log = new_root(tmp_path)
    state = log.load()
    name = SidecarName(state.version + 1, PIN, size_bytes, 7)
    sparse(log.paths.sidecar(name), size_bytes)
    last = commit_of(log, state.version)
    commit = replace(last, version=name.version, sidecar=name, actions=Actions())
    commit = replace(commit, timestamp_ms=last.timestamp_ms + 1)
    log.store.put_if_absent(log.paths.commit(name.version), commit_json.encode_commit(commit))
    if verb == "append":
        with pytest.raises(InvalidFileError, match=f"{name}: i.*Restore"):
            klog.open(path).append("t", table(20, 10))
        return
    words = {"describe": ["topics", "describe"], "consume": ["consume", "--topic", "t"]}
    assert main([*words.get(verb, [verb]), "--root", path]) == 1
    captured = capsysbinary.readouterr()
    assert str(name).encode() in captured.err + captured.out
    assert captured.err.count(b"\n") <= 1


def commit_of(log: CommitLog, version: int) -> Commit:
    commit = log.read_without_sidecar(version)
    assert commit is not None
    return commit


@pytest.mark.parametrize("name", ["topic.json", "_klog/adopting.json", "an expiration file"])
def test_small_files(tmp_path: Path, name: str) -> None:
    path, log = new_root(tmp_path)
    if name == "topic.json":
        grow(log.paths.description)
        with pytest.raises(FileTooLargeError, match=r"topic.json: it has .* at most 1048576"):
            klog.open(path).describe("t")
    elif name == "an expiration file":
        checkpoint_writer.write_checkpoint(log, load_version(log, 1, log.load()))
        sparse(log.paths.expiration(0), HUGE)
        with pytest.raises(FileTooLargeError, match=r"gc/0+: it has .* at most 1048576"):
            commit_expiration.expire_log(log, 0)
    else:
        Path(path, "_klog/format.json").unlink()
        sparse(f"{path}/{name}", HUGE)
        with pytest.raises(FileTooLargeError, match=r"adopting.json: it has .* at most 1048576"):
            klog.open(path).topics()


def test_no_commit_is_written_that_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = new_root(tmp_path)
    state = log.load()
    monkeypatch.setattr(commit_json, "MAX_COMMIT_BYTES", 300)
    build = commit_builders.alter_config(state.topic_id, state.config, {"retention.ms": "1" * 300})
    with pytest.raises(KlogError, match=r"commit 3 of t would have \d+ bytes, at most 300 .* less"):
        log.commit(state, build, CommitInfo("w" * 32, "alter-config", "e"))
    monkeypatch.undo()
    assert log_of(path).load().version == 2


@pytest.mark.parametrize("of", [(commit_sidecar, "MAX_TABLE_BYTES"), (parquet_tables, "MAX_ROWS")])
def test_no_sidecar_is_written_that_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: tuple[ModuleType, str]
) -> None:
    path, log = new_root(tmp_path)
    monkeypatch.setattr(commit_sidecar, "MAX_JSON_BYTES", 10)
    monkeypatch.setattr(*of, 0)
    words = r"commit 3 \(append\) would have .*, at most 0 are read; nothing was committed. Write"
    with pytest.raises(KlogError, match=words):
        klog.open(path).append("t", table(20, 10))
    monkeypatch.undo()
    assert log_of(path).load().version == 2
    assert log.names(log.paths.sidecars) == []


def test_no_checkpoint_is_written_that_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Commits go on, and a warning says so."""
    path, log = new_root(tmp_path)
    monkeypatch.setattr(checkpoint_writer, "MAX_TABLE_BYTES", 10)
    monkeypatch.setattr(checkpoint_schedule, "MIN_COMMITS", 1)
    writer = background_checkpointer.BackgroundCheckpointer()
    writer.offer(log, log.load())
    writer.join()
    assert "no checkpoint of version" in caplog.text
    assert "a checkpoint's file would have" in caplog.text
    assert log.names(log.paths.checkpoints) == []
    klog.open(path).append("t", table(20, 10))


def test_a_large_file_that_is_what_its_name_says_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = new_root(tmp_path)
    name = checkpoint_writer.write_checkpoint(log, log.load())
    monkeypatch.setattr(file_size_limits, "_MAX_READ_BYTES", 1000)
    assert log_of(path).load().checkpoint == name
    with Path(log.paths.checkpoint(name)).open("r+b") as file:
        file.seek(2000)
        file.write(b"\0\1\2\3")
    with pytest.raises(InvalidFileError, match=f"{name}: its length or its CRC-32C is not the one"):
        file_size_limits.read_named(log.store, log.paths.checkpoint(name), name)
    assert log_of(path).load().checkpoint is None
