"""Reading a klog root: what is planned is what was committed, in few requests."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import klog
from klog.connector.log.partition import TopicPartition
from klog.connector.log.roots import open_root
from klog.connector.options import read_options
from klog.connector.source import indexed, scan
from klog.connector.source import plan as plan_module
from klog.connector.source.read import as_in_file
from klog.connector.source.slices import expanded
from klog.connector.store.local import LocalFile, LocalStore
from klog.errors import DataLossError, OptionError, UnsupportedFormatError
from tests.connector.committed import (
    START_MS,
    between,
    made,
    read,
    state_of,
    values,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make one such root for a test that damages it."""
    return made(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one such root for all tests that only read."""
    return made(tmp_path_factory.mktemp("shared"))


def test_what_was_appended_is_read(path: Path) -> None:
    rows = read(path)
    assert [row["offset"] for row in rows] == list(range(3000))
    assert values(rows) == list(range(3000))
    state = state_of(path)
    assert set(state.segments["offset_shift"].to_pylist()) == {0, 500}
    assert state.segments.num_rows > 9
    assert sum(size > 0 for size in state.segments["index_bytes"].to_pylist()) > 9


@settings(max_examples=30)
@given(
    st.integers(0, 3000),
    st.integers(0, 3000),
    st.sampled_from([300, 3000, 30_000, 1 << 26]),
    st.sampled_from([0, 1 << 18]),
    st.integers(0, 40),
)
def test_any_range_is_read_exactly(
    shared: Path, one: int, other: int, target: int, whole: int, min_tasks: int
) -> None:
    start, end = sorted((one, other))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "TARGET_BYTES", target)
        patch.setattr(indexed, "WHOLE_BYTES", whole)
        more = {"minPartitions": str(min_tasks)} if min_tasks else {}
        rows = read(shared, **between(start, end), **more)
    assert [row["offset"] for row in rows] == list(range(start, end))
    assert values(rows) == list(range(start, end))


def test_slices_of_a_segment_share_no_offset(shared: Path) -> None:
    """A slice that is planned anew by its offsets gives no record that another gives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "TARGET_BYTES", 2000)
        patch.setattr(indexed, "WHOLE_BYTES", 0)
        parsed = read_options({"subscribe": "t", **between(17, 2983)})
        root = open_root([str(shared)])
        tasks = scan.slices(root, scan.pin(root, parsed), parsed)
    pieces = [piece for task in tasks for piece in expanded(task)]
    spans = [(piece["start_offset"], piece["end_offset"]) for piece in pieces]
    assert [span[0] for span in spans] == [17, *(span[1] for span in spans[:-1])]
    assert spans[-1][1] == 2983
    assert len(pieces) > 60
    assert {len(list(expanded(task))) for task in tasks} == {1}, "each has its share of bytes"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexed, "WHOLE_BYTES", 0)
        read = [indexed.narrowed(LocalStore(), as_in_file(piece)) for piece in pieces]
    assert max(piece["end"] - piece["begin"] for piece in read) < 4000


@pytest.mark.parametrize(("less", "tasks"), [(0, 1), (1, 2)])
def test_a_task_has_as_many_bytes_as_its_share(
    shared: Path, monkeypatch: pytest.MonkeyPatch, less: int, tasks: int
) -> None:
    size_bytes = sum(state_of(shared).segments["size_bytes"].to_pylist())
    monkeypatch.setattr(plan_module, "TARGET_BYTES", size_bytes - less)
    parsed = read_options({"subscribe": "t"})
    root = open_root([str(shared)])
    assert len(scan.slices(root, scan.pin(root, parsed), parsed)) == tasks


@pytest.mark.parametrize("second", [0, 1, 499, 1000, 1499, 1500, 2222, 2999])
def test_a_time_is_found(shared: Path, second: int) -> None:
    log = klog.open(str(shared))
    at = datetime.fromtimestamp(START_MS / 1000 + second - 0.5, timezone.utc)
    rows = log.scan("t", start=at, columns=["offset"]).read_all()
    assert rows["offset"].to_pylist() == list(range(second, 3000))
    upto = log.scan("t", end=at, columns=["offset"]).read_all()
    assert upto["offset"].to_pylist() == list(range(second))


