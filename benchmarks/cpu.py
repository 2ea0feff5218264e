"""The CPU time of this process and all that it started, as the kernel counts it (Linux).

The rule: a process counts with what it took itself, while it lives. Spark's Python workers end when
they have been idle for a minute, and the process that they are of ignores their end, so that the
kernel forgets their time: a sum of all would fall.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES, _START = 1, slice(11, 13), 19
"""Where, behind the command of `/proc/<pid>/stat`, they stand."""

Process = tuple[int, int]
"""A process by its id and the time at which it began: ids are given again."""


def cpu_seconds() -> dict[Process, float]:
    """Give the seconds that this process and each below it has taken so far."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    found: dict[int, tuple[Process, float]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # It ended meanwhile.
            pid = int(folder.name)
            children[int(fields[_PARENT])].append(pid)
            seconds = sum(map(int, fields[_TIMES])) / _TICKS
            found[pid] = (pid, int(fields[_START])), seconds
    wanted, own = [os.getpid()], {}
    while wanted:
        pid = wanted.pop()
        if pid in found:
            process, seconds = found[pid]
            own[process] = seconds
        wanted += children[pid]
    return own


def since(began: Mapping[Process, float]) -> float:
    """Give the seconds taken since then, but for those of processes that have ended."""
    return sum(seconds - began.get(one, 0.0) for one, seconds in cpu_seconds().items())
