"""Sleep before the next try, for longer after each failure.

The rule: the longest sleep doubles with each try up to `MAX_WAIT_SECONDS`, and each sleep is
random, so that two writers drift apart.
"""

from __future__ import annotations

import random
import time

MAX_WAIT_SECONDS = 2.0


def back_off(tries: int) -> None:
    """Sleep before the next try.

    Args:
        tries: How many tries have failed.
    """
    longest = min(MAX_WAIT_SECONDS, 0.005 * 2 ** min(tries, 12))
    time.sleep(random.uniform(0, longest))  # noqa: S311 - it keeps writers apart, nothing more
