"""A topic on a disk that is full, then is not: run as a process, which says what it met as JSON.

`python -m tests.faults.full_disk <folder> <way>`. The way `tmpfs` fills the file system that the
folder is on, to the last page; `limit` lets the kernel refuse each file's bytes beyond a few, which
needs no rights and leaves half a file where a write began.
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
    process_work.checkpoint_and_clean,
    process_work.merge,
)
LEFT = (0, 1, 3, 5)
"""Pages of the disk, or shares of a file, for which there is room: with each, more is written."""


@contextmanager
def full(folder: Path, left: int) -> Iterator[None]:
    """Fill the disk but for so many pages."""
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
    """Refuse what a file would have beyond its share of bytes."""
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left * LIMIT_BYTES, was[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)


def log_at(root: Path) -> CommitLog:
    return signed_topic.log_on(LocalStore(), str(root))


def tried(folder: Path, task: Task, left: int, way: str) -> dict[str, object]:
    """Do a task where there is little room, and again where there is enough."""
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
    found = {"task": task.__name__, "error": error, "temporary": temporary}
    return {**found, "before": before, "during": during, "after": after}


def main() -> None:
    folder, way = Path(sys.argv[1]), sys.argv[2]
    found = [tried(folder, task, left, way) for task in TASKS for left in LEFT]
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
