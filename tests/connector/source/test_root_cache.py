"""A process that has read a topic continues from its state; another root at the path is another."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

import klog
from klog.connector.datasource import KlogDataSource
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.source import root_cache
from klog.connector.source.root_cache import RootCache
from tests.connector.committed_topic import make_root, table
from tests.connector.log_dirs import many, write_log
from tests.support.batch_bytes import COMMIT, marker, plain, transactional


def log_of(*transactions: int, count: int, timestamp: int = 1000) -> list[bytes]:
    """Return batches of one record; those at some offsets are of transactions that stay open."""
    return [
        transactional(offset, 1 + offset)
        if offset in transactions
        else plain(offset, (b"v",), timestamp)
        for offset in range(count)
    ]


def offsets(path: Path) -> list[int]:
    """Load and read as Spark does, in one process."""
    source = KlogDataSource({"subscribe": "t", "path": str(path), "columns": "offset"})
    source.schema()
    reader = source.reader(StructType([]))
    return [
        offset
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for offset in batch["offset"].to_pylist()
    ]


def test_a_second_load_costs_two_reads_and_a_listing(
    tmp_path: Path, requests: Counter[str]
) -> None:
    root = make_root(tmp_path)
    options = {"subscribe": "t", "path": str(root)}
    KlogDataSource(options).schema()
    requests.clear()
    KlogDataSource(options).schema()
    assert requests == {"read": 2, "list": 1}, "format.json, the next commit, the last expired one"


def test_what_was_committed_meanwhile_is_read(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    assert offsets(root) == list(range(3000))
    klog.open(root).append("t", table(3000, 10))
    assert offsets(root) == list(range(3010))


def test_another_root_at_the_same_path_is_read_from_its_own_commits(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root")
    assert len(offsets(root)) == 3000
    shutil.rmtree(root)
    log = klog.open(root)
    log.create_topic("t")
    log.append("t", table(0, 7))
    assert offsets(root) == list(range(7))
    shutil.rmtree(root)
    write_log(root, {0: many(5)})
    assert offsets(root) == list(range(5)), "a broker's directory by now"


def test_few_roots_are_kept_each_with_its_storage_options(tmp_path: Path) -> None:
    cache = RootCache()
    path = [str(make_root(tmp_path))]
    other = StorageOptions((("fsspec.a", "b"),))
    first = cache.open(path, NO_STORAGE_OPTIONS)
    assert cache.open(path, NO_STORAGE_OPTIONS) is first
    assert cache.open(path, other) is not first
    for number in range(root_cache.MAX_ROOTS - 1):
        cache.open(path, StorageOptions((("fsspec.a", str(number)),)))
    assert cache.open(path, NO_STORAGE_OPTIONS) is not first, "it left the cache"


def test_large_states_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = RootCache()
    path = [str(make_root(tmp_path))]
    root = cache.open(path, NO_STORAGE_OPTIONS)
    assert list(root.snapshot().topics["t"]) == [0]
    assert cache.open(path, NO_STORAGE_OPTIONS) is root
    monkeypatch.setattr(root_cache, "MAX_SEGMENTS", 13)
    assert cache.open(path, NO_STORAGE_OPTIONS) is not root


def test_a_brokers_log_is_followed_from_where_it_ended(
    tmp_path: Path, requests: Counter[str]
) -> None:
    directory = write_log(tmp_path, {0: many(2000, size=8192)})
    assert len(offsets(tmp_path)) == 2000
    requests.clear()
    options = {"subscribe": "t", "path": str(tmp_path)}
    KlogDataSource(options).reader(StructType([])).partitions()
    assert requests["range"] <= 2, "the log has 16 MB, of whose end the last header is read again"
    log = directory / "00000000000000000000.log"
    log.write_bytes(log.read_bytes() + b"".join(many(10, first=2000)))
    assert offsets(tmp_path) == list(range(2010))


def test_a_brokers_log_that_was_made_again_is_read_from_its_start(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(100)})
    assert offsets(tmp_path) == list(range(100))
    shutil.rmtree(tmp_path / "t-0")
    write_log(tmp_path, {7: many(20, first=7)})
    assert offsets(tmp_path) == list(range(7, 27))


@pytest.mark.parametrize("is_same_file", [False, True])
@pytest.mark.parametrize(
    ("before", "after", "seen", "left"),
    [
        (log_of(5, count=10), log_of(count=20, timestamp=2000), 5, 20),
        (log_of(count=20), log_of(3, count=20, timestamp=2000), 20, 3),
        (log_of(3, count=20), log_of(count=20, timestamp=2000), 3, 20),
        (log_of(count=4), log_of(3, count=20, timestamp=2000), 4, 3),
    ],
)
def test_transactions_of_another_log_are_forgotten(
    tmp_path: Path,
    before: list[bytes],
    after: list[bytes],
    seen: int,
    left: int,
    *,
    is_same_file: bool,
) -> None:
    """Neither an inode number nor equal sizes say that a log is the one that was read."""
    log = write_log(tmp_path, {0: before}) / "00000000000000000000.log"
    assert offsets(tmp_path) == list(range(seen))
    if not is_same_file:
        log.unlink()
    log.write_bytes(b"".join(after))
    assert offsets(tmp_path) == list(range(left))


def test_transactions_are_followed_after_a_roll(tmp_path: Path) -> None:
    first, second = log_of(5, count=10), log_of(count=15)[10:]
    write_log(tmp_path, {0: first})
    assert offsets(tmp_path) == list(range(5))
    write_log(tmp_path, {0: first, 10: second})
    assert offsets(tmp_path) == list(range(5))
    write_log(tmp_path, {0: first, 10: [*second, marker(15, 6, COMMIT)]})
    assert offsets(tmp_path) == list(range(15))
