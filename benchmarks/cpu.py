"""The CPU time of a process and all that it started, as the kernel counts it (Linux)."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _FIRST_TIME, _TIMES = 1, 11, 4
"""Where, behind the command of `/proc/<pid>/stat`, stand the parent and the four times."""


def cpu_seconds(*pids: int) -> float:
    """Give the seconds of these processes and those below them, ended children too."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    ticks: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # It ended meanwhile.
            pid = int(folder.name)
            children[int(fields[_PARENT])].append(pid)
            ticks[pid] = sum(map(int, fields[_FIRST_TIME : _FIRST_TIME + _TIMES]))
    wanted, seconds = list(pids), 0.0
    while wanted:
        pid = wanted.pop()
        seconds += ticks.get(pid, 0) / _TICKS
        wanted += children[pid]
    return seconds
