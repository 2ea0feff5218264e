"""Reading a klog root: what is planned is what was committed, in few requests, whatever happens."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import klog
from klog.connector.log import operations
from klog.connector.log.author import random_uuid
from klog.connector.log.entries import of_partition
from klog.connector.log.operations import replace_segments
from klog.connector.log.partition import TopicPartition
from klog.connector.log.root import KlogRoot, find_root
from klog.connector.log.roots import open_root
from klog.connector.log.state import State
from klog.connector.log.topic_log import Attempt
from klog.connector.options import read_options
from klog.connector.source import committed_plan, scan
from klog.connector.source import plan as plan_module
from klog.connector.source.slices import expanded
from klog.connector.store.local import LocalFile, LocalStore
from klog.errors import CorruptFileError, DataLossError, OptionError
from klog.logformat.offset_index import ENTRY

SMALL = {
    "segment.bytes": "20000",
    "index.interval.bytes": "200",
    "compression.type": "uncompressed",
}
BATCHES = {"batch.size": "400"}
START_MS = 1_700_000_000_000


def table(first: int, count: int) -> pa.Table:
    """Make rows of one partition whose values count from `first`, a second apart."""
    numbers = range(first, first + count)
    times = pa.array([START_MS + 1000 * number for number in numbers], pa.timestamp("ms", "UTC"))
    values = [b"%06d" % number * 10 for number in numbers]
    return pa.table({"value": values, "partition": pa.array([0] * count), "timestamp": times})


def state_of(path: Path, topic: str = "t") -> State:
    found = find_root(str(path))
    assert found is not None
    return found.log(topic).load()


def commit(path: Path, build: Any, operation: str) -> State:
    found = find_root(str(path))
    assert found is not None
    log = found.log("t")
    return log.commit(log.load(), build, Attempt(random_uuid(), operation, "test"))


def made(folder: Path) -> Path:
    """Make a root with a topic of 3,000 records in many indexed segments, some of them shifted."""
    path = folder / "root"
    log = klog.open(str(path))
    log.create_topic("t", 1, SMALL)
    log.append("t", table(0, 1000), options=BATCHES)
    before = state_of(path)
    log.append("t", table(1000, 500), options=BATCHES)
    # One who began when there were 1,000 comes last: the offsets in its files are 500 lower.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KlogRoot, "load", lambda self, log, cached=None: before)
        klog.open(str(path)).append("t", table(1500, 1500), options=BATCHES)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make one such root for a test that damages it."""
    return made(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one such root for all tests that only read."""
    return made(tmp_path_factory.mktemp("shared"))


def values(rows: Sequence[dict[str, Any]]) -> list[int]:
    return [int(row["value"][:6]) for row in rows]


def read(path: Path, **options: str) -> list[dict[str, Any]]:
    parsed = read_options({"subscribe": "t", **options})
    root = open_root([str(path)])
    tasks = scan.slices(root, scan.pin(root, parsed), parsed)
    reader = scan.reader([str(path)], parsed)
    return [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]


def between(start: int, end: int) -> dict[str, str]:
    return {
        "startingOffsets": json.dumps({"t": {"0": start}}),
        "endingOffsets": json.dumps({"t": {"0": end}}),
    }


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
        patch.setattr(committed_plan, "WHOLE_BYTES", whole)
        more = {"minPartitions": str(min_tasks)} if min_tasks else {}
        rows = read(shared, **between(start, end), **more)
    assert [row["offset"] for row in rows] == list(range(start, end))
    assert values(rows) == list(range(start, end))


def test_slices_of_a_segment_share_no_offset(shared: Path) -> None:
    """A slice that is planned anew by its offsets gives no record that another gives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "TARGET_BYTES", 2000)
        patch.setattr(committed_plan, "WHOLE_BYTES", 0)
        parsed = read_options({"subscribe": "t", **between(17, 2983)})
        root = open_root([str(shared)])
        tasks = scan.slices(root, scan.pin(root, parsed), parsed)
    pieces = [piece for task in tasks for piece in expanded(task)]
    spans = [(piece["start_offset"], piece["end_offset"]) for piece in pieces]
    assert [span[0] for span in spans] == [17, *(span[1] for span in spans[:-1])]
    assert spans[-1][1] == 2983
    assert len(pieces) > 60
    assert max(sum(p["end"] - p["begin"] for p in expanded(task)) for task in tasks) < 6000


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
    monkeypatch.setattr(committed_plan, "WHOLE_BYTES", 0)
    parsed = read_options({"subscribe": "t", **between(2345, 2346)})
    root = open_root([str(shared)])
    pinned = scan.pin(root, parsed)
    requests.clear()
    root.look().open([])
    tasks = scan.slices(root, pinned, parsed)
    # The state again, from the one known: the next commit, which is not there, and the boundary.
    assert requests == {"read": 2, "list": 1}
    requests.clear()
    (row,) = [
        r
        for task in tasks
        for b in scan.reader([str(shared)], parsed).read(task)
        for r in b.to_pylist()
    ]
    assert row["offset"] == 2345
    assert requests == {"open": 1, "range": 1}


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


def damaged(path: Path, number: int = 3) -> Path:
    """Give the file of one of the segments."""
    row = of_partition(state_of(path).segments, 0).to_pylist()[number]
    return path / str(row["file"])


def refused(path: Path) -> str:
    with pytest.raises(CorruptFileError) as caught:
        read(path)
    return str(caught.value)


def test_a_truncated_segment_is_named(path: Path) -> None:
    file = damaged(path)
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-1])
    said = refused(path)
    assert str(file) in said
    assert "t-0" in said
    assert f"it has {size - 1} bytes, its commit says {size}" in said


