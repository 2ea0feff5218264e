"""Local disk reads regular files only: it waits for nothing else, and says what stands there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from klog.connector.log.beside import read_beside
from klog.connector.log.lock import is_held
from klog.connector.store.contract import Put
from klog.connector.store.local import LocalStore
from klog.errors import NotRegularFileError
from tests.special_files import KINDS, no_hang, put

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
def test_what_is_no_regular_file_is_refused(tmp_path: Path, kind: str, call: str) -> None:
    path = tmp_path / "x"
    put(kind, path)
    known = [entry for entry in LocalStore().entries(str(tmp_path)) if entry.name == "x"]
    what = kind.removeprefix("a link to ").replace("a device", "a character device")
    with pytest.raises(NotRegularFileError, match=f"x: it is {what}, and a regular file has to"):
        CALLS[call](str(path))
    # The listing shows it, and does not take it for an empty file.
    assert len(known) == 1
    assert known[0].is_directory == ("directory" in kind)
    assert bool(known[0].special) == ("directory" not in kind)


def test_a_regular_file_behind_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"123")
    (tmp_path / "x").symlink_to("real")
    assert LocalStore().read(str(tmp_path / "x")) == b"123"
    assert LocalStore().put_if_absent(str(tmp_path / "x"), b"1") is Put.EXISTS


def test_a_name_that_a_dangling_link_has_is_not_there_and_not_free(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError):
        LocalStore().read(str(tmp_path / "x"))
    with pytest.raises(NotRegularFileError, match="link to nowhere, which is not there"):
        LocalStore().put_if_absent(str(tmp_path / "x"), b"1")


def test_a_fifo_that_takes_the_name_of_a_file_meanwhile(
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
def test_a_lock_that_is_no_file_holds_nothing(tmp_path: Path, kind: str) -> None:
    put(kind, tmp_path / ".lock")
    assert not is_held(str(tmp_path))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_beside_a_log_that_is_none_is_as_one_that_is_missing(
    tmp_path: Path, kind: str
) -> None:
    put(kind, tmp_path / "x.index")
    assert read_beside(LocalStore(), str(tmp_path / "x.index")) is None
