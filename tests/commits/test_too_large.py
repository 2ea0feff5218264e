"""Files of a log that are larger than they can be: refused by their size, and not read."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

import klog
from klog.connector.log import cleaning, pins
from klog.connector.log.root import find_root
from klog.connector.log.topic_log import TopicLog
from klog.errors import FileTooLargeError
from tests.connector.committed import table

HUGE = 1 << 30
PIN = "0123456789abcdef"


def made(folder: Path) -> tuple[str, TopicLog]:
    """Make a root with a topic of two commits behind its creation."""
    path = str(folder / "root")
    log = klog.open(path)
    log.create_topic("t", 1)
    for first in (0, 10):
        log.append("t", table(first, 10))
    return path, log_of(path)


def log_of(path: str) -> TopicLog:
    root = find_root(path)
    assert root is not None
    return root.log("t")


def grow(path: str) -> None:
    """Make it a GiB, most of it a hole."""
    with Path(path).open("ab"):
        os.truncate(path, HUGE)


@pytest.fixture(autouse=True)
def _is_not_read() -> object:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown_bytes < HUGE // 4


def test_a_commit(tmp_path: Path) -> None:
    path, log = made(tmp_path)
    grow(log.paths.commit(3))
    with pytest.raises(FileTooLargeError, match=rf"3.json: it has {HUGE} bytes.* 67108864 at most"):
        log_of(path).load()


def test_the_format_of_a_root(tmp_path: Path) -> None:
    path, _ = made(tmp_path)
    grow(f"{path}/_klog/format.json")
    with pytest.raises(FileTooLargeError, match=rf"format.json: it has {HUGE} bytes.*1048576 at"):
        find_root(path)


def test_a_pin_keeps_all(tmp_path: Path) -> None:
    _, log = made(tmp_path)
    pins.pin(log, PIN, 2, 60_000)
    assert pins.pinned_version(log) == 2
    grow(log.paths.pin(PIN))
    assert pins.pinned_version(log) == 0


def test_a_checkpoint_and_its_parts_are_passed_over(tmp_path: Path) -> None:
    path, log = made(tmp_path)
    state = log.load()
    cleaning.write_checkpoint(log, state)
    for folder in (log.paths.checkpoints, log.paths.parts):
        for name in log.names(folder):
            grow(f"{folder}/{name}")
            assert log_of(path).load().version == state.version
