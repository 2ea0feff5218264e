"""Run a command so that what it took of the cores is known: `python -m tools.step_process make x`.

The rule: processes that outlive the command, such as PySpark's JVM, become children of this
process (`PR_SET_CHILD_SUBREAPER`), which waits for them. So their CPU time is part of this
process's. What is still there after `PATIENCE_SECONDS` is killed and named. The exit code is the
command's.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

PATIENCE_SECONDS = 20.0
_PR_SET_CHILD_SUBREAPER = 36
"""Linux, prctl(2)."""


def run(command: Sequence[str]) -> int:
    """Run the command and wait for all that it starts; return its exit code."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    process = subprocess.Popen(command)  # noqa: S603
    # The signal is for the whole group: the command ends in its own way, and this process after it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    while True:
        child, status = os.wait()
        if child == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            break
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _has_children():
        if time.monotonic() > deadline:
            _kill_children()
        time.sleep(0.05)
    return process.returncode


def _has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def _kill_children() -> None:
    for thread in Path("/proc/self/task").iterdir():
        for child in (thread / "children").read_text().split():
            command = Path("/proc", child, "cmdline").read_bytes().replace(b"\0", b" ")
            if command:  # A process that has just ended has none.
                shown = command.decode(errors="replace")[:400]
                print(f"still running, killed: {shown}")  # noqa: T201
                os.kill(int(child), signal.SIGKILL)


if __name__ == "__main__":
    code = run(sys.argv[1:])
    sys.exit(code if code >= 0 else 128 - code)
