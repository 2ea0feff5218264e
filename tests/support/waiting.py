"""Wait for what another process or thread does, and fail with its name if it does not come."""

from __future__ import annotations

import time
from collections.abc import Callable

PAUSE_SECONDS = 0.1
TIMEOUT_SECONDS = 300
"""The longest that a test waits for what has to come: a busy machine takes ten times as long."""


def wait_until(is_done: Callable[[], object], expected: str) -> None:
    """Ask again and again until something is so.

    Args:
        is_done: Returns whether it is.
        expected: What is waited for, for the error.
    """
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not is_done():
        assert time.monotonic() < deadline, f"{expected}: not in {TIMEOUT_SECONDS} s"
        time.sleep(PAUSE_SECONDS)
