"""Local disk: the order of syncs, and every call that can fail, failing."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from klog.connector.store.local_store import LocalStore
from klog.connector.store.temporary_names import TEMPORARY_NAME, random_id, temporary_path
from klog.connector.store.writable_store import PutResult
from klog.errors import KlogError, StoreRefusedError

NOBODY = 65534
CALLS = (
    "open",
    "write",
    "fsync",
    "link",
    "replace",
    "mkdir",
    "unlink",
    "close",
    "posix_fadvise",
)


class Calls:
    """Records calls of the kernel, and lets the n-th call fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.fail_at = -1
        self.error = errno.EIO
        self._paths: dict[int, str] = {}
        for name in filter(partial(hasattr, os), CALLS):
            monkeypatch.setattr(os, name, self._recorded(name, getattr(os, name)))

    def _recorded(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            first = self._paths.get(arguments[0], arguments[0])
            self.names.append(f"{name} {os.path.basename(str(first))}")  # noqa: PTH119
            if len(self.names) - 1 == self.fail_at:
                if name == "close":
                    real(*arguments, **named)
                raise OSError(self.error, os.strerror(self.error), str(first))
            result = real(*arguments, **named)
            if name == "open":
                self._paths[result] = str(first)
            return result

        return call


def fixed_id() -> str:
    return "0123456789abcdef"


STAGED = [
    "open .x.0123456789abcdef.tmp",
    "mkdir b",
    "mkdir a",
    "open root",
    "fsync root",
    "close root",
    "mkdir b",
    "open a",
    "fsync a",
    "close a",
    "open .x.0123456789abcdef.tmp",
    "write .x.0123456789abcdef.tmp",
    "fsync .x.0123456789abcdef.tmp",
    "close .x.0123456789abcdef.tmp",
]
"""The calls before the final name: bytes and directories are durable then."""

SYNC_DIRECTORY = ["open b", "fsync b", "close b", "unlink .x.0123456789abcdef.tmp"]


@pytest.mark.parametrize("named", ["link", "replace"])
def test_name_comes_after_the_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    (tmp_path / "root").mkdir()
    store = LocalStore(fixed_id)
    calls = Calls(monkeypatch)
    path = str(tmp_path / "root/a/b/x")
    if named == "link":
        store.put_if_absent(path, b"1")
    else:
        store.put(path, [b"1"])
    expected = [*STAGED, f"{named} .x.0123456789abcdef.tmp", *SYNC_DIRECTORY]
    assert calls.names == expected


def test_commit_costs_two_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the bytes before the name, one of the directory after it."""
    store = LocalStore(fixed_id)
    store.put_if_absent(str(tmp_path / "b/w"), b"0")
    calls = Calls(monkeypatch)
    store.put_if_absent(str(tmp_path / "b/x"), b"1")
    assert calls.names == [*STAGED[-4:], "link .x.0123456789abcdef.tmp", *SYNC_DIRECTORY]


@pytest.mark.parametrize("refused", [False, True])
def test_writeback_of_a_large_file_starts_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, refused: bool
) -> None:
    """A kernel that refuses the advice writes the file all the same."""
    chunk = bytes(range(256)) * (5 << 12)
    store, calls = LocalStore(fixed_id), Calls(monkeypatch)
    calls.fail_at = 3 if refused else -1
    store.put(str(tmp_path / "x"), [chunk] * 4)
    names = [call.split()[0] for call in calls.names[:8]]
    written = ["open", "write", "write", "posix_fadvise", "write", "write", "fsync", "close"]
    assert names == written
    assert (tmp_path / "x").read_bytes() == chunk * 4


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("operation", ["put_if_absent", "put"])
def test_each_failing_call_leaves_a_complete_file_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, error: int
) -> None:
    """Whichever call fails: an error or UNKNOWN, a complete file or none, no second file."""
    for number in range(100):
        path = tmp_path / str(number) / "x"
        with monkeypatch.context() as patched:
            calls = Calls(patched)
            calls.fail_at, calls.error = number, error
            result = run(operation, path)
        failed = calls.names[number] if number < len(calls.names) else "none"
        names = [file.name for file in path.parent.iterdir()] if path.parent.exists() else []
        assert all(path.read_bytes() == b"whole" for name in names if name == "x")
        if "unlink" not in failed:
            assert names in (["x"], [])
        if result is PutResult.CREATED:
            assert "x" in names
        if isinstance(result, KlogError):
            assert f"{path}: not written: {os.strerror(error)}" in str(result)
            if operation == "put_if_absent":
                assert names == []
        if failed == "none":
            assert result is PutResult.CREATED
            return
    raise AssertionError("it never ended")


def run(operation: str, path: Path) -> PutResult | KlogError:
    try:
        if operation == "put_if_absent":
            return LocalStore(fixed_id).put_if_absent(str(path), b"whole")
        LocalStore(fixed_id).put(str(path), [b"who", b"le"])
    except KlogError as exc:
        return exc
    return PutResult.CREATED


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    """Set the umask of the process, which is put back in the end."""
    mask = os.umask(0o022)
    yield os.umask
    os.umask(mask)


@pytest.mark.parametrize("named", ["put", "put_if_absent"])
@pytest.mark.parametrize(
    ("mask", "of_file", "of_folder"), [(0, 0o666, 0o777), (0o027, 0o640, 0o750)]
)
def test_umask_decides_the_permissions(
    tmp_path: Path,
    umask: Callable[[int], int],
    named: str,
    mask: int,
    of_file: int,
    of_folder: int,
) -> None:
    """Of a file in a new directory, and of one in a directory that exists."""
    umask(mask)
    for name in ("a/b/x", "a/b/y"):
        if named == "put":
            LocalStore().put(str(tmp_path / name), [b"1"])
        else:
            LocalStore().put_if_absent(str(tmp_path / name), b"1")
        assert (tmp_path / name).stat().st_mode & 0o777 == of_file
    for folder in ("a", "a/b"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == of_folder


def test_lost_answer_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def link(*arguments: Any) -> None:
        real(*arguments)
        raise OSError(errno.ETIMEDOUT, "the server does not answer")

    monkeypatch.setattr(os, "link", link)
    assert LocalStore().put_if_absent(str(tmp_path / "x"), b"1") is PutResult.UNKNOWN
    assert (tmp_path / "x").read_bytes() == b"1"


def test_disk_without_hard_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    calls.error = errno.EPERM
    calls.fail_at = 4  # open, write, fsync, close, link
    with pytest.raises(
        StoreRefusedError, match="x: not written: this file system makes no hard links"
    ):
        LocalStore().put_if_absent(str(tmp_path / "x"), b"1")
    assert calls.names[4].startswith("link")
    assert list(tmp_path.iterdir()) == []


@contextmanager
def as_nobody() -> Iterator[None]:
    """Run as a user without rights if the tests run as root; otherwise they have none."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def locked() -> Iterator[str]:
    """A directory that may be read and not written, with a file that may not be read."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "x").write_bytes(b"1")
        (Path(folder) / "x").chmod(0)
        Path(folder).chmod(0o555)
        with as_nobody():
            yield folder
        Path(folder).chmod(0o700)
        assert [file.name for file in Path(folder).iterdir()] == ["x"]


def test_forbidden_is_not_missing(locked: str) -> None:
    store = LocalStore()
    with pytest.raises(
        StoreRefusedError, match=f"{locked}/x: not read: Permission denied. Run as a user"
    ):
        store.open(f"{locked}/x")
    with pytest.raises(StoreRefusedError, match=f"{locked}/x: not read: Permission denied"):
        store.read(f"{locked}/x")
    with pytest.raises(StoreRefusedError, match=f"{locked}/y: not written: Permission denied"):
        store.put_if_absent(f"{locked}/y", b"")
    with pytest.raises(StoreRefusedError, match=f"{locked}/y: not written: Permission denied"):
        store.put(f"{locked}/y", [b""])
    with pytest.raises(StoreRefusedError, match=f"{locked}/x: not deleted: Permission denied"):
        store.delete(f"{locked}/x")
    with pytest.raises(FileNotFoundError):
        store.read(f"{locked}/none")


def test_read_error_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pread(*arguments: Any) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (tmp_path / "x").write_bytes(b"1")
    file = LocalStore().open(str(tmp_path / "x"))
    monkeypatch.setattr(os, "pread", pread)
    with pytest.raises(
        KlogError, match=r"x: not read: Input/output error\. Check the path and the"
    ):
        file.read(0, 1)
    file.close()


def test_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    with pytest.raises(
        StoreRefusedError, match=r"x/y: not written: .*Not a directory.*Check the path"
    ):
        LocalStore().put_if_absent(str(tmp_path / "x/y"), b"2")


def test_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreRefusedError, match="not written: File name too long"):
        LocalStore().put_if_absent(str(tmp_path / ("x" * 300)), b"2")


def test_names_of_temporary_files() -> None:
    path = temporary_path("/a/b/00000000000000000000.json", random_id)
    directory, name = os.path.split(path)
    match = TEMPORARY_NAME.fullmatch(name)
    assert directory == "/a/b"
    assert match is not None
    assert match["name"] == "00000000000000000000.json"
    assert temporary_path("x", fixed_id) == ".x.0123456789abcdef.tmp"
    assert random_id() != random_id()
    for other in ("00000000000000000000.json", ".x.tmp", "x.0123456789abcdef.tmp", ".kafka_clean"):
        assert TEMPORARY_NAME.fullmatch(other) is None


def test_temporary_file_of_a_killed_writer_is_recognised(tmp_path: Path) -> None:
    temporary = tmp_path / temporary_path("x", random_id)
    temporary.write_bytes(b"half")
    store = LocalStore()
    assert store.put_if_absent(str(tmp_path / "x"), b"whole") is PutResult.CREATED
    names = [entry.name for entry in store.entries(str(tmp_path))]
    assert [bool(TEMPORARY_NAME.fullmatch(name)) for name in names] == [True, False]
