"""A topic on a full disk, then on one with room: run as a process that prints its results as JSON.

`python -m tests.faults.full_disk <folder> <way>`. The way `tmpfs` fills the file system of the
folder to the last page. The way `limit` sets the kernel's limit on the size of a file, which needs
no permissions and leaves a partly written file.
"""

from __future__ import annotations

import json
import resource
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.store.local_store import LocalStore
from klog.connector.store.temporary_names import TEMPORARY_NAME
from klog.errors import KlogError
from tests.faults import process_work, signed_topic
from tests.faults.children import Task

PAGE, LIMIT_BYTES = 4096, 400
TASKS: tuple[Task, ...] = (
    process_work.append_named,
    process_work.checkpoint_and_expire,
    process_work.merge,
)
LEFT = (0, 1, 3, 5)
"""Free pages of the disk, or of `LIMIT_BYTES` in a file: each value lets a task write more."""


@contextmanager
def full(folder: Path, left: int) -> Iterator[None]:
    """Fill the disk except for a number of pages."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        with suppress(OSError):
            while True:
                file.write(bytes(PAGE))
        file.truncate(max(file.seek(0, 2) - left * PAGE, 0))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def limited(folder: Path, left: int) -> Iterator[None]:
    """Limit the size of each file."""
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left * LIMIT_BYTES, was[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)


def log_at(root: Path) -> CommitLog:
    return signed_topic.log_on(LocalStore(), str(root))


def run_task(folder: Path, task: Task, left: int, way: str) -> dict[str, object]:
    """Run a task with little free space, then again with enough."""
    root = folder / f"{task.__name__}-{left}"
    process_work.prepare(log_at(root))
    before, error = signed_topic.records_of(log_at(root)), ""
    with (full if way == "tmpfs" else limited)(folder, left):
        try:
            task(log_at(root))
        except KlogError as exc:
            error = f"{type(exc).__name__}: {exc}"
        during = signed_topic.records_of(log_at(root))
        temporary = [str(path) for path in root.rglob("*") if TEMPORARY_NAME.fullmatch(path.name)]
    task(log_at(root))
    after = signed_topic.records_of(log_at(root))
    shutil.rmtree(root)
    report = {"task": task.__name__, "error": error, "temporary": temporary}
    return {**report, "before": before, "during": during, "after": after}


def main() -> None:
    folder, way = Path(sys.argv[1]), sys.argv[2]
    reports = [run_task(folder, task, left, way) for task in TASKS for left in LEFT]
    sys.stdout.write(json.dumps(reports))


if __name__ == "__main__":
    main()
