"""`maxRecordsPerPartition`, `maxBytesPerPartition` and `minPartitions`, on both kinds of roots."""

from __future__ import annotations

from pathlib import Path

import pytest

import klog
from klog.connector.open_root import open_root
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.slice_contract import TaskDict, expand_task
from klog.connector.source.slices import Slice
from tests.connector.committed_topic import make_root, read, values
from tests.connector.log_dirs import (
    entries_of,
    many,
    offset_index,
    offsets,
    plan_tasks,
    read_tasks,
    write_log,
)

COUNT = 1000
SIZE = len(many(1)[0])
INDEX_INTERVAL_BYTES = 4096


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_root(tmp_path_factory.mktemp("committed"))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Make a log of two segments; the second one has no index."""
    batches = many(COUNT)
    directory = write_log(tmp_path, {0: batches[:600], 600: batches[600:]})
    index = offset_index(entries_of(batches[:600], 10))
    (directory / "00000000000000000000.index").write_bytes(index)
    return tmp_path


def plan_committed(path: Path, **options: str) -> list[TaskDict]:
    parsed = parse_read_options({"subscribe": "t", **options})
    return scan_planner.plan_snapshot(open_root([str(path)]).snapshot(), parsed)


def slices(task: TaskDict) -> list[Slice]:
    return list(expand_task(task))


def counts(tasks: list[TaskDict]) -> list[int]:
    return [sum(slice_.offset_count for slice_ in expand_task(task)) for task in tasks]


@pytest.mark.parametrize("maximum", [1000, 999, 500, 333, 7])
def test_no_task_has_more_offsets(raw: Path, maximum: int) -> None:
    tasks = plan_tasks([str(raw)], maxRecordsPerPartition=str(maximum))
    assert max(counts(tasks)) <= maximum
    assert len(tasks) == -(-COUNT // maximum)  # Equal parts, as Spark's connector makes them.
    assert max(counts(tasks)) - min(counts(tasks)) <= 1
    assert offsets(read_tasks([str(raw)], tasks)) == list(range(COUNT))


def test_no_task_of_a_klog_root_has_more_offsets(committed: Path) -> None:
    tasks = plan_committed(committed, maxRecordsPerPartition="70")
    assert max(counts(tasks)) <= 70
    assert values(read(committed, maxRecordsPerPartition="70")) == list(range(3000))


def test_13_both_limits_hold(raw: Path) -> None:
    """Spark's connector holds to the maximum in a batch only if there is a minimum too."""
    tasks = plan_tasks([str(raw)], maxRecordsPerPartition="300", minPartitions="9")
    assert len(tasks) >= 9
    assert max(counts(tasks)) <= 300
    assert offsets(read_tasks([str(raw)], tasks)) == list(range(COUNT))


@pytest.mark.parametrize("maximum", [30 * SIZE, 100 * SIZE, 399 * SIZE, 1 << 40])
def test_no_task_has_more_bytes(raw: Path, maximum: int) -> None:
    tasks = plan_tasks([str(raw)], maxBytesPerPartition=str(maximum))
    for task in tasks:
        size_bytes = sum(slice_.offset_count for slice_ in slices(task)) * SIZE
        assert size_bytes <= maximum + INDEX_INTERVAL_BYTES + SIZE  # It ends at an index entry.
    assert offsets(read_tasks([str(raw)], tasks)) == list(range(COUNT))
    assert (len(tasks) == 1) == (maximum == 1 << 40)


def test_no_task_of_a_klog_root_has_more_bytes(committed: Path) -> None:
    (description,) = klog.open(committed).describe("t").partitions
    maximum = 5000
    tasks = plan_committed(committed, maxBytesPerPartition=str(maximum))
    assert len(tasks) >= description.size_bytes // maximum
    record_bytes = description.size_bytes / 3000
    assert max(counts(tasks)) * record_bytes <= maximum * 1.05
    assert values(read(committed, maxBytesPerPartition=str(maximum))) == list(range(3000))


def test_sizes_have_units(raw: Path) -> None:
    tasks = plan_tasks([str(raw)], maxBytesPerPartition="20k")
    assert len(tasks) == len(plan_tasks([str(raw)], maxBytesPerPartition=str(20 << 10)))
