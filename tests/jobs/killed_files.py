"""A copy to files, or an import, killed at each of its steps on disk in turn: prints the results.

    python -m tests.jobs.killed_files to-files|import-files DIR

The rule: a step is a sync, a link, a rename or a removal; the process is killed (SIGKILL) before
it. Each run is a process of its own, forked here, where nothing that has threads was ever started.
For each step a line of JSON: whether it was reached, whether what readers saw then was right (no
record twice, none that the source has not), and whether the next run left all of it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import klog
from klog.jobs import import_files, to_files
from klog.jobs.importing_files import import_plan
from tests.jobs.file_rows import directory_rows, hour_table, log_rows, manifest_rows
from tests.jobs.killed_export import MAX_STEPS, in_child

STEPS = ("fsync", "link", "replace", "unlink")
Key = tuple[Any, ...]


def die_before(step: int) -> None:
    """Let this process be killed before the step of that number, from 0."""
    left = [step]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            if not left[0]:
                os.kill(os.getpid(), 9)
            left[0] -= 1
            return real(*args, **named)

        return call

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))


def keys(rows: list[dict[str, Any]]) -> list[Key]:
    """Return what identifies records, sorted."""
    return sorted((row["partition"], row["offset"], row["value"] or b"") for row in rows)


def to_files_steps(work: Path) -> None:
    """Kill a copy that has several plans, and look at its directory."""
    log = klog.open(str(work / "root"))
    log.create_topic("orders", partitions=2)
    log.append("orders", hour_table([0, 1, 0, 30, 2]))
    expected = keys(log_rows(work / "root", "orders"))
    to = work / "files"
    options = {"maxOffsetsPerTrigger": "3"}

    def copy() -> None:
        to_files.run(None, str(work / "root"), "orders", str(to), options=options)

    def seen() -> dict[str, bool]:
        directory, listed = keys(directory_rows(to / "orders")), keys(manifest_rows(to / "orders"))
        is_right = len(set(directory)) == len(directory) and set(directory) <= set(expected)
        return {"right": is_right and set(listed) <= set(directory), "all": listed == expected}

    def removed() -> None:
        shutil.rmtree(to, ignore_errors=True)

    _go_through(copy, seen, removed)


def import_files_steps(work: Path) -> None:
    """Kill an import that has several transactions, and look at its topic."""
    source, root = work / "source", work / "root"
    source.mkdir()
    for name in ("a", "b", "c"):
        (source / f"{name}.json").write_text(f"{name}1\n{name}2\n")
    expected = [b"a1", b"a2", b"b1", b"b2", b"c1", b"c2"]

    def created() -> None:
        shutil.rmtree(root, ignore_errors=True)
        klog.open(str(root)).create_topic("t", partitions=1)

    def copy() -> None:
        import_plan.MAX_BATCH_FILES = 1
        import_files.run(None, str(root), "t", str(source))

    def seen() -> dict[str, bool]:
        values = [row["value"] for row in log_rows(root, "t")]
        return {"right": values == expected[: len(values)], "all": values == expected}

    _go_through(copy, seen, created)


def _go_through(
    work: Callable[[], None], seen: Callable[[], dict[str, bool]], begin: Callable[[], None]
) -> None:
    for step in range(MAX_STEPS):
        begin()

        def killed() -> None:
            die_before(step)  # noqa: B023
            work()

        ended = in_child(killed)
        there = seen()
        again = in_child(work) if os.WIFSIGNALED(ended) else 0
        result = {
            "killed": os.WIFSIGNALED(ended),
            "right": there["right"],
            "done": there["all"],
            "again": again == 0 and seen() == {"right": True, "all": True},
        }
        sys.stdout.write(json.dumps(result) + "\n")
        if not result["killed"]:
            return


if __name__ == "__main__":
    steps = {"to-files": to_files_steps, "import-files": import_files_steps}
    steps[sys.argv[1]](Path(sys.argv[2]))
