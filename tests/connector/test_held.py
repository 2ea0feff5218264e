"""A log directory that a broker holds: the high watermark bounds it, and rolls do not break it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from klog.connector.log.lock import is_held
from klog.errors import CorruptFileError
from tests.connector.holder import holding
from tests.connector.logs import many, offsets, read, set_checkpoint, write_log
from tests.encode import COMMIT, marker, plain, transactional


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    with holding(tmp_path) as root:
        yield root


def high_watermark(root: Path, offset: int) -> None:
    set_checkpoint(root, "replication-offset-checkpoint", {("t", 0): offset})


def test_the_lock_tells(held: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert is_held(str(held))
    free = tmp_path_factory.mktemp("free")
    assert not is_held(str(free))
    (free / ".lock").touch()
    assert not is_held(str(free))


def test_the_high_watermark_is_the_end(held: Path) -> None:
    write_log(held, {0: many(10)})
    assert offsets(read(held)) == [], "no checkpoint yet"
    high_watermark(held, 7)
    for level in ("read_committed", "read_uncommitted"):
        assert offsets(read(held, isolationLevel=level)) == list(range(7))
    high_watermark(held, 99)
    assert offsets(read(held)) == list(range(10))


def test_a_batch_under_way_is_not_looked_at(held: Path) -> None:
    write_log(held, {0: [*many(10), plain(10)[:-3]]})
    high_watermark(held, 10)
    assert offsets(read(held)) == list(range(10))


def test_damage_below_the_high_watermark_is_an_error(held: Path) -> None:
    batches = many(10)
    batches[5] = bytes(len(batches[5]))
    write_log(held, {0: batches})
    high_watermark(held, 10)
    with pytest.raises(CorruptFileError, match="below the high watermark"):
        read(held)


def test_a_new_segment_that_is_still_empty(held: Path) -> None:
    write_log(held, {0: many(10), 10: []})
    high_watermark(held, 5)
    assert offsets(read(held)) == list(range(5))


def test_a_marker_above_the_high_watermark_decides_nothing(held: Path) -> None:
    log = [plain(0), transactional(1, 5), plain(2), marker(3, 5, COMMIT)]
    write_log(held, {0: log})
    high_watermark(held, 3)
    assert offsets(read(held)) == [0]
    high_watermark(held, 4)
    assert offsets(read(held)) == [0, 1, 2]


_OUT_OF_FILES = """
import errno, os, resource, sys
from klog.connector.log.lock import is_held
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
opened = []
try:
    while True:
        opened.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
try:
    print(is_held(sys.argv[1]))
except OSError as exc:
    print(errno.errorcode[exc.errno])
"""


def test_who_cannot_open_the_lock_is_told(tmp_path: Path) -> None:
    """A process with too many files open does not take a live log for one that was left."""
    limited = [sys.executable, "-c", _OUT_OF_FILES, str(tmp_path)]
    with holding(tmp_path):
        said = subprocess.run(limited, capture_output=True, text=True, check=True)
    assert said.stdout == "EMFILE\n"
