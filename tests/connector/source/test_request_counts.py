"""A query looks at the log once, and one offset costs at most three reads after that.

The rule (design: what crosses the wire is counted): `load()` looks at the log; the plan reads at
most 16 indexes; a task lists nothing.
"""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

import klog
from klog.connector.datasource import KlogDataSource
from klog.connector.open_root import open_root
from klog.connector.source import index_narrowing, task_sizing
from klog.connector.source.planner_cache import MAX_AGE_SECONDS, MAX_READS, PlannerCache
from klog.connector.source.slice_contract import expand_task
from klog.connector.source.stream_reader import KlogStreamReader
from klog.logformat.topic_partition import TopicPartition
from tests.connector.committed_topic import BATCHES, START_MS, between, make_root, table, values
from tests.connector.log_dirs import entries_of, many, offset_index, write_log

SEGMENTS, PER_SEGMENT = 20, 100


@pytest.fixture
def klog_root(tmp_path: Path) -> Path:
    """Make a klog root with a topic of 3,000 records in 14 indexed segments."""
    return make_root(tmp_path)


@pytest.fixture
def raw_root(tmp_path: Path) -> Path:
    """Write a partition of 20 segments, all with an index."""
    segments = {
        base: many(PER_SEGMENT, base) for base in range(0, SEGMENTS * PER_SEGMENT, PER_SEGMENT)
    }
    directory = write_log(tmp_path / "raw", segments)
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: ASNFZ4mrze_-3LqYdlQyEA")
    for base, batches in segments.items():
        index = offset_index(entries_of(batches, 5), base)
        (directory / f"{base:020d}.index").write_bytes(index)
    return tmp_path / "raw"


@pytest.fixture(autouse=True)
def fresh_cache(monkeypatch: pytest.MonkeyPatch) -> PlannerCache:
    """Let every read of a part of a segment use its index, in a process that has read nothing."""
    monkeypatch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)
    cache = PlannerCache()
    monkeypatch.setattr("klog.connector.source.scan_planner.PLANNER_CACHE", cache)
    return cache


@dataclass
class Costs:
    """What each step of a query asks of the store, and the rows."""

    load: Counter[str]
    plan: Counter[str]
    read: Counter[str]
    rows: list[dict[str, Any]]


def run_query(options: dict[str, str], requests: Counter[str]) -> Costs:
    """Load, plan and read as Spark does: each step has a pickled copy of what the last one made."""
    requests.clear()
    source = KlogDataSource(options)
    source.schema()
    load = +requests
    requests.clear()
    reader = pickle.loads(pickle.dumps(source)).reader(StructType([]))
    partitions = list(reader.partitions())
    plan = +requests
    requests.clear()
    task_reader = pickle.loads(pickle.dumps(reader))
    rows = [
        row
        for partition in pickle.loads(pickle.dumps(partitions))
        for batch in task_reader.read(partition)
        for row in batch.to_pylist()
    ]
    return Costs(load, plan, +requests, rows)


def options_of(root: Path, **more: str) -> dict[str, str]:
    return {"subscribe": "t", "path": str(root), **more}


def one_offset(offset: int) -> dict[str, str]:
    return between(offset, offset + 1)


def test_one_offset_of_a_klog_root(klog_root: Path, requests: Counter[str]) -> None:
    costs = run_query(options_of(klog_root, **one_offset(2345)), requests)
    assert [row["offset"] for row in costs.rows] == [2345]
    # format.json, topic.json, four commits and the next one, which is not there. Checkpoints,
    # commits and the last expired version are listed.
    assert costs.load == {"read": 7, "list": 3}
    assert costs.plan == {"read": 1}, "the index"
    assert costs.read == {"open": 1, "range": 1}, "the data"


def test_one_offset_of_a_raw_root(raw_root: Path, requests: Counter[str]) -> None:
    costs = run_query(options_of(raw_root, **one_offset(1234)), requests)
    assert [row["offset"] for row in costs.rows] == [1234]
    assert costs.load["list"] == 3
    assert costs.plan == {"open": 1, "read": 1, "range": 1}, "the index, and headers to confirm it"
    assert costs.read == {"read": 1, "open": 1, "range": 1}, "partition.metadata and the data"