@pytest.mark.parametrize("position", [3, 11, 30, 300, 9000])
def test_a_flipped_bit_is_named(path: Path, position: int) -> None:
    """Also in a base offset or an epoch, which no batch's own CRC covers."""
    file = damaged(path)
    data = bytearray(file.read_bytes())
    data[position] ^= 4
    file.write_bytes(data)
    assert str(file) in refused(path)


def test_a_swapped_segment_is_named(path: Path) -> None:
    one, other = damaged(path, 3), damaged(path, 4)
    size = min(one.stat().st_size, other.stat().st_size)
    assert size
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    assert str(one) in refused(path)


def test_a_missing_segment_is_named_and_the_rest_is_read(path: Path) -> None:
    file = damaged(path)
    file.unlink()
    said = refused(path)
    assert str(file) in said
    assert "the file is missing" in said
    row = of_partition(state_of(path).segments, 0).to_pylist()[3]
    rows = read(path, **between(row["next_offset"], 3000))
    assert [r["offset"] for r in rows] == list(range(row["next_offset"], 3000))


def late(data: bytes) -> bytes:
    """Give each entry the position of the one two further on."""
    return _moved(data, 2)


def early(data: bytes) -> bytes:
    """Give each entry the position of the one two before."""
    return _moved(data, -2)


def _moved(data: bytes, by: int) -> bytes:
    found = np.frombuffer(data, ENTRY).copy()
    numbers = np.clip(np.arange(len(found)) + by, 0, len(found) - 1)
    found["position"] = found["position"][numbers]
    return bytes(found.tobytes())


def between_batches(data: bytes) -> bytes:
    """Give positions at which no batch begins."""
    found = np.frombuffer(data, ENTRY).copy()
    found["position"] += 1
    return bytes(found.tobytes())


SPOILED = [late, early, between_batches, lambda data: b"", lambda data: data[:-3]]


@pytest.mark.parametrize("spoil", SPOILED, ids=["late", "early", "between", "empty", "torn"])
def test_an_index_that_does_not_fit_costs_no_record(
    path: Path, spoil: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed_plan, "WHOLE_BYTES", 0)
    for index in path.glob("t-0/*.index"):
        index.write_bytes(spoil(index.read_bytes()))
    assert_readable(path)


def test_a_missing_index_costs_no_record(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_plan, "WHOLE_BYTES", 0)
    for index in path.glob("t-0/*.index"):
        index.unlink()
    assert_readable(path)


def assert_readable(path: Path) -> None:
    for start, end in ((0, 3000), (1234, 1300), (555, 2789)):
        assert values(read(path, **between(start, end))) == list(range(start, end))


def merged(path: Path) -> None:
    """Replace the first three segments by one, as a merge does, and vacuum the files."""
    state = state_of(path)
    rows = of_partition(state.segments, 0).to_pylist()[:3]
    data = b"".join((path / row["file"]).read_bytes() for row in rows)
    file = f"t-0/{0:020d}-{state.version:010d}-0000abcd.log"
    (path / file).write_bytes(data)
    whole = {
        **rows[0],
        "file": file,
        "next_offset": rows[-1]["next_offset"],
        "size_bytes": len(data),
        "index_bytes": 0,
        "time_index_bytes": 0,
        "crc32c": google_crc32c.value(data),
        "origin": "merge",
    }
    names = [row["file"] for row in rows]
    commit(
        path,
        replace_segments(state.topic_id, state.version, names, [whole], {}),
        "merge",
    )
    for name in names:
        (path / name).unlink()


def test_a_plan_outlives_a_merge(path: Path) -> None:
    parsed = read_options({"subscribe": "t"})
    root = open_root([str(path)])
    tasks = scan.slices(root, scan.pin(root, parsed), parsed)
    merged(path)
    reader = scan.reader([str(path)], parsed)
    rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
    assert values(rows) == list(range(3000))


def test_what_was_deleted_under_a_plan_is_data_loss(path: Path) -> None:
    parsed = read_options({"subscribe": "t"})
    root = open_root([str(path)])
    tasks = scan.slices(root, scan.pin(root, parsed), parsed)
    state = state_of(path)
    first, second, *_ = of_partition(state.segments, 0).to_pylist()
    start = second["base_offset"] + 3
    commit(path, operations.delete_records(state.topic_id, {0: start}), "delete-records")
    (path / first["file"]).unlink()
    with pytest.raises(DataLossError, match=f"offsets 0 to {second['base_offset'] - 1} were"):
        list(scan.reader([str(path)], parsed).read(tasks[0]))
    lenient = read_options({"subscribe": "t", "failOnDataLoss": "false"})
    reader = scan.reader([str(path)], lenient)
    rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
    # The plan is as of its load: what its files still have of the second segment, it gives.
    assert [row["offset"] for row in rows] == list(range(second["base_offset"], 3000))
    assert read(path)[0]["offset"] == start


def test_a_klog_root_is_read_by_itself(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(OptionError, match="is a klog root, which is read by itself"):
        open_root([str(tmp_path / "other"), str(path)])


def test_a_topic_that_is_not_there_is_told_with_those_that_are(path: Path) -> None:
    klog.open(str(path)).create_topic("gone")
    klog.open(str(path)).delete_topic("gone")
    for topic in ("x", "gone"):
        with pytest.raises(
            OptionError, match=rf"there is no topic {topic}; the topics here are t$"
        ):
            read_topic(path, topic)


def read_topic(path: Path, topic: str) -> None:
    parsed = read_options({"subscribe": topic})
    scan.pin(open_root([str(path)]), parsed)
