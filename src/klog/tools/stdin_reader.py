"""Read bytes as they arrive at a file descriptor, with a deadline, until a signal ends the reading.

The rule: while a command works on its input, a signal is only remembered; while it waits for more
input, the signal ends the wait. So a signal never interrupts a commit, and the command never waits
for a line that will not come.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import BinaryIO, TypeVar

from klog.errors import OptionError

CHUNK_BYTES = 1 << 20

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

T = TypeVar("T")


class _SignalReceivedError(Exception):
    """Raised by the signal's handler to end a blocking call."""


class Ending:
    """Handles SIGINT and SIGTERM while its block runs; `signal` is the one received, 0 if none.

    Only the main thread receives signals: in another thread the block changes nothing.
    """

    def __init__(self) -> None:
        """Begin without a signal."""
        self.signal = 0
        self._waits = False
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> Ending:
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.signal(number, self._take) for number in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _take(self, number: int, _: FrameType | None) -> None:
        self.signal = number
        if self._waits:
            self._waits = False
            raise _SignalReceivedError

    def wait_for(self, descriptor: int, seconds: float | None) -> bool:
        """Wait until there is input; return False after `seconds` or at a signal."""
        return self._unless_signalled(
            lambda: bool(select.select([descriptor], [], [], seconds)[0]), default=False
        )

    def sleep(self, seconds: float) -> None:
        """Sleep for `seconds`, or until a signal."""
        self._unless_signalled(lambda: time.sleep(max(0.0, seconds)), default=None)

    def _unless_signalled(self, wait: Callable[[], T], default: T) -> T:
        """Return the result of `wait`, or `default` as soon as there is a signal."""
        try:
            # In this order, a signal between the two statements ends the wait too.
            self._waits = True
            result = default if self.signal else wait()
            self._waits = False
        except _SignalReceivedError:
            return default
        return result


def open_input(option: str, path: Path) -> BinaryIO:
    """Open the file that an option names. Raises `OptionError` if that is not possible."""
    try:
        return path.open("rb")
    except OSError as exc:
        raise OptionError(
            f"{option}: {path}: {exc.strerror or exc}. Give a file that can be read"
        ) from exc


def read_input(option: str, path: Path, max_bytes: int) -> bytes:
    """Read the file that an option names, which may be a pipe of unknown size.

    Raises `OptionError` for a file that cannot be opened or has more than `max_bytes`.
    """
    with open_input(option, path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OptionError(
            f"{option}: {path}: it has more than {max_bytes:,} bytes. Give a smaller file"
        )
    return data


class Input:
    """The input of a file descriptor; `is_file` if it is a regular file, which needs no waiting."""

    def __init__(self, descriptor: int, ending: Ending) -> None:
        """Take a descriptor that is open for reading."""
        self._descriptor, self._ending = descriptor, ending
        self.is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)

    def read(self, seconds: float | None) -> bytes | None:
        """Return the next bytes, empty at the end; None after `seconds` or at a signal."""
        if not self.is_file and not self._ending.wait_for(self._descriptor, seconds):
            return None
        if self._ending.signal:
            return None
        return os.read(self._descriptor, CHUNK_BYTES)
