"""Bytes as they arrive at a file descriptor, with a deadline, and signals that end the reading.

The rule: while a command works with what it has read, a signal to end is only kept in mind; while
it waits for more, the signal ends the waiting. So nothing is torn in the middle of a commit, and
nobody waits for a line that will not come.
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
from typing import TypeVar

from klog.errors import OptionError

CHUNK_BYTES = 1 << 20

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

T = TypeVar("T")


class _AskedToEndError(Exception):
    """Raised by the signal's handler, to leave a call that waits."""


class Ending:
    """Takes SIGINT and SIGTERM while its block runs; `signal` is the one that came, 0 if none.

    Signals reach the main thread alone: elsewhere the block changes nothing.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.signal = 0
        self._waits = False
        self._usual: dict[int, object] = {}

    def __enter__(self) -> Ending:
        if threading.current_thread() is threading.main_thread():
            self._usual = {one: signal.signal(one, self._take) for one in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one, handler in self._usual.items():
            signal.signal(one, handler)  # type: ignore[arg-type]

    def _take(self, number: int, _: FrameType | None) -> None:
        self.signal = number
        if self._waits:
            self._waits = False
            raise _AskedToEndError

    def wait_for(self, descriptor: int, seconds: float | None) -> bool:
        """Wait until there is something to read; False if the time passed or a signal came."""
        return self._unless_asked(
            lambda: bool(select.select([descriptor], [], [], seconds)[0]), asked=False
        )

    def sleep(self, seconds: float) -> None:
        """Sleep, until a signal comes."""
        self._unless_asked(lambda: time.sleep(max(0.0, seconds)), asked=None)

    def _unless_asked(self, wait: Callable[[], T], asked: T) -> T:
        """Wait; gives `asked` at once when a signal comes, or if one has come."""
        try:
            # In this order: a signal that comes between the two ends what it would have missed.
            self._waits = True
            found = asked if self.signal else wait()
            self._waits = False
        except _AskedToEndError:
            return asked
        return found


def read_input(path: Path, max_bytes: int) -> bytes:
    """Read a file that a command was given, which may be a pipe and say nothing of its size.

    Raises `OptionError` for one of more than `max_bytes`.
    """
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OptionError(f"{path}: it has more than {max_bytes:,} bytes. Give a smaller file")
    return data


class Input:
    """What arrives at a file descriptor. `is_file`: all of it is there and nobody waits."""

    def __init__(self, descriptor: int, ending: Ending) -> None:
        """Take a descriptor that is open for reading."""
        self._descriptor, self._ending = descriptor, ending
        self.is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)

    def read(self, seconds: float | None) -> bytes | None:
        """Read some bytes, none at the end; None if none came in time or a signal did."""
        if not self.is_file and not self._ending.wait_for(self._descriptor, seconds):
            return None
        if self._ending.signal:
            return None
        return os.read(self._descriptor, CHUNK_BYTES)
