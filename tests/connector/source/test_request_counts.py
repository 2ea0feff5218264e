"""A query looks at the log once, and one offset costs at most three reads after that.

The rule (design: what crosses the wire is counted): `load()` looks at the log, and plans a small
read with at most 16 indexes; the plan of a large one looks again; a task lists nothing.
"""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

import klog
from klog.connector.commit_log import small_segments
from klog.connector.datasource import KlogDataSource
from klog.connector.open_root import open_root
from klog.connector.source import index_narrowing, scan_planner, task_sizing
from klog.connector.source.load_plan import MAX_AGE_SECONDS, LoadPlan
from klog.connector.source.root_cache import RootCache
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
def indexed_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every read of a part of a segment use its index."""
    monkeypatch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)


@dataclass
class Costs:
    """What each step of a query asks of the store, and the rows."""

    load: Counter[str]
    plan: Counter[str]
    read: Counter[str]
    rows: list[dict[str, Any]]


def run_query(options: dict[str, str], requests: Counter[str]) -> Costs:
    """Load, plan and read as Spark does: each step has a pickled copy of what the last one made.

    Each has a process of its own, which has read nothing before.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_planner, "ROOTS", RootCache())
        return _run_query(options, requests, patch)


def _run_query(options: dict[str, str], requests: Counter[str], patch: pytest.MonkeyPatch) -> Costs:
    requests.clear()
    source = KlogDataSource(options)
    source.schema()
    load = +requests
    requests.clear()
    patch.setattr(scan_planner, "ROOTS", RootCache())
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
    # format.json, topic.json, four commits and the next one, which is not there, and the index.
    # Checkpoints, commits and the last expired version are listed.
    assert costs.load == {"read": 8, "list": 3}
    assert not costs.plan
    assert costs.read == {"open": 1, "range": 1}, "the data"


def test_one_offset_of_a_raw_root(raw_root: Path, requests: Counter[str]) -> None:
    costs = run_query(options_of(raw_root, **one_offset(1234)), requests)
    assert [row["offset"] for row in costs.rows] == [1234]
    assert costs.load["list"] == 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_planner, "MAX_BYTES", -1)
        look = run_query(options_of(raw_root, **one_offset(1234)), requests).load
    index = costs.load - look
    assert index == {"open": 1, "read": 1, "range": 1}, "the index, and headers to confirm it"
    assert not costs.plan
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_planner, "MAX_BYTES", -1)
        look = run_query(options_of(root), requests).load
    assert costs.load["read"] - look["read"] == 16
    assert not costs.plan
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


@pytest.mark.parametrize(("limit", "value"), [("MAX_BYTES", 100), ("MAX_SLICES", 13)])
@pytest.mark.parametrize("kind", ["klog", "raw"])
def test_the_plan_of_a_large_read_looks_again(
    kind: str, limit: str, value: int, request: pytest.FixtureRequest, requests: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(scan_planner, limit, value)
    costs = run_query(options_of(request.getfixturevalue(f"{kind}_root")), requests)
    assert costs.plan["list"] > 0
    assert len(costs.rows) in (2000, 3000)


def test_a_minute_after_its_load_a_plan_looks_again(
    klog_root: Path, requests: Counter[str]
) -> None:
    source = KlogDataSource(options_of(klog_root))
    source.schema()
    requests.clear()
    tasks = [partition.value for partition in source.reader(StructType([])).partitions()]
    assert not requests
    plan = source._load_plan
    assert plan is not None
    source._load_plan = replace(plan, made_seconds=plan.made_seconds - MAX_AGE_SECONDS)
    again = [partition.value for partition in source.reader(StructType([])).partitions()]
    assert requests["list"] > 0
    assert again == tasks


def test_a_plan_of_another_boot_of_the_machine_is_old() -> None:
    plan = LoadPlan([], [], 100.0)
    ages = (-0.1, 0.0, MAX_AGE_SECONDS, MAX_AGE_SECONDS + 0.1)
    recent = [plan.recent_tasks(lambda age=age: 100.0 + age) for age in ages]  # type: ignore[misc]
    assert recent == [None, [], [], None]


def test_spark_sends_the_plan_to_planners_and_not_to_tasks(klog_root: Path) -> None:
    """Spark pickles the data source and its reader into the function of every task."""
    source = KlogDataSource(options_of(klog_root))
    source.schema()
    source = pickle.loads(pickle.dumps(source))
    reader = source.reader(StructType([]))
    path = b"t-0/0000"
    assert path in pickle.dumps(reader.partitions())
    for sent in (source, reader):
        assert path not in pickle.dumps(sent)
        assert len(pickle.dumps(sent)) < 1000


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


@pytest.mark.parametrize(
    ("max_whole_bytes", "expected"),
    [(0, {"read": 2, "open": 1, "range": 1}), (64 << 10, {"open": 1, "range": 1})],
)
def test_a_time_costs_three_reads_after_the_state_and_one_in_a_small_segment(
    klog_root: Path, requests: Counter[str], monkeypatch: pytest.MonkeyPatch,
    max_whole_bytes: int, expected: dict[str, int],
) -> None:  # fmt: skip
    monkeypatch.setattr(small_segments, "MAX_WHOLE_BYTES", max_whole_bytes)
    name = TopicPartition("t", 0)
    log = open_root([str(klog_root)]).snapshot().open([name])[name]
    requests.clear()
    assert log.offset_for_time(START_MS + 2_345_000, 3000) == 2345
    assert requests == expected


def test_looking_at_an_idle_topic_again_is_one_read_and_one_listing(
    klog_root: Path, requests: Counter[str]
) -> None:
    root = open_root([str(klog_root)])
    assert list(root.snapshot().topics["t"]) == [0]
    requests.clear()
    assert list(root.snapshot().topics["t"]) == [0]
    assert requests == {"read": 1, "list": 1}


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        ({"subscribe": "t"}, {"read": 1, "list": 1}),
        # The names of the topics are listed, too.
        ({"subscribe": "", "subscribePattern": ".*"}, {"read": 1, "list": 2}),
    ],
)
def test_a_poll_of_an_idle_stream(
    klog_root: Path,
    requests: Counter[str],
    subscription: dict[str, str],
    expected: dict[str, int],
) -> None:
    options = options_of(klog_root, startingOffsets="earliest") | subscription
    reader = KlogStreamReader({name: value for name, value in options.items() if value})
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    for _ in range(3):
        requests.clear()
        assert reader.latestOffset(end, ReadAllAvailable()) == end
        assert requests == expected
