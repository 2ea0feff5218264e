"""Copies of checkpoints: complete or not there, and none while the query writes."""

from __future__ import annotations

import errno
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klog.connector.spark_checkpoint.checkpoint_copy import UNFINISHED, CopyReport, copy_checkpoint
from klog.connector.store.local_store import LocalStore
from klog.errors import KlogError, OptionError
from tests.connector.spark_checkpoint.written_checkpoint import (
    COMMIT,
    contents,
    write_checkpoint,
    write_named,
)

ENDS: list[Any] = [{"t": {"0": 5}}, {"t": {"0": 9}}]
SECONDS = 10.0


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "kafka", ENDS)


def copy(
    source: Path | str, target: Path | str, meanwhile: Callable[[], object] = list, **options: Any
) -> CopyReport:
    """Copy a checkpoint; while it is watched, something may happen."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        meanwhile()

    report = copy_checkpoint(
        str(source), str(target), watch_seconds=SECONDS, sleep=sleep, **options
    )
    assert slept == [SECONDS]
    return report


def is_empty(directory: Path) -> bool:
    return not directory.exists() or contents(directory) == {}


def test_a_copy_has_all_but_the_sources(checkpoint: Path, tmp_path: Path) -> None:
    write_named(checkpoint / "state/0/0/2.delta.crc", "a checksum of Spark's own")
    before = contents(checkpoint)
    report = copy(checkpoint, tmp_path / "klog")
    names = {name for name in before if not name.startswith("sources/") and "/." not in name}
    expected = {name: before[name] for name in names - {".metadata.crc"}}
    assert contents(tmp_path / "klog") == expected
    assert contents(checkpoint) == before
    assert report.files == len(expected)
    assert report.size_bytes == sum(map(len, expected.values()))


def test_a_file_of_many_reads(checkpoint: Path, tmp_path: Path) -> None:
    state = bytes(range(256)) * (9 << 12)
    (checkpoint / "state/0/0/2.snapshot").write_bytes(state)
    copy(checkpoint, tmp_path / "klog")
    assert (tmp_path / "klog/state/0/0/2.snapshot").read_bytes() == state


def test_the_first_batch_is_rewritten(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "kafka", ENDS[:1], committed=0)
    copy(checkpoint, tmp_path / "klog")
    assert '"#start":{"t":{"0":0}}' in (tmp_path / "klog/offsets/0").read_text()


def test_a_dry_run_writes_nothing(checkpoint: Path, tmp_path: Path) -> None:
    report = copy(checkpoint, tmp_path / "klog", dry_run=True)
    assert not (tmp_path / "klog").exists()
    done = copy(checkpoint, tmp_path / "klog")
    assert (report.files, report.size_bytes) == (done.files, done.size_bytes)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    "name", ["commits/2", "offsets/2", "offsets/.2.17c1.tmp", "state/0/0/3.delta"]
)
def test_a_query_that_writes_while_it_is_watched(
    checkpoint: Path, tmp_path: Path, name: str, dry_run: bool
) -> None:
    with pytest.raises(KlogError, match=rf"the query still runs: {name} has changed. Stop it"):
        copy(
            checkpoint,
            tmp_path / "klog",
            lambda: (checkpoint / name).write_text(COMMIT),
            dry_run=dry_run,
        )
    assert not (tmp_path / "klog").exists()


def test_a_query_that_replaces_a_file(checkpoint: Path, tmp_path: Path) -> None:
    def replace() -> None:
        text = (checkpoint / "offsets/1").read_text()
        (checkpoint / "new").write_text(text)
        (checkpoint / "new").rename(checkpoint / "offsets/1")

    with pytest.raises(KlogError, match="offsets/1 has changed"):
        copy(checkpoint, tmp_path / "klog", replace)


@pytest.mark.parametrize("change", ["adds", "deletes"])
def test_a_query_that_writes_during_the_copy(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The copy is deleted. A target of an interrupted copy has no id that Spark would take."""
    put = LocalStore.put

    def put_meanwhile(self: LocalStore, path: str, chunks: Any) -> None:
        if path.endswith("/commits/0"):
            assert (tmp_path / "klog/metadata").read_bytes() == UNFINISHED
            if change == "adds":
                (checkpoint / "offsets/2").write_text("v1")
            else:
                shutil.rmtree(checkpoint / "state/0")
        put(self, path, chunks)

    monkeypatch.setattr(LocalStore, "put", put_meanwhile)
    with pytest.raises(KlogError, match="the query still runs"):
        copy(checkpoint, tmp_path / "klog")
    assert is_empty(tmp_path / "klog")


def test_a_full_disk_leaves_no_files(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalStore.put

    def put_or_fail(self: LocalStore, path: str, chunks: Any) -> None:
        if path.endswith("/state/0/0/1.delta"):
            raise OSError(errno.ENOSPC, "No space left on device")
        put(self, path, chunks)

    with monkeypatch.context() as patches:
        patches.setattr(LocalStore, "put", put_or_fail)
        with pytest.raises(OSError, match="No space left"):
            copy(checkpoint, tmp_path / "klog")
    assert is_empty(tmp_path / "klog")
    copy(checkpoint, tmp_path / "klog")


@pytest.mark.parametrize("name", ["metadata", "state/0/0/9.delta", "anything"])
def test_a_target_with_files(checkpoint: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "klog" / name).parent.mkdir(parents=True)
    (tmp_path / "klog" / name).touch()
    with pytest.raises(OptionError, match="klog has files already"):
        copy(checkpoint, tmp_path / "klog")


def test_two_copies_to_one_place(checkpoint: Path, tmp_path: Path) -> None:
    """The second one finds the target empty, and the first one is there before it writes."""
    with pytest.raises(OptionError, match="klog has files already"):
        copy(checkpoint, tmp_path / "klog", lambda: copy(checkpoint, tmp_path / "klog"))
    assert "offsets/1" in contents(tmp_path / "klog")


@pytest.mark.parametrize("target", ["kafka", "kafka/copy", "kafka/"])
def test_a_target_in_the_source(checkpoint: Path, tmp_path: Path, target: str) -> None:
    with pytest.raises(OptionError, match="cannot be in the checkpoint"):
        copy(checkpoint, f"{tmp_path}/{target}")
    with pytest.raises(OptionError, match="cannot be in the checkpoint"):
        copy(checkpoint, tmp_path)


def test_an_unfinished_batch_of_version_2(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    checkpoint = write_checkpoint(tmp_path / "kafka", ENDS, committed=1, version="v2")
    with caplog.at_level(logging.WARNING, "klog"):
        copy(checkpoint, tmp_path / "klog")
    assert "Spark 4.2.0 cannot restart" in caplog.text
    caplog.clear()
    finished = write_checkpoint(tmp_path / "finished", ENDS, version="v2")
    copy(finished, tmp_path / "second")
    assert caplog.text == ""


def test_another_store(checkpoint: Path) -> None:
    copy(checkpoint, "memory://checkpoints/a")
    copy("memory://checkpoints/a", "memory://checkpoints/b")
    with pytest.raises(OptionError, match="has files already"):
        copy(checkpoint, "memory://checkpoints/b")
    with pytest.raises(OptionError, match="cannot write to"):
        copy(checkpoint, "gs://bucket/checkpoint")
