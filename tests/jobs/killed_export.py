"""An export killed at each of its steps on disk in turn, and run again: prints the results.

    python -m tests.jobs.killed_export ROOT DIR TOPIC...

The rule: a step is a sync, a rename or a removal; the process is killed (SIGKILL) before it. Each
export is a process of its own, forked here, where nothing that has threads was ever started. For
each step a line of JSON: whether it was reached, the partitions that were mountable, whether they
were whole, whether that was all of it, and whether the next run left all of them and nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from klog.jobs import export_log
from klog.jobs.exporting.export_directory import UNFINISHED
from klog.logformat.broker_files.file_names import parse_partition_directory

MAX_STEPS = 500
Files = dict[str, dict[str, bytes]]


def files(directory: Path) -> Files:
    """Return the files of each partition that a broker would mount."""
    return {
        path.name: {file.name: file.read_bytes() for file in path.iterdir()}
        for path in directory.iterdir()
        if path.is_dir() and parse_partition_directory(path.name) is not None
    }


def die_before(step: int) -> None:
    """Let this process be killed before the step of that number, from 0."""
    left = [step]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return real(*args, **named)

        return call

    os.fsync = counted(os.fsync)
    for name in ("rename", "replace", "unlink"):
        setattr(Path, name, counted(getattr(Path, name)))


def in_child(work: Callable[[], None]) -> int:
    """Do it in a child process; gives how it ended."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def main(root: str, to: Path, topics: Sequence[str]) -> None:
    """Go through all steps."""

    def export() -> None:
        export_log.run(None, root, topics, str(to))

    assert in_child(export) == 0
    whole = files(to)
    checkpoint_names = {path.name for path in to.iterdir() if path.is_file()}
    for step in range(MAX_STEPS):
        shutil.rmtree(to)

        def killed() -> None:
            die_before(step)  # noqa: B023
            export()

        ended = in_child(killed)
        there = files(to) if to.exists() else {}
        done = there == whole and not (to / UNFINISHED).exists()
        again = in_child(export) if os.WIFSIGNALED(ended) else 0
        names = {path.name for path in to.iterdir() if path.is_dir()}
        files_left = {path.name for path in to.iterdir() if path.is_file()} - checkpoint_names
        result = {
            "killed": os.WIFSIGNALED(ended),
            "mountable": sorted(there),
            "whole": all(there[name] == whole[name] for name in there),
            "done": done,
            "again": again == 0 and files(to) == whole and names == set(whole) and not files_left,
        }
        sys.stdout.write(json.dumps(result) + "\n")
        if not result["killed"]:
            return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