def test_a_time_behind_all_records_finds_none(shared: Path) -> None:
    at = datetime.fromtimestamp(START_MS / 1000 + 4000, timezone.utc)
    assert klog.open(str(shared)).scan("t", start=at).read_all().num_rows == 0


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is asked of the local store."""
    counted: Counter[str] = Counter()

    def count(owner: type, name: str, kind: str) -> None:
        original = getattr(owner, name)

        def counting(self: Any, *given: Any) -> Any:
            counted[kind] += 1
            return original(self, *given)

        monkeypatch.setattr(owner, name, counting)

    count(LocalStore, "read", "read")
    count(LocalStore, "entries", "list")
    count(LocalStore, "open", "open")
    count(LocalFile, "read", "range")
    return counted


def test_one_offset_costs_two_reads_beside_the_state(
    shared: Path, requests: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexed, "WHOLE_BYTES", 0)
    parsed = read_options({"subscribe": "t", **between(2345, 2346)})
    root = open_root([str(shared)])
    pinned = scan.pin(root, parsed)
    requests.clear()
    root.look().open([])
    tasks = scan.slices(root, pinned, parsed)
    # The state again, from the one known: the next commit, which is not there, and the boundary.
    assert requests == {"read": 1, "list": 1}
    requests.clear()
    (row,) = [
        r
        for task in tasks
        for b in scan.reader([str(shared)], parsed).read(task)
        for r in b.to_pylist()
    ]
    assert row["offset"] == 2345
    assert requests == {"open": 1, "read": 1, "range": 1}


def test_a_time_costs_three_reads_beside_the_state(shared: Path, requests: Counter[str]) -> None:
    root = open_root([str(shared)])
    look = root.look()
    name = TopicPartition("t", 0)
    log = look.open([name])[name]
    requests.clear()
    assert log.offset_for_time(START_MS + 2_345_000, 3000) == 2345
    assert requests == {"read": 2, "open": 1, "range": 1}


def test_an_idle_look_is_one_read_and_one_listing(shared: Path, requests: Counter[str]) -> None:
    root = open_root([str(shared)])
    assert list(root.look().topics["t"]) == [0]
    requests.clear()
    assert list(root.look().topics["t"]) == [0]
    assert requests == {"read": 1, "list": 1}


@pytest.mark.parametrize(
    "name",
    [
        TopicPartition("t", 1),
        TopicPartition("t", -1),
        TopicPartition("x", 0),
        TopicPartition("gone", 0),
    ],
    ids=str,
)
def test_a_partition_that_is_not_there_is_not_in_a_look(path: Path, name: TopicPartition) -> None:
    klog.open(str(path)).create_topic("gone")
    klog.open(str(path)).delete_topic("gone")
    look = open_root([str(path)]).look()
    assert TopicPartition("t", 0) in look
    assert name not in look
    with pytest.raises(FileNotFoundError, match=f"partition {name} has gone"):
        look.open([name])


@pytest.mark.parametrize("name", ["t", ("t", 0, 0), None])
def test_a_look_has_partitions_alone(shared: Path, name: object) -> None:
    assert name not in open_root([str(shared)]).look()


def test_a_plan_of_a_partition_that_was_never_there_is_data_loss(shared: Path) -> None:
    root = open_root([str(shared)])
    topic_id = root.look().topic_ids(["t"])["t"]
    with pytest.raises(DataLossError, match="t-1: the partition was deleted"):
        scan.slices(root, [("t", 1, topic_id, 0, 5)], read_options({"subscribe": "t"}))


def test_a_klog_root_is_read_by_itself(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(OptionError, match="is a klog root, which is read by itself"):
        open_root([str(tmp_path / "other"), str(path)])


def test_a_topic_that_is_not_there_is_told_with_those_that_are(path: Path) -> None:
    klog.open(str(path)).create_topic("gone")
    klog.open(str(path)).delete_topic("gone")
    for topic, missing in (
        ("x", "there is no topic x"),
        ("gone", "topic gone was deleted .`klog history --topic gone` says when and by whom."),
    ):
        with pytest.raises(OptionError, match=rf"{missing}; the topics here are t$"):
            read_topic(path, topic)


def read_topic(path: Path, topic: str) -> None:
    parsed = read_options({"subscribe": topic})
    scan.pin(open_root([str(path)]), parsed)


def test_a_topic_that_cannot_be_read_stops_no_read_of_another(path: Path) -> None:
    klog.open(str(path)).create_topic("newer")
    described = path / "_klog" / "topics" / "newer" / "topic.json"
    described.write_text(json.dumps({"format": 9, "since": "9.0.0"}))
    root = open_root([str(path)])
    parsed = read_options({"subscribePattern": "^t$"})
    assert [row[0] for row in scan.pin(root, parsed)] == ["t"]
    with pytest.raises(OptionError, match=r"there is no topic x; the topics here are newer, t$"):
        read_topic(path, "x")
    with pytest.raises(UnsupportedFormatError, match=r"newer/topic\.json.*install klog 9\.0\.0"):
        read_topic(path, "newer")


def test_a_pattern_loads_only_what_it_means(shared: Path, requests: Counter[str]) -> None:
    for name in ("other", "third"):
        klog.open(str(shared)).create_topic(name)
    root = open_root([str(shared)])
    parsed = read_options({"subscribePattern": "^t$"})
    scan.pin(root, parsed)
    requests.clear()
    scan.pin(root, parsed)
    assert requests == {"read": 1, "list": 2}
