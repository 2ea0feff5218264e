"""Reading a klog root: what is planned is what was committed, in few requests."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import klog
from klog.connector.open_root import open_root
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import index_narrowing, scan_planner, task_sizing
from klog.connector.source.load_plan import ResolvedRange
from klog.connector.source.slice_batches import as_in_file
from klog.connector.source.slice_contract import expand_task
from klog.connector.source.slices import Slice
from klog.connector.store.local_store import LocalStore
from klog.errors import DataLossError, OptionError, UnsupportedFormatError
from klog.logformat.topic_partition import TopicPartition
from tests.connector.committed_topic import (
    START_MS,
    between,
    make_root,
    read,
    state_of,
    values,
)
from tests.support.resolved_offsets import resolve_offsets


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a root for a test that damages it."""
    return make_root(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a root for all tests that only read."""
    return make_root(tmp_path_factory.mktemp("shared"))


def test_appended_records_are_read(path: Path) -> None:
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
    shared: Path, first: int, second: int, target: int, max_unindexed: int, min_tasks: int
) -> None:
    start, end = sorted((first, second))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_sizing, "TARGET_BYTES", target)
        patch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", max_unindexed)
        more = {"minPartitions": str(min_tasks)} if min_tasks else {}
        rows = read(shared, **between(start, end), **more)
    assert [row["offset"] for row in rows] == list(range(start, end))
    assert values(rows) == list(range(start, end))


def narrow(slice_: Slice) -> Slice:
    """Narrow a slice by the index that it names, as its task does."""
    store = LocalStore()
    file = store.open(slice_.path)
    try:
        return index_narrowing.narrow(store, as_in_file(slice_), file)
    finally:
        file.close()


def test_slices_of_a_segment_share_no_offset(shared: Path) -> None:
    """A slice that is planned again by its offsets has no record of another slice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_sizing, "TARGET_BYTES", 2000)
        patch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)
        parsed = parse_read_options({"subscribe": "t", **between(17, 2983)})
        root = open_root([str(shared)])
        tasks = scan_planner.plan_snapshot(root.snapshot(), parsed)
    slices = [slice_ for task in tasks for slice_ in expand_task(task)]
    spans = [(slice_.start_offset, slice_.end_offset) for slice_ in slices]
    assert [span[0] for span in spans] == [17, *(span[1] for span in spans[:-1])]
    assert spans[-1][1] == 2983
    assert len(slices) > 60
    assert {len(list(expand_task(task))) for task in tasks} == {1}, "each has its share of bytes"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)
        narrowed = [narrow(slice_) for slice_ in slices]
    assert max(slice_.size_bytes for slice_ in narrowed) < 4000


@pytest.mark.parametrize(("less", "tasks"), [(0, 1), (1, 2)])
def test_a_task_has_as_many_bytes_as_its_share(
    shared: Path, monkeypatch: pytest.MonkeyPatch, less: int, tasks: int
) -> None:
    size_bytes = sum(state_of(shared).segments["size_bytes"].to_pylist())
    monkeypatch.setattr(task_sizing, "TARGET_BYTES", size_bytes - less)
    parsed = parse_read_options({"subscribe": "t"})
    root = open_root([str(shared)])
    assert len(scan_planner.plan_snapshot(root.snapshot(), parsed)) == tasks


@pytest.mark.parametrize("second", [0, 1, 499, 1000, 1499, 1500, 2222, 2999])
def test_scan_starts_or_ends_at_a_time(shared: Path, second: int) -> None:
    log = klog.open(str(shared))
    at = datetime.fromtimestamp(START_MS / 1000 + second - 0.5, timezone.utc)
    rows = log.scan("t", start=at, columns=["offset"]).read_all()
    assert rows["offset"].to_pylist() == list(range(second, 3000))
    upto = log.scan("t", end=at, columns=["offset"]).read_all()
    assert upto["offset"].to_pylist() == list(range(second))


def test_time_after_all_records_has_no_rows(shared: Path) -> None:
    at = datetime.fromtimestamp(START_MS / 1000 + 4000, timezone.utc)
    assert klog.open(str(shared)).scan("t", start=at).read_all().num_rows == 0


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
def test_missing_partition_is_not_in_a_snapshot(path: Path, name: TopicPartition) -> None:
    klog.open(str(path)).create_topic("gone")
    klog.open(str(path)).delete_topic("gone")
    snapshot = open_root([str(path)]).snapshot()
    assert TopicPartition("t", 0) in snapshot
    assert name not in snapshot
    with pytest.raises(FileNotFoundError, match=f"partition {name} has gone"):
        snapshot.open([name])


@pytest.mark.parametrize("name", ["t", ("t", 0, 0), None])
def test_snapshot_has_only_partitions(shared: Path, name: object) -> None:
    assert name not in open_root([str(shared)]).snapshot()


def test_a_plan_of_a_partition_that_was_never_there_is_data_loss(shared: Path) -> None:
    root = open_root([str(shared)])
    topic_id = root.snapshot().topic_ids(["t"])["t"]
    with pytest.raises(DataLossError, match="t-1: the partition was deleted"):
        scan_planner.plan_tasks(
            root,
            [ResolvedRange(TopicPartition("t", 1), topic_id, 0, 5)],
            parse_read_options({"subscribe": "t"}),
        )


def test_a_klog_root_is_read_by_itself(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(OptionError, match="is a klog root, which is read by itself"):
        open_root([str(tmp_path / "other"), str(path)])


def test_error_of_a_missing_topic_lists_the_others(path: Path) -> None:
    klog.open(str(path)).create_topic("gone")
    klog.open(str(path)).delete_topic("gone")
    for topic, missing in (
        ("x", "there is no topic x"),
        ("gone", "topic gone was deleted .`klog history --topic gone` says when and by whom."),
    ):
        with pytest.raises(OptionError, match=rf"{missing}; the topics here are t$"):
            read_topic(path, topic)


def read_topic(path: Path, topic: str) -> None:
    parsed = parse_read_options({"subscribe": topic})
    resolve_offsets(open_root([str(path)]), parsed)


def test_a_topic_that_cannot_be_read_stops_no_read_of_another(path: Path) -> None:
    klog.open(str(path)).create_topic("newer")
    described = path / "_klog" / "topics" / "newer" / "topic.json"
    described.write_text(json.dumps({"format": 9, "since": "9.0.0"}))
    root = open_root([str(path)])
    parsed = parse_read_options({"subscribePattern": "^t$"})
    assert [resolved.name.topic for resolved in resolve_offsets(root, parsed)] == ["t"]
    with pytest.raises(OptionError, match=r"there is no topic x; the topics here are newer, t$"):
        read_topic(path, "x")
    with pytest.raises(UnsupportedFormatError, match=r"newer/topic\.json.*install klog 9\.0\.0"):
        read_topic(path, "newer")


def test_a_pattern_loads_only_what_it_means(shared: Path, requests: Counter[str]) -> None:
    for name in ("other", "third"):
        klog.open(str(shared)).create_topic(name)
    root = open_root([str(shared)])
    parsed = parse_read_options({"subscribePattern": "^t$"})
    resolve_offsets(root, parsed)
    requests.clear()
    resolve_offsets(root, parsed)
    assert requests == {"read": 1, "list": 2}
