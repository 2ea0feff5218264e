"""Times in all partitions of a wide topic at once: one read each, side by side, and one check."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import klog
from klog.cli import main
from klog.connector.commit_log import small_segments
from klog.connector.commit_log.committed_snapshot import CommittedPartition
from klog.connector.commit_log.past_files import PastFiles
from klog.connector.datasource import KlogDataSource
from klog.connector.limit_offsets import list_offsets
from klog.connector.open_root import open_root
from klog.connector.options.offset_range_limit import (
    MaxTimestampOffset,
    OffsetForAge,
    OffsetForTime,
    PartitionLimit,
)
from klog.connector.source.stream_offsets import StreamOffsets
from klog.connector.store.local_store import LocalStore
from klog.errors import CorruptFileError
from klog.jobs import merge
from klog.logformat.batches import decode_records
from klog.logformat.topic_partition import TopicPartition
from tests.support.waiting import TIMEOUT_SECONDS

COUNT = 12


def append(path: Path, seconds: Sequence[int], partitions: Sequence[int]) -> None:
    """Append a record for each second to each of some partitions."""
    rows = [(partition, second) for partition in partitions for second in seconds]
    table = pa.table(
        {
            "value": [b"value"] * len(rows),
            "partition": pa.array([partition for partition, _ in rows], pa.int32()),
            "timestamp": pa.array([second * 1000 for _, second in rows], pa.timestamp("ms", "UTC")),
        }
    )
    klog.open(path).append("t", table)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a topic of many partitions, each with a segment of five records."""
    path = tmp_path / "root"
    klog.open(path).create_topic("t", COUNT)
    append(path, [10, 20, 40, 30, 50], range(COUNT))
    return path


def offsets(path: Path, limit: PartitionLimit, now_ms: int = 0) -> list[int | None]:
    names = [TopicPartition("t", number) for number in range(COUNT)]
    return list(list_offsets(open_root([str(path)]).snapshot(), names, limit, now_ms).values())


def opened(path: Path) -> list[CommittedPartition]:
    snapshot = open_root([str(path)]).snapshot()
    logs = snapshot.open([TopicPartition("t", number) for number in range(COUNT)]).values()
    return [log for log in logs if isinstance(log, CommittedPartition)]


def delete_records(path: Path, offset: int, partitions: Sequence[int] = range(COUNT)) -> None:
    for partition in partitions:
        arguments = f"delete-records --root {path} --topic t --partition {partition}"
        assert main([*arguments.split(), "--offset", str(offset)]) == 0


def test_a_time_is_one_read_of_each_partition(path: Path, requests: Counter[str]) -> None:
    open_root([str(path)]).snapshot().topics["t"]
    state_requests = +requests
    requests.clear()
    assert offsets(path, OffsetForTime(25_000)) == [2] * COUNT
    requests.subtract(state_requests)
    assert +requests == {"open": COUNT, "range": COUNT}
    requests.clear()
    assert offsets(path, OffsetForAge(25_000), now_ms=50_000) == [2] * COUNT
    assert requests["open"] == COUNT


def test_a_time_that_commits_know_reads_no_segment(path: Path, requests: Counter[str]) -> None:
    assert offsets(path, OffsetForTime(10_000)) == [0] * COUNT
    assert offsets(path, OffsetForTime(50_001)) == [None] * COUNT
    assert requests["open"] == 0


