"""The CPU time of this process and its descendants, from the kernel (Linux).

The rule: a process counts with its own time, while it lives. Spark's Python workers end when they
have been idle for a minute, and their parent ignores their end, so the kernel forgets their time: a
sum that includes ended processes would fall.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES, _START = 1, slice(11, 13), 19
"""Indexes of the fields after the command in `/proc/<pid>/stat`."""

Process = tuple[int, int]
"""A process by its id and start time: the kernel reuses ids."""


def cpu_seconds() -> dict[Process, float]:
    """Return the seconds so far of this process and each descendant."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    processes: dict[int, tuple[Process, float]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # It ended meanwhile.
            pid = int(folder.name)
            children[int(fields[_PARENT])].append(pid)
            seconds = sum(map(int, fields[_TIMES])) / _TICKS
            processes[pid] = (pid, int(fields[_START])), seconds
    pids, own = [os.getpid()], {}
    while pids:
        pid = pids.pop()
        if pid in processes:
            process, seconds = processes[pid]
            own[process] = seconds
        pids += children[pid]
    return own


def with_cpu(work: Callable[[], int], cpu: list[float]) -> Callable[[], int]:
    """Return the same work, which appends its CPU seconds to a list each time."""

    def run() -> int:
        began = cpu_seconds()
        count = work()
        cpu.append(since(began))
        return count

    return run


def since(began: Mapping[Process, float]) -> float:
    """Return the seconds since then, without those of processes that have ended."""
    return sum(seconds - began.get(process, 0.0) for process, seconds in cpu_seconds().items())