@pytest.mark.parametrize("kind", ["klog", "raw"])
def test_a_plan_reads_sixteen_indexes_and_tasks_the_others(
    kind: str, request: pytest.FixtureRequest, requests: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    root = request.getfixturevalue(f"{kind}_root")
    count = SEGMENTS * PER_SEGMENT
    if kind == "klog":
        klog.open(root).append("t", table(3000, 1000), options=BATCHES)
        count = 4000
    monkeypatch.setattr(task_sizing, "TARGET_BYTES", 2000)
    costs = run_query(options_of(root), requests)
    assert costs.plan["read"] == 16
    assert costs.plan["list"] == 0
    assert [row["offset"] for row in costs.rows] == list(range(count))
    source = KlogDataSource(options_of(root))
    source.schema()
    slices = [
        slice_
        for partition in source.reader(StructType([])).partitions()
        for slice_ in expand_task(partition.value)
    ]
    named = [slice_ for slice_ in slices if slice_.index_path]
    assert 0 < len(named) < len(slices)
    assert len({slice_.path for slice_ in slices if not slice_.index_path}) >= 16
    metadata_reads = 0 if kind == "klog" else len(slices)
    assert costs.read["read"] == len(named) + metadata_reads, "each index once a slice"
    assert costs.read["list"] == 0
    assert max(slice_.size_bytes for slice_ in slices if not slice_.index_path) < 6000


@pytest.mark.parametrize("kind", ["klog", "raw"])
def test_a_plan_in_another_process_looks_again(
    kind: str, request: pytest.FixtureRequest, requests: Counter[str]
) -> None:
    options = options_of(request.getfixturevalue(f"{kind}_root"))
    source = KlogDataSource(options)
    source.schema()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("klog.connector.source.scan_planner.PLANNER_CACHE", PlannerCache())
        requests.clear()
        assert source.reader(StructType([])).partitions()
        assert requests["list"] > 0
    requests.clear()
    assert source.reader(StructType([])).partitions()
    assert requests["list"] == 0


def test_a_second_action_looks_again(klog_root: Path, requests: Counter[str]) -> None:
    source = KlogDataSource(options_of(klog_root))
    source.schema()
    requests.clear()
    assert source.reader(StructType([])).partitions()
    assert requests["list"] == 0
    assert source.reader(StructType([])).partitions()
    assert requests["list"] > 0


def test_a_load_shows_its_moment_and_a_new_load_what_came_since(klog_root: Path) -> None:
    first = KlogDataSource(options_of(klog_root))
    first.schema()
    klog.open(klog_root).append("t", table(3000, 10))
    second = KlogDataSource(options_of(klog_root))
    second.schema()
    for source, count in ((first, 3000), (second, 3010), (first, 3000)):
        reader = source.reader(StructType([]))
        rows = [
            row
            for partition in reader.partitions()
            for batch in reader.read(partition)
            for row in batch.to_pylist()
        ]
        assert values(rows) == list(range(count))


def test_the_cache_forgets_old_reads_and_all_but_a_few() -> None:
    seconds = 100.0
    cache = PlannerCache(lambda: seconds)
    for number in range(MAX_READS + 1):
        cache.put(number, {})
    seconds += MAX_AGE_SECONDS
    assert cache.take(0) is None
    assert cache.take(1) == {}
    seconds += 0.1
    assert cache.take(2) is None
    seconds = 0.0
    assert cache.take(3) is None, "it was dropped"


def test_a_micro_batch_looks_once(raw_root: Path, requests: Counter[str]) -> None:
    reader = KlogStreamReader(options_of(raw_root, startingOffsets="earliest"))
    start = reader.initialOffset()
    end = assert_one_look(reader, start, requests, range(2000))
    log = raw_root / "t-0" / f"{1900:020d}.log"
    log.write_bytes(b"".join(many(105, 1900)))
    assert_one_look(reader, end, requests, range(2000, 2005))


def assert_one_look(
    reader: KlogStreamReader, start: dict[str, Any], requests: Counter[str], expected: range
) -> dict[str, Any]:
    """Run a micro-batch; return its end."""
    requests.clear()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert requests["list"] == 2, "the root and the partition"
    partitions = list(reader.partitions(start, end))
    assert requests["list"] == 2
    offsets = [
        row["offset"]
        for partition in partitions
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]
    assert offsets == list(expected)
    return end


def test_a_micro_batch_that_spark_plans_again_is_looked_at_again(
    raw_root: Path, requests: Counter[str]
) -> None:
    reader = KlogStreamReader(options_of(raw_root, startingOffsets="earliest"))
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert list(reader.partitions(start, end))
    requests.clear()
    assert list(reader.partitions(start, end))
    assert requests["list"] == 2


def test_a_time_costs_three_reads_after_the_state(klog_root: Path, requests: Counter[str]) -> None:
    name = TopicPartition("t", 0)
    log = open_root([str(klog_root)]).snapshot().open([name])[name]
    requests.clear()
    assert log.offset_for_time(START_MS + 2_345_000, 3000) == 2345
    assert requests == {"read": 2, "open": 1, "range": 1}


def test_looking_at_an_idle_topic_again_is_one_read_and_one_listing(
    klog_root: Path, requests: Counter[str]
) -> None:
    root = open_root([str(klog_root)])
    assert list(root.snapshot().topics["t"]) == [0]
    requests.clear()
    assert list(root.snapshot().topics["t"]) == [0]
    assert requests == {"read": 1, "list": 1}