def test_the_batches_of_all_partitions_are_decoded_together(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Counter[str]()
    original = decode_records.decode_records

    def counted(*args: Any) -> Any:
        calls["decode"] += 1
        return original(*args)

    monkeypatch.setattr(small_segments, "decode_records", counted)
    assert offsets(path, OffsetForTime(25_000)) == [2] * COUNT
    assert calls["decode"] == 1
    monkeypatch.setattr(small_segments, "GROUP_BYTES", 1)
    assert offsets(path, OffsetForTime(25_000)) == [2] * COUNT
    assert calls["decode"] == 1 + COUNT


@pytest.mark.parametrize("max_whole_bytes", [small_segments.MAX_WHOLE_BYTES, 0])
def test_segments_are_read_side_by_side(
    path: Path, monkeypatch: pytest.MonkeyPatch, max_whole_bytes: int
) -> None:
    """Each read waits until three have started; one after another, none would end."""
    monkeypatch.setattr(small_segments, "MAX_WHOLE_BYTES", max_whole_bytes)
    monkeypatch.setattr(LocalStore, "max_parallel_reads", 3)
    barrier = Barrier(3)
    original = LocalStore.open

    def waits(self: LocalStore, *args: Any) -> Any:
        barrier.wait(TIMEOUT_SECONDS)
        return original(self, *args)

    monkeypatch.setattr(LocalStore, "open", waits)
    assert offsets(path, OffsetForTime(25_000)) == [2] * COUNT


def test_the_files_of_an_earlier_version_are_checked_once_for_all_partitions(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[int] = []
    original = PastFiles.check

    def counted(self: PastFiles, version: int, segments: pa.Table) -> None:
        checked.append(len(segments))
        original(self, version, segments)

    monkeypatch.setattr(PastFiles, "check", counted)
    options = {"path": str(path), "subscribe": "t", "asOfVersion": "1"}
    KlogDataSource(options | {"startingTimestamp": "25000"}).schema()
    assert checked == [COUNT, COUNT], "for the times, and for the plan"


@pytest.mark.parametrize("seed", range(6))
def test_partitions_together_and_alone_have_the_same_answers(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = tmp_path / "root"
    klog.open(path).create_topic("t", COUNT)
    for _ in range(3):
        append(
            path, [chance.randrange(100) for _ in range(4)], range(0, COUNT, chance.randint(1, 2))
        )
    delete_records(path, chance.randrange(1, 4), chance.sample(range(0, COUNT, 2), 3))
    if seed % 2:
        merge.run(None, str(path), "t")
    logs = opened(path)
    rows = klog.open(path).scan("t", columns=["partition", "offset", "timestamp"]).read_all()
    times: dict[int, list[tuple[int, int]]] = {number: [] for number in range(COUNT)}
    for row in rows.to_pylist():
        time_ms = int(row["timestamp"].timestamp()) * 1000
        times[row["partition"]].append((row["offset"], time_ms))
    for time_ms in range(0, 100_000, 7_000):
        expected = [
            next((offset for offset, ms in sorted(times[number]) if ms >= time_ms), None)
            for number in range(COUNT)
        ]
        assert offsets(path, OffsetForTime(time_ms)) == expected
        assert [log.offset_for_time(time_ms, log.log_end) for log in logs] == expected
    largest = [max((ms for _, ms in times[number]), default=None) for number in range(COUNT)]
    assert [log.max_timestamp_ms() for log in logs] == largest


def test_one_damaged_segment_is_named_and_leaves_the_others_alone(path: Path) -> None:
    file = next(path.glob("t-3/*.log"))
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    with pytest.raises(CorruptFileError, match=rf"t-3.*{file.name}"):
        offsets(path, OffsetForTime(25_000))
    root = open_root([str(path)]).snapshot()
    names = [TopicPartition("t", number) for number in range(COUNT) if number != 3]
    assert set(list_offsets(root, names, OffsetForTime(25_000), 0).values()) == {2}


def test_the_largest_time_is_that_of_a_record_after_the_log_start(tmp_path: Path) -> None:
    """The segment's largest time is of a record that was deleted."""
    path = tmp_path / "root"
    klog.open(path).create_topic("t", COUNT)
    append(path, [100, 50, 60], range(COUNT))
    assert offsets(path, MaxTimestampOffset()) == [0] * COUNT
    delete_records(path, 1)
    assert offsets(path, MaxTimestampOffset()) == [2] * COUNT
    append(path, [55], [0])
    append(path, [70], [1])
    assert offsets(path, MaxTimestampOffset())[:3] == [2, 3, 2]
    delete_records(path, 3)
    assert offsets(path, MaxTimestampOffset())[:3] == [3, 3, None]


def test_a_cut_segment_is_read_only_if_its_time_is_the_largest(
    path: Path, requests: Counter[str]
) -> None:
    append(path, [60], range(COUNT))
    delete_records(path, 4)
    requests.clear()
    assert [log.max_timestamp_ms() for log in opened(path)] == [60_000] * COUNT
    assert requests["open"] == 0


def stream_start(path: Path, requests: Counter[str], change: Callable[[], object]) -> list[int]:
    """Load a stream from a time, change the log, and return the start and the files opened."""
    source = KlogDataSource({"path": str(path), "subscribe": "t", "startingTimestamp": "25000"})
    source.schema()
    change()
    requests.clear()
    reader = pickle.loads(pickle.dumps(source)).streamReader(StructType([]))
    start = StreamOffsets.from_json(reader.initialOffset()).next_offsets
    return [*start.values(), requests["open"]]


def test_a_stream_does_not_look_up_the_times_of_its_load_again(
    path: Path, requests: Counter[str]
) -> None:
    assert stream_start(path, requests, lambda: None) == [*[2] * COUNT, 0]
    append_more = partial(append, path, [60], range(COUNT))
    assert stream_start(path, requests, append_more) == [*[2] * COUNT, 0]


def test_a_stream_looks_up_the_times_of_its_load_if_their_records_are_gone(
    path: Path, requests: Counter[str]
) -> None:
    delete_one = partial(delete_records, path, 3, [0])
    assert stream_start(path, requests, delete_one) == [3, *[2] * (COUNT - 1), 1]

    def create_again() -> None:
        assert main(f"topics delete --root {path} --topic t".split()) == 0
        klog.open(path).create_topic("t", COUNT)
        append(path, [10, 15, 20, 30], range(COUNT))

    assert stream_start(path, requests, create_again) == [*[3] * COUNT, COUNT]
