"""Invalid roots: each command refuses them in one line, whatever is wrong with the path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.connector.store.test_local_store import as_nobody
from tests.support.klog_command import Klog

READS = (
    ("topics", "list"),
    ("topics", "describe"),
    ("configs", "--topic", "t", "--describe"),
    ("consume", "--topic", "t"),
    ("history", "--topic", "t"),
    ("verify",),
)
WRITES = (
    ("topics", "create", "--topic", "t"),
    ("produce", "--topic", "t"),
    ("compact",),
    ("merge",),
    ("retain",),
    ("vacuum",),
    ("vacuum", "--execute"),
    ("adopt",),
)


def _path(kind: str, folder: Path) -> str:
    """Make a path of that kind."""
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    (folder / "file").write_bytes(b"x")
    os.mkfifo(folder / "fifo")
    (folder / "to-fifo").symlink_to("fifo")
    return {
        "empty": "",
        "nul": f"{folder}/a\0b",
        "surrogate": f"{folder}/\ud800",
        "long name": f"{folder}/{'n' * 300}",
        "long path": f"{folder}/{'n/' * 3000}x",
        "/proc": "/proc",
        "in /proc": "/proc/klog/root",
        "in /dev/null": "/dev/null/root",
        "in a file": f"{folder}/file/root",
        "/dev/zero": "/dev/zero",
    }.get(kind, f"{folder}/{kind}")


KINDS = (
    "empty", "nul", "surrogate", "long name", "long path", "in /proc", "in /dev/null", "in a file",
    "/dev/zero", "dangling", "dangling/root", "loop", "loop/root", "file", "fifo",
    "fifo/root", "to-fifo",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", [*READS, *WRITES], ids=" ".join)
def test_a_path_that_can_be_no_root_is_refused_in_one_line(
    klog: Klog, tmp_path: Path, kind: str, verb: tuple[str, ...]
) -> None:
    _refuses(klog, *verb, "--root", _path(kind, tmp_path))


def test_a_root_in_a_file_system_that_makes_no_directories(klog: Klog) -> None:
    _refuses(klog, "topics", "create", "--topic", "t", "--root", "/proc")


def test_a_dangling_link_as_root_is_named(klog: Klog, tmp_path: Path) -> None:
    path = _path("dangling", tmp_path)
    err = _refuses(klog, "topics", "create", "--topic", "t", "--root", path)
    assert f"{path}: it is a link to nowhere, which is missing" in err


def test_a_root_below_a_directory_that_may_not_be_written(klog: Klog, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    folder.chmod(0o555)
    with as_nobody():
        _refuses(klog, "topics", "create", "--topic", "t", "--root", str(folder / "a/root"))


@pytest.mark.parametrize("kind", KINDS)
def test_an_import_from_nowhere(klog: Klog, tmp_path: Path, kind: str) -> None:
    path = _path(kind, tmp_path)
    _refuses(klog, "import-log", "--from", path, "--root", str(tmp_path / "root"))


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_to_nowhere(klog: Klog, tmp_path: Path, kind: str) -> None:
    root = str(tmp_path / "root")
    assert klog("topics", "create", "--topic", "t", "--root", root).code == 0
    _refuses(klog, "export-log", "--to", _path(kind, tmp_path), "--root", root)


def _refuses(klog: Klog, *arguments: str) -> str:
    result = klog(*arguments)
    assert result.code == 1
    assert result.err.startswith("klog: ")
    assert result.err.count("\n") == 1
    return result.err
