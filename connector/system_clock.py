"""The clock of this machine."""

from __future__ import annotations

import random
import time

MAX_WAIT_SECONDS = 2.0


def now_ms() -> int:
    """Return the time of this machine, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def back_off(tries: int) -> None:
    """Sleep before the next try.

    The longest sleep doubles with each try. Each sleep is random, so that two writers drift apart.

    Args:
        tries: How many tries have failed.
    """
    longest = min(MAX_WAIT_SECONDS, 0.005 * 2 ** min(tries, 12))
    time.sleep(random.uniform(0, longest))  # noqa: S311 - it keeps writers apart, nothing more
