"""What happens when a file that was listed has gone.

The rule: a broker renames and deletes files while they are read, and a file that is gone, or
belongs to another name, is not damage. The partition is listed again, a few times at once; after
that the whole root, with a growing pause (`retry_stale_listing`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from klog.connector.back_off import back_off
from klog.errors import ChangedDuringReadError

MAX_STALE_LISTINGS = 12
"""Together some seconds: on a busy machine a reader may be suspended while a broker cleans."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


def retry_stale_listing(read: Callable[[], T], wait: Callable[[int], None] = back_off) -> T:
    """Return what `read` returns; call it again if a file that it listed is gone.

    Args:
        read: Lists and reads. It raises `FileNotFoundError` if a listed file is gone.
        wait: Takes the number of tries so far, and sleeps.

    Raises:
        ChangedDuringReadError: If files are gone in every try.
    """
    for tries in range(1, MAX_STALE_LISTINGS):
        try:
            return read()
        except FileNotFoundError as exc:
            _log.info("%s; listing again", exc)
            wait(tries)
    try:
        return read()
    except FileNotFoundError as exc:
        raise ChangedDuringReadError(
            f"files vanish as fast as they are listed ({exc}); try again when the broker or the "
            "job that deletes them has finished"
        ) from exc
