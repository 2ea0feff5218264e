"""Plans: bytes balanced, ranges covered exactly, cuts where batches begin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klog.connector.source import task_sizing
from klog.connector.source.slice_contract import TaskDict, expand_task
from klog.connector.source.slices import Slice
from tests.connector.log_dirs import (
    entries_of,
    many,
    offset_index,
    offsets,
    plan_tasks,
    read_tasks,
    write_log,
)
from tests.support.batch_bytes import plain

COUNT = 1000
BATCHES = many(COUNT)
SIZE = len(BATCHES[0])
STARTS = {i * SIZE for i in range(COUNT)}
TRUE_INDEX = entries_of(BATCHES, 10)
INDEX = "00000000000000000000.index"


def between(start: int, end: int) -> dict[str, str]:
    return {
        "startingOffsets": json.dumps({"t": {"0": start}}),
        "endingOffsets": json.dumps({"t": {"0": end}}),
    }


def slices_of(tasks: list[TaskDict]) -> list[Slice]:
    return [slice_ for task in tasks for slice_ in expand_task(task)]


def sizes(tasks: list[TaskDict]) -> list[int]:
    return [sum(slice_.size_bytes for slice_ in expand_task(task)) for task in tasks]


def assert_covered(tasks: list[TaskDict], start: int, end: int) -> None:
    """Check that the slices' offsets follow one another, and each begins at a batch."""
    slices = slices_of(tasks)
    starts, ends = [s.start_offset for s in slices], [s.end_offset for s in slices]
    assert starts == [start, *ends[:-1]]
    assert ends[-1] == end
    assert all(slice_.offset_count > 0 for slice_ in slices)


def test_a_small_log_is_one_task(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(3), 3: many(4, 3)})
    (task,) = plan_tasks([str(tmp_path)])
    slices = list(expand_task(task))
    sums = [(s.base_offset, s.start_position, s.end_position, s.first_offset) for s in slices]
    assert sums == [(0, 0, 3 * SIZE, -1), (3, 0, 4 * SIZE, -1)]
    assert [s.path for s in slices] == [str(directory / f"{base:020d}.log") for base in (0, 3)]
    assert all((s.topic, s.partition, s.root) == ("t", 0, str(tmp_path)) for s in slices)


def test_slices_are_plain_values(tmp_path: Path) -> None:
    write_log(tmp_path, {0: BATCHES})
    tasks = plan_tasks([str(tmp_path)], minPartitions="5")
    assert json.loads(json.dumps(tasks)) == tasks


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("minimum", [2, 3, 7, 50])
def test_plan_has_the_minimum_of_tasks(tmp_path: Path, minimum: int, indexed: bool) -> None:
    directory = write_log(tmp_path, {0: BATCHES})
    if indexed:
        (directory / INDEX).write_bytes(offset_index(entries_of(BATCHES, 2)))
    tasks = plan_tasks([str(tmp_path)], minPartitions=str(minimum))
    assert len(tasks) >= minimum
    assert max(sizes(tasks)) <= 2 * COUNT * SIZE // min(minimum, 20)
    assert_covered(tasks, 0, COUNT)
    assert offsets(read_tasks([str(tmp_path)], tasks)) == list(range(COUNT))


@pytest.mark.parametrize(("minimum", "count"), [(3, 3), (4, 4), (5, 5), (9, 5)])
def test_task_is_not_smaller_than_one_offset(tmp_path: Path, minimum: int, count: int) -> None:
    write_log(tmp_path, {0: many(5)})
    tasks = plan_tasks([str(tmp_path)], minPartitions=str(minimum))
    assert len(tasks) == count
    assert_covered(tasks, 0, 5)
    assert offsets(read_tasks([str(tmp_path)], tasks)) == list(range(5))


def test_each_cut_knows_the_batch_it_begins_at(tmp_path: Path) -> None:
    write_log(tmp_path, {0: BATCHES})
    for slice_ in slices_of(plan_tasks([str(tmp_path)], minPartitions="9")):
        assert slice_.first_offset == slice_.start_position // SIZE


def test_tasks_are_balanced_over_partitions(tmp_path: Path) -> None:
    write_log(tmp_path, {0: BATCHES}, "t-0")
    write_log(tmp_path, {0: many(100)}, "t-1")
    write_log(tmp_path, {0: []}, "t-2")
    tasks = plan_tasks([str(tmp_path)], minPartitions="11")
    assert len(tasks) >= 11
    partitions = [{slice_.partition for slice_ in expand_task(task)} for task in tasks]
    assert all(len(numbers) == 1 for numbers in partitions)
    assert set().union(*partitions) == {0, 1}
    assert max(sizes(tasks)) <= 2 * 1100 * SIZE // 11


