"""SIGINT while a command loads its modules: the command ends with exit code 130 and no traceback.

The rule: an import may turn a `KeyboardInterrupt` into any other error, or swallow it. So the
signal ends the process until all modules are loaded; the process has written nothing by then. After
that, Python handles the signal as usual.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130


@contextmanager
def ending_at_once() -> Iterator[None]:
    """End the process on SIGINT while the block runs, unless the process ignores SIGINT.

    Only the main thread gets signals. In another thread the block changes nothing.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
