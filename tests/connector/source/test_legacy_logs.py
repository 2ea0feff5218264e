"""Logs of message formats v0 and v1, and of all three in one segment, read as any other.

Each partition has 400 records at offsets from 0 on, in entries of different kinds; what a reader
must return is computed from the records, never from the bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from klog.connector import segment_chunks as segment_module
from klog.connector.kafka_dir.offset_for_time import offset_for_time
from klog.connector.source import index_narrowing, task_sizing
from klog.connector.source.slice_contract import expand_task
from klog.connector.source.stream_reader import KlogStreamReader
from klog.errors import CorruptFileError
from tests.connector.log_dirs import (
    offset_index,
    offsets,
    open_log,
    plan_tasks,
    read,
    read_tasks,
    time_index,
    write_log,
)
from tests.support.batch_bytes import GZIP, LOG_APPEND_TIME, LZ4, SNAPPY, Record, batch
from tests.support.legacy_bytes import Seen, plain, seen, wrapper

COUNT, PER_ENTRY = 400, 10
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
INDEX, TIME_INDEX = "00000000000000000000.index", "00000000000000000000.timeindex"
CODECS = (GZIP, SNAPPY, LZ4)

Entry = tuple[bytes, list[Seen]]


def records(first: int, count: int = PER_ENTRY) -> list[Record]:
    return [
        Record(n, 1000 + n, b"k%d" % n if n % 3 else None, b"%06d" % n * 20 if n % 7 else None)
        for n in range(first, first + count)
    ]


def v0(first: int) -> Entry:
    """Make ten records of v0: plain and wrapped in turn."""
    rows = records(first)
    if first // PER_ENTRY % 2:
        return wrapper(rows, 0, CODECS[first // PER_ENTRY % 3]), seen(rows, 0)
    return plain(rows, 0), seen(rows, 0)


def v1(first: int) -> Entry:
    """Make a wrapper of v1; every fifth has LogAppendTime."""
    rows, codec = records(first), CODECS[first // PER_ENTRY % 3]
    if first // PER_ENTRY % 5 == 4:
        late = rows[-1].timestamp
        data = wrapper(rows, 1, codec, attributes=LOG_APPEND_TIME, timestamp=late)
        return data, seen(rows, 1, append_time=late)
    return wrapper(rows, 1, codec), seen(rows, 1)


def mixed(first: int) -> Entry:
    """Make records of v0, plain v1, wrapped v1 and v2 in turn."""
    turn, rows = first // PER_ENTRY % 4, records(first)
    if turn == 0:
        return v0(first)
    if turn == 1:
        return plain(rows, 1), seen(rows, 1)
    if turn == 2:
        return v1(first)
    return batch(rows, attributes=GZIP), seen(rows, 1)


PARTITIONS = {
    partition: [make(first) for first in range(0, COUNT, PER_ENTRY)]
    for partition, make in enumerate((v0, v1, mixed))
}
TRUTH = {p: [row for _, rows in entries for row in rows] for p, entries in PARTITIONS.items()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for partition, entries in PARTITIONS.items():
        write_log(tmp_path, {0: [data for data, _ in entries]}, f"t-{partition}")
    return tmp_path


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan as if a few kilobytes were much."""
    monkeypatch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 64)
    monkeypatch.setattr(task_sizing, "TARGET_BYTES", 500)


def index_of(partition: int, every: int = 1) -> list[tuple[int, int]]:
    """Return (last offset, position) of appends of ten records, as a broker's index has."""
    entries, position = [], 0
    for number, (data, rows) in enumerate(PARTITIONS[partition]):
        if number and number % every == 0:
            entries.append((rows[-1].offset, position))
        position += len(data)
    return entries


def seen_rows(rows: Sequence[dict[str, Any]]) -> dict[int, list[Seen]]:
    by_partition: dict[int, list[Seen]] = {}
    for row in rows:
        ms = (row["timestamp"] - EPOCH) // timedelta(milliseconds=1)
        record = Seen(row["offset"], ms, row["timestampType"], row["key"], row["value"])
        by_partition.setdefault(row["partition"], []).append(record)
    return by_partition


def at(*starts: int) -> str:
    return json.dumps({"t": {str(p): start for p, start in enumerate(starts)}})


def test_everything(root: Path) -> None:
    assert seen_rows(read(root)) == TRUTH
    assert seen_rows(read(root, isolationLevel="read_uncommitted")) == TRUTH


def test_headers_are_null(root: Path) -> None:
    assert {row["headers"] for row in read(root, includeHeaders="true")} == {None}


@pytest.mark.parametrize("start", [0, 9, 205, 210, 391])
@pytest.mark.parametrize("length", [1, 5, 27])
@pytest.mark.parametrize("indexed", [True, False])
def test_ranges_inside_wrappers(
    root: Path, small_slices: None, start: int, length: int, indexed: bool
) -> None:
    if indexed:
        for partition in PARTITIONS:
            (root / f"t-{partition}" / INDEX).write_bytes(offset_index(index_of(partition)))
    end = min(start + length, COUNT)
    by_partition = seen_rows(
        read(root, startingOffsets=at(*[start] * 3), endingOffsets=at(*[end] * 3))
    )
    assert by_partition == {p: rows[start:end] for p, rows in TRUTH.items()}


