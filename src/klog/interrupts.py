"""SIGINT while a command loads its modules: it ends at once, by exit code 130, with no traceback.

The rule: an import may make any error of a `KeyboardInterrupt`, or none. So until all is loaded the
signal ends the process itself, which has written nothing yet; afterwards it is Python's own.
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
    """End the process by SIGINT while the block runs; a signal that is ignored stays ignored.

    Signals reach the main thread alone: elsewhere the block changes nothing.
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
