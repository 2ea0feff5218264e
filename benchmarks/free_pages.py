"""Give every write the same free pages of memory.

The rule: a virtual machine gives free pages back to its host, and gets them again slowly. A write
that finds the pages of files that were just deleted takes less CPU than one that needs new ones:
0.1 s of a process for 240 MB, and up to 0.9 s. So before each write as many pages as any of them
needs are taken and freed.
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
