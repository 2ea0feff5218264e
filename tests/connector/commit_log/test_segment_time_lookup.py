"""Times looked up in a klog root: the first record of at least that time, come what may."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.commit_log import small_segments
from klog.connector.open_root import open_root
from klog.connector.store.local_store import LocalFile, LocalStore
from klog.errors import CorruptFileError
from klog.logformat.topic_partition import TopicPartition
from tests.connector.committed_topic import START_MS, make_root

SEARCHED = (0, 1, 239, 240, 700, 999, 1000, 1499, 1500, 2222, 2999)


@pytest.fixture(autouse=True)
def no_small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every look-up use the indexes of its segment."""
    monkeypatch.setattr(small_segments, "MAX_WHOLE_BYTES", 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_root(tmp_path)


def first_offset(path: Path, second: int) -> int | None:
    root = open_root([str(path)])
    name = TopicPartition("t", 0)
    return root.snapshot().open([name])[name].offset_for_time(START_MS + 1000 * second, 3000)


def test_a_time_is_that_of_its_record(path: Path) -> None:
    assert [first_offset(path, second) for second in SEARCHED] == list(SEARCHED)
    assert first_offset(path, 3000) is None


@pytest.mark.parametrize("seed", range(12))
def test_a_time_index_that_does_not_fit_costs_no_record(path: Path, seed: int) -> None:
    """One bit of each is another, in a timestamp or in an offset."""
    chance = random.Random(seed)
    for index in path.glob("t-0/*.timeindex"):
        data = bytearray(index.read_bytes())
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            index.write_bytes(data)
    assert [first_offset(path, second) for second in SEARCHED] == list(SEARCHED)


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_indexes_that_are_missing_cost_no_record(path: Path, suffix: str) -> None:
    for index in path.glob(f"t-0/*.{suffix}"):
        index.unlink()
    assert [first_offset(path, second) for second in SEARCHED] == list(SEARCHED)


def test_commits_know_the_first_record_of_a_segment(path: Path, requests: Counter[str]) -> None:
    for file in path.glob("t-0/*.log"):
        file.unlink()
    assert first_offset(path, 0) == 0
    assert first_offset(path, -5) == 0
    assert first_offset(path, 1000) == 1000
    assert requests["open"] == 0


def test_a_missing_segment_is_named(path: Path) -> None:
    file = sorted(path.glob("t-0/*.log"))[3]
    file.unlink()
    second = int(file.name[:20]) + 1
    with pytest.raises(CorruptFileError, match=f"{file.name}.*the file is missing"):
        first_offset(path, second)


def test_batches_as_large_as_they_come_cost_three_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the defaults a batch is half a megabyte, and these values do not compress."""
    log = klog.open(str(tmp_path / "root"))
    log.create_topic("t")
    chance = random.Random(1)
    times = pa.array([START_MS + 1000 * n for n in range(6000)], pa.timestamp("ms", "UTC"))
    values = [chance.randbytes(1000) for _ in range(6000)]
    log.append("t", pa.table({"value": values, "timestamp": times}))
    counted: Counter[str] = Counter()
    for owner, method in ((LocalStore, "read"), (LocalFile, "read")):
        monkeypatch.setattr(owner, method, _counting(getattr(owner, method), counted))
    root = open_root([str(tmp_path / "root")])
    name = TopicPartition("t", 0)
    opened = root.snapshot().open([name])[name]
    for second in (1, 2590, 4000, 5999):
        counted.clear()
        assert opened.offset_for_time(START_MS + 1000 * second, 6000) == second
        assert counted.total() <= 3
    start = datetime.fromtimestamp(START_MS / 1000, timezone.utc) + timedelta(seconds=2590)
    assert log.scan("t", start=start, columns=["offset"]).read_all()["offset"][0].as_py() == 2590


def _counting(original: Any, counted: Counter[str]) -> Any:
    def counting(self: Any, *args: Any) -> Any:
        counted["read"] += 1
        return original(self, *args)

    return counting


def test_largest_time_is_that_of_the_commits(path: Path) -> None:
    name = TopicPartition("t", 0)
    log = open_root([str(path)]).snapshot().open([name])[name]
    assert log.max_timestamp_ms() == START_MS + 1000 * 2999
    assert log.offset_for_time(START_MS + 1000 * 2999, 3000) == 2999
