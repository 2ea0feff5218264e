"""The clock of this machine, in milliseconds since the epoch."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the time of this machine, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
