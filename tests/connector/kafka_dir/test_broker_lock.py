"""A log directory that a broker holds: the high watermark bounds it, and rolls do not break it."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from klog.connector.kafka_dir.broker_lock import is_locked_by_broker
from klog.errors import CorruptFileError
from tests.connector.kafka_dir.lock_holder import holding
from tests.connector.log_dirs import many, offsets, read, set_checkpoint, write_log
from tests.support.batch_bytes import COMMIT, marker, plain, transactional


@pytest.fixture
def locked_dir(tmp_path: Path) -> Iterator[Path]:
    with holding(tmp_path) as root:
        yield root


def high_watermark(root: Path, offset: int) -> None:
    set_checkpoint(root, "replication-offset-checkpoint", {("t", 0): offset})


def test_only_a_locked_directory_is_locked(
    locked_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert is_locked_by_broker(str(locked_dir))
    free = tmp_path_factory.mktemp("free")
    assert not is_locked_by_broker(str(free))
    (free / ".lock").touch()
    assert not is_locked_by_broker(str(free))


def test_the_high_watermark_is_the_end(locked_dir: Path) -> None:
    write_log(locked_dir, {0: many(10)})
    assert offsets(read(locked_dir)) == [], "no checkpoint yet"
    high_watermark(locked_dir, 7)
    for level in ("read_committed", "read_uncommitted"):
        assert offsets(read(locked_dir, isolationLevel=level)) == list(range(7))
    high_watermark(locked_dir, 99)
    assert offsets(read(locked_dir)) == list(range(10))


def test_batch_under_way_is_not_read(locked_dir: Path) -> None:
    write_log(locked_dir, {0: [*many(10), plain(10)[:-3]]})
    high_watermark(locked_dir, 10)
    assert offsets(read(locked_dir)) == list(range(10))


def test_damage_below_the_high_watermark_is_an_error(locked_dir: Path) -> None:
    batches = many(10)
    batches[5] = bytes(len(batches[5]))
    write_log(locked_dir, {0: batches})
    high_watermark(locked_dir, 10)
    with pytest.raises(CorruptFileError, match="below the high watermark"):
        read(locked_dir)


def test_a_new_segment_that_is_still_empty(locked_dir: Path) -> None:
    write_log(locked_dir, {0: many(10), 10: []})
    high_watermark(locked_dir, 5)
    assert offsets(read(locked_dir)) == list(range(5))


def test_a_marker_above_the_high_watermark_decides_nothing(locked_dir: Path) -> None:
    log = [plain(0), transactional(1, 5), plain(2), marker(3, 5, COMMIT)]
    write_log(locked_dir, {0: log})
    high_watermark(locked_dir, 3)
    assert offsets(read(locked_dir)) == [0]
    high_watermark(locked_dir, 4)
    assert offsets(read(locked_dir)) == [0, 1, 2]


_PROGRAM_WITHOUT_FILES = """
import errno, os, resource, sys
from klog.connector.kafka_dir.broker_lock import is_locked_by_broker
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
opened = []
try:
    while True:
        opened.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
try:
    print(is_locked_by_broker(sys.argv[1]))
except OSError as exc:
    print(errno.errorcode[exc.errno])
"""


def test_lock_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    """A process with too many files open does not take a live log for one that was left."""
    limited = [sys.executable, "-c", _PROGRAM_WITHOUT_FILES, str(tmp_path)]
    with holding(tmp_path):
        result = subprocess.run(limited, capture_output=True, text=True, check=True)
    assert result.stdout == "EMFILE\n"


@pytest.mark.parametrize(("number", "is_unknown"), [(errno.ENOLCK, False), (errno.EIO, True)])
def test_lock_that_cannot_be_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_unknown: bool
) -> None:
    """A file system without locks has no broker; any other error is no answer."""
    (tmp_path / ".lock").touch()

    def fail(*args: object) -> bytes:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "fcntl", fail)
    if is_unknown:
        with pytest.raises(OSError, match=os.strerror(number)):
            is_locked_by_broker(str(tmp_path))
    else:
        assert not is_locked_by_broker(str(tmp_path))
