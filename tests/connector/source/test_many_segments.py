"""A little of a topic of 10,000 segments, or of 10,000 partitions, costs a few requests.

The rule: only what is read has files here. The other segments are entries of commits, which a read
of something else must not open.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import pytest

import klog
from klog.connector.commit_log import append_commit, small_segments
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.open_root import open_root
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import index_narrowing, scan_planner
from klog.connector.source.slice_contract import expand_task
from klog.logformat.topic_partition import TopicPartition
from tests.connector.committed_topic import BATCHES, SMALL, START_MS, commit, state_of, table
from tests.support.segment_entry import entry_of

SEGMENTS, RECORDS, WRITTEN = 10_000, 10, 3000
BEFORE = SEGMENTS // 2 * RECORDS
"""The records before those that are written."""
DAY_MS = 86_400_000


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a topic of 10,000 segments and in their middle 3,000 records in some that are there."""
    monkeypatch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)
    path = tmp_path / "root"
    klog.open(path).create_topic("t", 1, SMALL)
    add_entries(path, 0, START_MS - DAY_MS)
    klog.open(path).append("t", table(0, WRITTEN), options=BATCHES)
    add_entries(path, BEFORE + WRITTEN, START_MS + DAY_MS)
    return path


def add_entries(path: Path, first: int, timestamp_ms: int) -> None:
    """Commit half of the segments, without files."""
    state = state_of(path)
    offsets = range(first, first + BEFORE, RECORDS)
    segments = [
        entry_of(
            str(SegmentPath("t", 0, base, state.version, f"{base:08x}")), 0, base, base + RECORDS,
            size_bytes=1 << 20, index_bytes=800, time_index_bytes=800, record_count=RECORDS,
            batch_count=1, min_timestamp_ms=timestamp_ms, max_timestamp_ms=timestamp_ms,
        )
        for base in offsets
    ]  # fmt: skip
    staged = append_commit.StagedSegments(state.topic_id, state.version, segments)
    commit(path, append_commit.append(staged), "append")


def test_one_offset_is_two_reads(path: Path, requests: Counter[str]) -> None:
    log = klog.open(path)
    log.offsets("t")  # Loads the state.
    requests.clear()
    offset = BEFORE + 1234
    rows = log.scan("t", offset, offset + 1, ["offset", "value"]).read_all().to_pylist()
    assert rows == [{"offset": offset, "value": b"001234" * 10}]
    state = Counter({"read": 1, "list": 1})
    assert requests - state == {"read": 1, "open": 1, "range": 1}, "the index, and the data"


def test_a_second_is_found_by_three_reads_a_bound(
    path: Path, requests: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_segments, "MAX_WHOLE_BYTES", 0)
    log = klog.open(path)
    log.offsets("t")
    start, end = (
        datetime.fromtimestamp((START_MS + 1000 * second) / 1000, timezone.utc)
        for second in (1234, 1235)
    )
    name = TopicPartition("t", 0)
    partition = open_root([str(path)]).snapshot().open([name])[name]
    requests.clear()
    assert partition.offset_for_time(START_MS + 1_234_000, partition.log_end) == BEFORE + 1234
    assert requests == {"read": 2, "open": 1, "range": 1}
    requests.clear()
    rows = log.scan("t", start, end, ["offset"]).read_all()
    assert rows["offset"].to_pylist() == [BEFORE + 1234]
    assert requests["range"] == 3, "of segments: the start, the end and the record"


def test_all_of_it_is_planned_and_counted_without_opening_a_file(
    path: Path, requests: Counter[str]
) -> None:
    log = klog.open(path)
    log.offsets("t")
    requests.clear()
    assert log.count("t") == {0: 2 * BEFORE + WRITTEN}
    options = parse_read_options({"subscribe": "t"})
    tasks = scan_planner.plan_snapshot(open_root([str(path)]).snapshot(), options)
    assert sum(1 for task in tasks for _ in expand_task(task)) > SEGMENTS
    assert requests["open"] == requests["range"] == 0


def test_ten_thousand_partitions_are_planned_by_the_commits_alone(
    tmp_path: Path, requests: Counter[str]
) -> None:
    log = klog.open(tmp_path / "root")
    log.create_topic("t", 10_000)
    state = state_of(tmp_path / "root")
    segments = [
        entry_of(
            str(SegmentPath("t", number, 0, state.version, f"{number:08x}")), number, 0, RECORDS,
            size_bytes=1000, record_count=RECORDS, batch_count=1,
        )
        for number in range(10_000)
    ]  # fmt: skip
    staged = append_commit.StagedSegments(state.topic_id, state.version, segments)
    commit(tmp_path / "root", append_commit.append(staged), "append")
    requests.clear()
    options = parse_read_options({"subscribe": "t", "startingOffsets": "-3"})
    tasks = scan_planner.plan_snapshot(open_root([str(tmp_path / "root")]).snapshot(), options)
    slices = [slice_ for task in tasks for slice_ in expand_task(task)]
    assert [slice_.partition for slice_ in slices] == list(range(10_000))
    assert {(slice_.start_offset, slice_.end_offset) for slice_ in slices} == {(7, 10)}
    assert len({slice_.path for slice_ in slices}) == 10_000
    assert requests.total() < 20
