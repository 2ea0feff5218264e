"""When compactions load compiled loops: by what their process does, not by one partition."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.commit_log.segment_entries import SCHEMA
from klog.jobs import compact
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.marking import cleaning_workload, compiled_kernels
from klog.jobs.shared.marking.cleaning_workload import BATCH_RECORDS
from klog.jobs.shared.marking.compiled_kernels import LazyKernel, load_cleaning_kernels
from klog.jobs.shared.process_shares import remaining_workloads
from klog.logformat.compiled.kernel_types import CleaningKernels
from tests.jobs.partition_bytes import nothing_is_wrong, segments

RECORDS = 300
"""Of a partition, in one batch."""


@dataclass(slots=True)
class CountingLoops:
    """Loops, and how often they were asked for and loaded."""

    worth_records: int
    times: list[bool] = field(default_factory=list)
    lazy_kernel: LazyKernel = field(init=False)

    def __post_init__(self) -> None:
        self.lazy_kernel = LazyKernel(load_cleaning_kernels, self.worth_records)

    def get(self, records: int, remaining: int = 0) -> CleaningKernels | None:
        kernels = self.lazy_kernel.get(records, remaining)
        self.times.append(kernels is not None)
        return kernels


def worth(monkeypatch: pytest.MonkeyPatch, partitions: int) -> CountingLoops:
    """Have loops be worth as much as a little less than so many partitions cost."""
    counter = CountingLoops(2 * (RECORDS + BATCH_RECORDS) * partitions - 1)
    monkeypatch.setattr(compiled_kernels, "CLEANING", counter)
    return counter


def written(root: Path, partitions: int, topic: str = "t") -> None:
    log = klog.open(root)
    log.create_topic(topic, partitions, {"cleanup.policy": "compact"})
    for partition in range(partitions):
        keys = [b"%d" % (number % 7) for number in range(RECORDS)]
        values = [b"%d of %d" % (number, partition) for number in range(RECORDS)]
        here = pa.array([partition] * RECORDS, pa.int32())
        log.append(topic, pa.table({"key": keys, "value": values, "partition": here}))


def left(root: Path) -> Iterator[tuple[int, ...]]:
    for partition in compact.run(None, str(root), min_dirty_ratio=0).partitions:
        assert partition.failure is None
        yield partition.partition, partition.records, partition.records_after


def test_many_partitions_load_them_and_a_few_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And both leave the same."""
    written(tmp_path / "many", 5)
    shutil.copytree(tmp_path / "many", tmp_path / "other")
    written(tmp_path / "one", 1)
    by_loops = worth(monkeypatch, 5)
    by_all = list(left(tmp_path / "many"))
    assert by_loops.times == [True] * 5
    by_columns = worth(monkeypatch, 6)
    assert list(left(tmp_path / "other")) == by_all == [(number, RECORDS, 7) for number in range(5)]
    assert by_columns.times == [False] * 10  # They are marked, then written.
    for partition in range(5):
        (mine,), (other,) = (segments(tmp_path / name, partition) for name in ("many", "other"))
        assert mine == other
    alone = worth(monkeypatch, 5)
    assert len(list(left(tmp_path / "one"))) == 1
    assert alone.times == [False, False]
    nothing_is_wrong(tmp_path / "many")


def test_a_process_loads_them_once_it_has_cleaned_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of topics that come later it knows nothing before; with them it goes on."""
    for topic in ("a", "b", "c"):
        written(tmp_path, 2, topic)
    counter = worth(monkeypatch, 4)
    assert len(list(left(tmp_path))) == 6
    assert counter.times == [False] * 4 + [True] * 4


@pytest.mark.parametrize("has_numba", [True, False])
def test_without_numba_they_are_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_numba: bool
) -> None:
    lazy_kernel = LazyKernel(load_cleaning_kernels if has_numba else lambda: None, -1)
    monkeypatch.setattr(compiled_kernels, "CLEANING", lazy_kernel)
    written(tmp_path, 2)
    assert list(left(tmp_path)) == [(0, RECORDS, 7), (1, RECORDS, 7)]


def test_a_batch_costs_as_much_as_some_records() -> None:
    row: dict[str, Any] = dict.fromkeys(SCHEMA.names, 0)
    row |= {"file": "", "codec": "", "origin": "", "producer_ids": [], "aborted": []}
    rows = [row | {"record_count": 1000, "batch_count": count} for count in (1, 10)]
    both = EntryRows(pa.Table.from_pylist(rows, SCHEMA))
    assert cleaning_workload.workload(both) == 2000 + 11 * BATCH_RECORDS
    assert cleaning_workload.workload(both.part(0, 0)) == 0


class Session:
    """What a session says of its processes; None is what Spark Connect says."""

    def __init__(self, cores: int | None, reuse: str = "true") -> None:
        self.conf, self.defaultParallelism, self._reuse = self, cores, reuse

    def get(self, name: str, default: str) -> str:
        assert (name, default) == ("spark.python.worker.reuse", "true")
        return self._reuse

    @property
    def sparkContext(self) -> Session:  # noqa: N802 - Spark's name
        if self.defaultParallelism is None:
            raise AttributeError("sparkContext")
        return self


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        (None, [100, 60, 30]),
        (Session(2), [50, 30, 30]),
        (Session(200), [40, 30, 30]),
        (Session(2, reuse="false"), [40, 30, 30]),
        (Session(None), [40, 30, 30]),
    ],
)
def test_a_process_has_its_share_of_what_is_to_come(session: Any, expected: list[int]) -> None:
    assert remaining_workloads(session, [40, 30, 30]) == expected
    assert remaining_workloads(session, []) == []
