"""A process that holds a log directory as a broker's Java does: by a POSIX lock on `.lock`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(root: Path) -> Iterator[Path]:
    """Hold a log directory; it is free again after the block."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(root / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield root
        process.stdin.close()
