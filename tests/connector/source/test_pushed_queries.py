"""What a query pushes to the plan is held to all rows of a read, over roots of many kinds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql.types import StructType

from klog.connector.datasource import KlogDataSource
from klog.connector.source.slice_contract import expand_task
from klog.connector.source.slices import Slice
from tests.connector.jvm_plans import ask
from tests.connector.varied_roots import ROOTS, make_named_root
from tests.support.reader_rows import LEVELS
from tests.support.sampled_cases import sampled

SEEDS = range(6)


class Row(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int


@dataclass
class Read:
    """A topic, options of a read of it, and the rows that they say."""

    root: Path
    options: dict[str, str]
    rows: list[Row]

    @classmethod
    def of(cls, root: Path, options: dict[str, str]) -> Read:
        source = KlogDataSource({"path": str(root), **options})
        source.schema()
        reader = source.reader(StructType())
        columns = ("partition", "offset", "timestamp")
        rows = [
            Row(partition, offset, micros // 1000)
            for task in reader.partitions()
            for batch in reader.read(task)
            for partition, offset, micros in zip(
                *(batch.column(name).cast("int64").to_pylist() for name in columns), strict=True
            )
        ]
        return cls(root, options, rows)

    def ask(self, request: dict[str, Any]) -> list[Any]:
        return ask(self.root, request, **self.options)

    def slices(self, request: dict[str, Any]) -> list[Slice]:
        _, *tasks = self.ask(request)
        return [slice_ for task in tasks for slice_ in expand_task(task)]

    def within(self, bounds: dict[str, Any]) -> list[Row]:
        return [
            row
            for row in self.rows
            if row.partition in bounds.get("partitions", (row.partition,))
            and bounds.get("startOffset", 0) <= row.offset < bounds.get("endOffset", 1 << 62)
        ]


@pytest.fixture(scope="module", params=sampled(ROOTS, 2, pytest.mark.full))
def topic(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """Return a root and its topic."""
    return make_named_root(request.param, tmp_path_factory.mktemp("pushed"))


@pytest.fixture(scope="module", params=LEVELS)
def read(request: pytest.FixtureRequest, topic: tuple[Path, str]) -> Read:
    """Return a read of all of the topic."""
    root, name = topic
    return Read.of(root, {"subscribe": name, "isolationLevel": request.param})


def cuts(read: Read) -> Iterator[tuple[Read, dict[str, Any]]]:
    """Yield reads of parts by their options, each with bounds."""
    yield read, {}
    ends: Counter[int] = Counter()
    for row in read.rows:
        ends[row.partition] = max(ends[row.partition], row.offset + 1)
    for seed in SEEDS if read.rows else ():
        source = random.Random(seed)
        last = max(ends.values())
        bounds: dict[str, Any] = {}
        if source.random() < 0.5:
            bounds["partitions"] = source.sample(sorted(ends), source.randrange(len(ends) + 1))
        if source.random() < 0.7:
            bounds["startOffset"] = source.randrange(last)
        if source.random() < 0.7:
            bounds["endOffset"] = source.randrange(last + 1)
        cut = read
        if source.random() < 0.5:
            count = source.randrange(1, last + 1)
            cut = Read.of(read.root, {**read.options, "startingOffsets": f"-{count}"})
        yield cut, bounds


def test_aggregates_are_those_of_all_rows_or_not_known(read: Read, requests: Counter[str]) -> None:
    for part, bounds in cuts(read):
        rows = part.within(bounds)
        offsets, times = [row.offset for row in rows], [row.timestamp_ms for row in rows]
        expected = {
            "count": len(rows),
            "minOffset": min(offsets, default=None), "maxOffset": max(offsets, default=None),
            "minTimestampMs": min(times, default=None), "maxTimestampMs": max(times, default=None),
        }  # fmt: skip
        requests.clear()
        (summary,) = part.ask({"bounds": bounds, "aggregates": ["count"]})
        assert requests["open"] == requests["range"] == 0
        known = summary["aggregates"]
        assert known == {name: expected[name] for name in known}, bounds


KNOWN = {
    "shifted": 5, "cut": 4, "append time": 5, "emptied": 5, "merged": 4, "without times": 4,
    "compacted by klog": 3, "txn.java": 2,
}  # fmt: skip
"""How many aggregates of all committed rows the commits know."""


@pytest.mark.parametrize("name", KNOWN)
def test_number_of_known_aggregates(name: str, tmp_path: Path) -> None:
    root, topic = make_named_root(name, tmp_path)
    (summary,) = ask(root, {"aggregates": ["count"]}, subscribe=topic)
    assert len(summary["aggregates"]) == KNOWN[name], summary["aggregates"]


def has(slices: list[Slice], row: Row) -> bool:
    return any(
        slice_.partition == row.partition and slice_.start_offset <= row.offset < slice_.end_offset
        for slice_ in slices
    )


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("count", [1, 7, 150])
def test_the_first_and_the_last_rows_are_in_the_plan(
    read: Read, count: int, is_descending: bool
) -> None:
    for part, bounds in cuts(read):
        rows = sorted(part.within(bounds), key=lambda row: row.offset, reverse=is_descending)
        top = {"rows": count, "isDescending": is_descending}
        slices = part.slices({"bounds": bounds, "top": top})
        assert all(has(slices, row) for row in rows[:count])
        # A task stops after so many rows: it has one partition, and its offsets rise.
        for task in part.ask({"bounds": bounds, "top": top})[1:]:
            places = [(slice_.partition, slice_.start_offset) for slice_ in expand_task(task)]
            assert len({partition for partition, _ in places}) == 1
            assert places == sorted(places)


@pytest.mark.parametrize("is_descending", [False, True])
def test_no_more_is_planned_if_every_offset_has_a_record(
    tmp_path: Path, is_descending: bool
) -> None:
    root, topic = make_named_root("cut", tmp_path)
    read = Read.of(root, {"subscribe": topic})
    slices = read.slices({"top": {"rows": 30, "isDescending": is_descending}})
    assert sum(slice_.offset_count for slice_ in slices) == 30


def test_rows_between_times_are_in_the_plan(read: Read) -> None:
    for part, bounds in cuts(read):
        rows = part.within(bounds)
        for time_ms in {row.timestamp_ms for row in rows[:: max(len(rows) // 5, 1)]}:
            for more in (
                {"startTimestampMs": time_ms},
                {"endTimestampMs": time_ms + 1},
                {"startTimestampMs": time_ms, "endTimestampMs": time_ms + 3000},
            ):
                if min(more.values()) < 0:
                    continue
                start, end = more.get("startTimestampMs", -1), more.get("endTimestampMs", 1 << 62)
                slices = part.slices({"bounds": bounds | more})
                in_time = [row for row in rows if start <= row.timestamp_ms < end]
                assert all(has(slices, row) for row in in_time)


def test_segments_after_the_last_time_are_not_planned(tmp_path: Path) -> None:
    root, topic = make_named_root("shifted", tmp_path)
    read = Read.of(root, {"subscribe": topic})
    end_ms = read.rows[1000].timestamp_ms
    slices = read.slices({"bounds": {"endTimestampMs": end_ms}})
    assert 1000 <= max(slice_.end_offset for slice_ in slices) < 1300
    assert not read.slices({"bounds": {"endTimestampMs": read.rows[0].timestamp_ms}})