@pytest.mark.parametrize("every", [1, 2, 7])
def test_slices_begin_where_the_first_record_of_a_wrapper_is(
    root: Path, small_slices: None, every: int
) -> None:
    for partition in PARTITIONS:
        (root / f"t-{partition}" / INDEX).write_bytes(offset_index(index_of(partition, every)))
    tasks = plan_tasks([str(root)])
    slices = [slice_ for task in tasks for slice_ in expand_task(task)]
    for partition in PARTITIONS:
        own = [slice_ for slice_ in slices if slice_.partition == partition]
        assert len(own) >= 40 // (every * 2)
        starts = [slice_.start_offset for slice_ in own]
        assert [slice_.first_offset for slice_ in own] == starts
        assert {start % PER_ENTRY for start in starts} == {0}
        assert starts[1:] == [slice_.end_offset for slice_ in own[:-1]]
    assert seen_rows(read_tasks([str(root)], tasks)) == TRUTH


def test_tasks_may_share_a_wrapper(root: Path) -> None:
    tasks = plan_tasks([str(root)], minPartitions="300")
    assert len(tasks) >= 300
    assert seen_rows(read_tasks([str(root)], tasks)) == TRUTH


@pytest.mark.parametrize("partition", [1, 2])
@pytest.mark.parametrize("timestamp", [0, 1001, 1049, 1234, 1399, 1400])
@pytest.mark.parametrize("indexed", [True, False])
def test_times(root: Path, partition: int, timestamp: int, indexed: bool) -> None:
    # docs/format.md, 8.2: the entry is the largest time so far and the last offset of its batch.
    if indexed:
        entries = [(max(row.timestamp for row in rows), rows[-1].offset)
                for _, rows in PARTITIONS[partition] if rows[0].timestamp >= 0]  # fmt: skip
        (root / f"t-{partition}" / TIME_INDEX).write_bytes(time_index(entries))
    late = (row.offset for row in TRUTH[partition] if row.timestamp >= max(timestamp, 0))
    assert offset_for_time(open_log(root, "t", partition), timestamp, COUNT) == next(late, None)


@pytest.mark.parametrize("timestamp", [-5, -1, 0, 1, 5000])
def test_no_record_of_v0_has_a_time(root: Path, timestamp: int) -> None:
    (root / "t-0" / TIME_INDEX).write_bytes(b"")
    assert offset_for_time(open_log(root, "t", 0), timestamp, COUNT) is None


def test_starting_at_a_time(root: Path) -> None:
    read_rows = read(root, startingTimestamp="1234", startingOffsetsByTimestampStrategy="latest")
    v2_and_v1 = {p: [row for row in rows if row.offset >= 234] for p, rows in TRUTH.items()}
    first = offset_for_time(open_log(root, "t", 1), 1234, COUNT)
    assert first == 234
    del v2_and_v1[0]
    assert seen_rows(read_rows) == v2_and_v1


def test_a_stream(root: Path) -> None:
    reader = KlogStreamReader(
        {"subscribe": "t", "startingOffsets": at(3, 5, 27), "path": str(root)}
    )
    start, end = reader.initialOffset(), {"t": {"0": 205, "1": 211, "2": 399}}
    rows = [
        row
        for partition in reader.partitions(start, end)
        for batch_of_rows in reader.read(partition)
        for row in batch_of_rows.to_pylist()
    ]
    assert seen_rows(rows) == {0: TRUTH[0][3:205], 1: TRUTH[1][5:211], 2: TRUTH[2][27:399]}


def test_damage_inside_a_wrapper_names_the_file(root: Path, small_slices: None) -> None:
    log = root / "t-1" / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    (_, position) = index_of(1)[20]
    data[position + 60] ^= 1
    log.write_bytes(data)
    with pytest.raises(CorruptFileError, match=f"position {position}: CRC-32 is"):
        read(root)
    # Batches outside the range need not be intact.
    range_options = {"startingOffsets": at(0, 220, 0), "endingOffsets": at(1, 400, 1)}
    assert offsets(read(root, **range_options)) == [0, *range(220, 400), 0]


def test_a_wrapper_whose_inner_checksum_fails(tmp_path: Path) -> None:
    bad = wrapper([], 1, GZIP, offset=5, inner=plain(records(0, 1), 1)[:-1] + b"!")
    write_log(tmp_path, {0: [bad]})
    with pytest.raises(CorruptFileError, match="position 0: CRC-32 is"):
        read(tmp_path)


@pytest.mark.parametrize("chunk_bytes", [100, 1 << 20])
def test_offsets_that_do_not_rise_after_a_wrapper_of_offset_0(
    tmp_path: Path, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_module.read_chunks, "__defaults__", (0, chunk_bytes))
    first = wrapper(records(0, 3), 1, GZIP, inner_offsets=[0, 500, 1000], offset=0)
    write_log(tmp_path, {0: [first, batch(records(5))]})
    with pytest.raises(CorruptFileError, match="offset 5 after offset 1000") as caught:
        read(tmp_path)
    assert caught.value.position == len(first)


def test_offsets_that_do_not_rise_between_wrappers(tmp_path: Path) -> None:
    second = wrapper(records(0, 20), 0, GZIP)
    write_log(tmp_path, {0: [wrapper(records(0), 0, GZIP), second]})
    assert struct.unpack(">q", second[:8]) == (19,)
    with pytest.raises(CorruptFileError, match="offset 0 does not rise"):
        read(tmp_path)
