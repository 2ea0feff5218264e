"""Plans: bytes balanced, ranges covered exactly, cuts where batches begin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klog.connector.source import plan as plan_module
from tests.connector.logs import (
    entries_of,
    many,
    offset_index,
    offsets,
    plan_tasks,
    read_tasks,
    write_log,
)
from tests.encode import plain

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


def flat(tasks: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [piece for task in tasks for piece in task]


def sizes(tasks: list[list[dict[str, Any]]]) -> list[int]:
    return [sum(piece["end"] - piece["begin"] for piece in task) for task in tasks]


def assert_covered(tasks: list[list[dict[str, Any]]], start: int, end: int) -> None:
    """Check that the slices' offsets follow one another, and each begins at a batch."""
    spans = [(piece["start_offset"], piece["end_offset"]) for piece in flat(tasks)]
    assert [span[0] for span in spans] == [start, *(span[1] for span in spans[:-1])]
    assert spans[-1][1] == end
    assert all(begin < behind for begin, behind in spans)


def test_a_small_log_is_one_task(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(3), 3: many(4, 3)})
    (task,) = plan_tasks([str(tmp_path)])
    sums = [(p["base_offset"], p["begin"], p["end"], p["first_offset"]) for p in task]
    assert sums == [(0, 0, 3 * SIZE, -1), (3, 0, 4 * SIZE, -1)]
    assert {p["path"] for p in task} == {str(directory / f"{base:020d}.log") for base in (0, 3)}
    assert all((p["topic"], p["partition"], p["root"]) == ("t", 0, str(tmp_path)) for p in task)


def test_slices_are_plain_values(tmp_path: Path) -> None:
    write_log(tmp_path, {0: BATCHES})
    for piece in flat(plan_tasks([str(tmp_path)], minPartitions="5")):
        assert json.loads(json.dumps(piece)) == piece


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("minimum", [2, 3, 7, 50])
def test_at_least_as_many_tasks_as_asked_for(tmp_path: Path, minimum: int, indexed: bool) -> None:
    directory = write_log(tmp_path, {0: BATCHES})
    if indexed:
        (directory / INDEX).write_bytes(offset_index(entries_of(BATCHES, 2)))
    tasks = plan_tasks([str(tmp_path)], minPartitions=str(minimum))
    assert len(tasks) >= minimum
    assert max(sizes(tasks)) <= 2 * COUNT * SIZE // min(minimum, 20)
    assert_covered(tasks, 0, COUNT)
    assert offsets(read_tasks([str(tmp_path)], tasks)) == list(range(COUNT))


@pytest.mark.parametrize(("minimum", "count"), [(3, 3), (4, 4), (5, 5), (9, 5)])
def test_a_task_has_one_offset_at_least(tmp_path: Path, minimum: int, count: int) -> None:
    write_log(tmp_path, {0: many(5)})
    tasks = plan_tasks([str(tmp_path)], minPartitions=str(minimum))
    assert len(tasks) == count
    assert_covered(tasks, 0, 5)
    assert offsets(read_tasks([str(tmp_path)], tasks)) == list(range(5))


def test_each_cut_knows_the_batch_it_begins_at(tmp_path: Path) -> None:
    write_log(tmp_path, {0: BATCHES})
    for piece in flat(plan_tasks([str(tmp_path)], minPartitions="9")):
        assert piece["first_offset"] == piece["begin"] // SIZE


def test_tasks_are_balanced_over_partitions(tmp_path: Path) -> None:
    write_log(tmp_path, {0: BATCHES}, "t-0")
    write_log(tmp_path, {0: many(100)}, "t-1")
    write_log(tmp_path, {0: []}, "t-2")
    tasks = plan_tasks([str(tmp_path)], minPartitions="11")
    assert len(tasks) >= 11
    by_partition = [{piece["partition"] for piece in task} for task in tasks]
    assert all(len(found) == 1 for found in by_partition)
    assert sorted(min(found) for found in by_partition)[-1] == 1
    assert max(sizes(tasks)) <= 2 * 1100 * SIZE // 11


def test_target_size_without_a_minimum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "TARGET_BYTES", 20 * SIZE)
    directory = write_log(tmp_path, {0: BATCHES[:500], 500: BATCHES[500:505], 505: BATCHES[505:]})
    (directory / INDEX).write_bytes(offset_index(entries_of(BATCHES[:500])))
    tasks = plan_tasks([str(tmp_path)])
    assert 40 <= len(tasks) <= 60
    assert offsets(read_tasks([str(tmp_path)], tasks)) == list(range(COUNT))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, COUNT), st.integers(0, COUNT), st.integers(1, 30), st.booleans())
def test_any_range_is_covered_exactly(
    tmp_path: Path, one: int, other: int, minimum: int, indexed: bool
) -> None:
    start, end = sorted((one, other))
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
    for piece in flat(tasks):
        assert piece["begin"] + (0 if piece["base_offset"] == 0 else 700 * SIZE) in STARTS


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
        assert {piece["begin"] for piece in flat(tasks)} <= STARTS


def lost_by(tmp_path: Path, lie: str) -> list[tuple[int, int]]:
    """Give the ranges that are not read whole with such an index."""
    directory = write_log(tmp_path, {0: BATCHES})
    (directory / INDEX).write_bytes(offset_index(SHIFTED[lie]))
    wrong = []
    for start, end in RANGES:
        tasks = plan_tasks([str(tmp_path)], minPartitions="8", **between(start, end))
        if offsets(read_tasks([str(tmp_path)], tasks)) != list(range(start, end)):
            wrong.append((start, end))
    return wrong


def test_index_entries_that_end_a_range_too_early_are_replaced(tmp_path: Path) -> None:
    assert lost_by(tmp_path, "batches too early") == []


@pytest.mark.parametrize("lie", ["batches too late", "one batch too late"])
def test_index_entries_that_begin_a_range_too_late_are_replaced(tmp_path: Path, lie: str) -> None:
    # `docs/reading.md`, Indexes: the batch at a position holds the offset that the entry speaks of.
    assert lost_by(tmp_path, lie) == []
