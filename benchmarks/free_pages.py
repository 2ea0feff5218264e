"""Free as many pages of memory before each write as any write needs.

The rule: a virtual machine returns free pages to its host, and gets others slowly. To write 240 MB
took 0.1 s of system time with the pages of files that had just been deleted, and up to 0.9 s with
others. So in turns a write would depend on what the one before it has deleted.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable

CHUNK = bytes(1 << 20)


def refill(size_bytes: int) -> Callable[[], None]:
    """Return a function that takes so many bytes of the page cache and frees them."""

    def run() -> None:
        gc.collect()
        with tempfile.TemporaryFile() as file:
            for _ in range(0, size_bytes, len(CHUNK)):
                file.write(CHUNK)

    return run
