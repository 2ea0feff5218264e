"""What may be in a file's place on local disk and is not a regular file."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LIMIT_SECONDS = 60


def _socket(path: Path) -> None:
    was = Path.cwd()
    os.chdir(path.parent)  # A socket's path has 107 bytes at most.
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name[:100])
        Path(path.name[:100]).rename(path.name)
    finally:
        os.chdir(was)


def _link_to_fifo(path: Path) -> None:
    target = path.with_name(f"{path.name}.target")
    target.unlink(missing_ok=True)
    os.mkfifo(target)
    path.symlink_to(target.name)


KINDS: dict[str, Callable[[Path], None]] = {
    "a FIFO": os.mkfifo,
    "a socket": _socket,
    "a directory": Path.mkdir,
    "a link to a FIFO": _link_to_fifo,
    "a link to a directory": lambda path: path.symlink_to("/"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a loop of links": lambda path: path.symlink_to(path.name),
}
"""How to create each kind at a path that does not exist."""


def put(kind: str, path: Path) -> None:
    """Replace what is at a path by a kind of special file."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](path)


@contextmanager
def no_hang() -> Iterator[None]:
    """End a call that waits for ever with an error, which says more than a test that hangs."""

    def end(*_: object) -> None:
        raise AssertionError(f"it waits, for more than {LIMIT_SECONDS} s")

    usual = signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, usual)
