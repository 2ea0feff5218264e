"""SIGINT ends the process at once: exit code 130 and no traceback.

The rule: this is what a command imports first, so it imports next to nothing itself. Before it,
while Python starts and looks for its modules (some 10 ms), SIGINT does what Python does then.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # The module `typing` takes 2 ms.
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 130


def end_on_sigint() -> None:
    """Make SIGINT end this process from now on, unless it ignores SIGINT."""
    if callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, end_process)


def end_process(_signal: int = signal.SIGINT, _frame: FrameType | None = None) -> NoReturn:
    """End the process as the handler of a signal."""
    os._exit(INTERRUPTED)