def test_target_size_without_a_minimum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_sizing, "TARGET_BYTES", 20 * SIZE)
    directory = write_log(tmp_path, {0: BATCHES[:500], 500: BATCHES[500:505], 505: BATCHES[505:]})
    (directory / INDEX).write_bytes(offset_index(entries_of(BATCHES[:500])))
    tasks = plan_tasks([str(tmp_path)])
    assert 40 <= len(tasks) <= 60
    assert offsets(read_tasks([str(tmp_path)], tasks)) == list(range(COUNT))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, COUNT), st.integers(0, COUNT), st.integers(1, 30), st.booleans())
def test_any_range_is_covered_exactly(
    tmp_path: Path, first: int, second: int, minimum: int, indexed: bool
) -> None:
    start, end = sorted((first, second))
    directory = write_log(tmp_path, {0: BATCHES[:700], 700: BATCHES[700:]})
    if indexed:
        (directory / INDEX).write_bytes(offset_index(entries_of(BATCHES[:700], 3)))
    else:
        (directory / INDEX).unlink(missing_ok=True)
    tasks = plan_tasks([str(tmp_path)], minPartitions=str(minimum), **between(start, end))
    assert offsets(read_tasks([str(tmp_path)], tasks)) == list(range(start, end))
    if start == end:
        assert tasks == []
        return
    assert_covered(tasks, start, end)
    for slice_ in slices_of(tasks):
        segment_position = 0 if slice_.base_offset == 0 else 700 * SIZE
        assert segment_position + slice_.start_position in STARTS


def test_batches_of_many_records_are_not_cut(tmp_path: Path) -> None:
    batches = [plain(100 * i, [b"v" * 50] * 100) for i in range(60)]
    write_log(tmp_path, {0: batches})
    tasks = plan_tasks([str(tmp_path)], minPartitions="7", **between(150, 4321))
    assert offsets(read_tasks([str(tmp_path)], tasks)) == list(range(150, 4321))


def test_an_empty_range_has_no_task(tmp_path: Path) -> None:
    write_log(tmp_path, {0: BATCHES})
    assert plan_tasks([str(tmp_path)], **between(7, 7)) == []


LIES = {
    "garbage": b"garbage",
    "a byte more": offset_index(TRUE_INDEX) + b"\0",
    "nothing": b"",
    "zeros": bytes(8000),
    "no batch there": offset_index([(o, p + 1) for o, p in TRUE_INDEX]),
    "no batch at one": offset_index(
        [(o, p + (5 if i == 50 else 0)) for i, (o, p) in enumerate(TRUE_INDEX)]
    ),
    "past the end": offset_index([*TRUE_INDEX, (5000, 1 << 30)]),
    "of a longer log": offset_index([(o * 3, p * 3) for o, p in TRUE_INDEX]),
}
# Each position is that of a batch, but not of the batch the entry speaks of.
SHIFTED = {
    "batches too late": [(o - 200 if o < 900 else o, p) for o, p in TRUE_INDEX if o > 200],
    "batches too early": [
        (o + 90 if 300 <= o < 800 else o, p) for o, p in TRUE_INDEX if not 800 <= o < 900
    ],
    "one batch too late": [
        (o, p + (9 * SIZE if i == 29 else 0)) for i, (o, p) in enumerate(TRUE_INDEX)
    ],
}
RANGES = [(0, COUNT), (1, COUNT), (150, 800), (295, 305), (301, 302), (799, 801), (990, 1000)]


@pytest.mark.parametrize("minimum", ["1", "2", "8"])
@pytest.mark.parametrize("lie", LIES)
def test_index_files_that_lie_are_replaced(tmp_path: Path, lie: str, minimum: str) -> None:
    directory = write_log(tmp_path, {0: BATCHES})
    (directory / INDEX).write_bytes(LIES[lie])
    for start, end in RANGES:
        tasks = plan_tasks([str(tmp_path)], minPartitions=minimum, **between(start, end))
        assert offsets(read_tasks([str(tmp_path)], tasks)) == list(range(start, end))
        assert {slice_.start_position for slice_ in slices_of(tasks)} <= STARTS


def misread_ranges(tmp_path: Path, lie: str) -> list[tuple[int, int]]:
    """Return the ranges that are not read completely with such an index."""
    directory = write_log(tmp_path, {0: BATCHES})
    (directory / INDEX).write_bytes(offset_index(SHIFTED[lie]))
    ranges = []
    for start, end in RANGES:
        tasks = plan_tasks([str(tmp_path)], minPartitions="8", **between(start, end))
        if offsets(read_tasks([str(tmp_path)], tasks)) != list(range(start, end)):
            ranges.append((start, end))
    return ranges


def test_index_entries_that_end_a_range_too_early_are_replaced(tmp_path: Path) -> None:
    assert misread_ranges(tmp_path, "batches too early") == []


@pytest.mark.parametrize("lie", ["batches too late", "one batch too late"])
def test_index_entries_that_begin_a_range_too_late_are_replaced(tmp_path: Path, lie: str) -> None:
    # `docs/reading.md`, Indexes: the batch at a position holds the offset that the entry speaks of.
    assert misread_ranges(tmp_path, lie) == []
