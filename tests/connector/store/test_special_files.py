"""Local disk reads regular files only, waits for nothing else, and names what it refuses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from klog.connector.kafka_dir.broker_lock import is_locked_by_broker
from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.store.local_store import LocalStore
from klog.connector.store.writable_store import PutResult
from klog.errors import NotRegularFileError
from tests.support.special_files import KINDS, no_hang, put

CALLS: dict[str, Callable[[str], object]] = {
    "open": LocalStore().open,
    "read": LocalStore().read,
    "read a small one": lambda path: LocalStore().read(path, 10),
    "put if absent": lambda path: LocalStore().put_if_absent(path, b"1"),
}


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    with no_hang():
        yield


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_special_file_is_refused(tmp_path: Path, kind: str, call: str) -> None:
    path = tmp_path / "x"
    put(kind, path)
    entries = [entry for entry in LocalStore().entries(str(tmp_path)) if entry.name == "x"]
    expected_kind = kind.removeprefix("a link to ").replace("a device", "a character device")
    with pytest.raises(NotRegularFileError, match=f"x: it is {expected_kind}, and has to be a"):
        CALLS[call](str(path))
    # The listing shows it, and does not take it for an empty file.
    assert len(entries) == 1
    assert entries[0].is_directory == ("directory" in kind)
    assert bool(entries[0].special) == ("directory" not in kind)


def test_link_to_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"123")
    (tmp_path / "x").symlink_to("real")
    assert LocalStore().read(str(tmp_path / "x")) == b"123"
    assert LocalStore().put_if_absent(str(tmp_path / "x"), b"1") is PutResult.EXISTS


def test_dangling_link_is_missing_but_takes_the_name(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError):
        LocalStore().read(str(tmp_path / "x"))
    with pytest.raises(NotRegularFileError, match="link to nowhere, which is missing"):
        LocalStore().put_if_absent(str(tmp_path / "x"), b"1")


def test_fifo_that_replaces_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1")
    real = os.open

    def opened(name: str, flags: int, mode: int = 0o777) -> int:
        put("a FIFO", path)
        return real(name, flags, mode)

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(NotRegularFileError, match="x: it is a FIFO"):
        LocalStore().open(str(path))


@pytest.mark.parametrize("kind", KINDS)
def test_special_file_as_lock_locks_nothing(tmp_path: Path, kind: str) -> None:
    put(kind, tmp_path / ".lock")
    assert not is_locked_by_broker(str(tmp_path))


@pytest.mark.parametrize("kind", KINDS)
def test_special_companion_file_counts_as_missing(tmp_path: Path, kind: str) -> None:
    put(kind, tmp_path / "x.index")
    assert read_companion_file(LocalStore(), str(tmp_path / "x.index")) is None
