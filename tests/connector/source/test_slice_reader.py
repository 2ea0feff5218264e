"""Slices to rows: ranges, codecs, isolation, files that change, damage on the way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from klog.connector import segment_chunks as segment_module
from klog.connector.options.read_options import parse_read_options
from klog.connector.source.task_reader import make_reader
from klog.errors import CorruptFileError, DataLossError
from tests.connector.log_dirs import (
    many,
    offset_index,
    offsets,
    plan_tasks,
    read,
    read_tasks,
    set_checkpoint,
    write_log,
)
from tests.support.batch_bytes import (
    ABORT,
    CODECS,
    COMMIT,
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Record,
    batch,
    control,
    marker,
    plain,
    transactional,
)

COMMITTED = {"isolationLevel": "read_committed"}
ALL = {"isolationLevel": "read_uncommitted"}


def between(start: int, end: int) -> dict[str, str]:
    return {
        "startingOffsets": json.dumps({"t": {"0": start}}),
        "endingOffsets": json.dumps({"t": {"0": end}}),
    }


def renew(path: Path) -> None:
    """Move a file's bytes to a new inode, as the cleaner's rename does."""
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    copy.replace(path)


def test_every_column(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        {
            0: [
                batch([Record(0, 1500, b"k", b"v", (("h", None), ("h", b"2")))]),
                batch([Record(1, 5)], attributes=LOG_APPEND_TIME, max_timestamp=2000),
            ]
        },
        "t-3",
    )
    first, second = read(tmp_path, includeHeaders="true")
    assert list(first) == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
    ]  # fmt: skip
    assert first["timestamp"].timestamp() == 1.5
    first.pop("timestamp")
    assert first == {
        "key": b"k",
        "value": b"v",
        "topic": "t",
        "partition": 3,
        "offset": 0,
        "timestampType": 0,
        "headers": [{"key": "h", "value": None}, {"key": "h", "value": b"2"}],
    }
    assert second["timestamp"].timestamp() == 2.0
    second.pop("timestamp")
    assert second == {
        "key": None,
        "value": None,
        "topic": "t",
        "partition": 3,
        "offset": 1,
        "timestampType": 1,
        "headers": None,
    }


def test_columns_are_in_the_order_of_spark(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(2)})
    rows = read(tmp_path, columns="offset,value,topic")
    assert [list(row) for row in rows] == [["value", "topic", "offset"]] * 2


@pytest.mark.parametrize("min_tasks", ["1", "7"])
def test_every_range(tmp_path: Path, min_tasks: str) -> None:
    batches = [plain(3 * i, [b"a", b"b", b"c"]) for i in range(5)]
    write_log(tmp_path, {0: batches[:3], 9: batches[3:]})
    for start in range(16):
        for end in range(start, 16):
            rows = read(tmp_path, minPartitions=min_tasks, **between(start, end))
            assert offsets(rows) == list(range(start, end))


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(tmp_path: Path, codec: int) -> None:
    records = [Record(i, i, b"k%d" % i, b"v" * i) for i in range(300)]
    write_log(tmp_path, {0: [batch(records[:200], attributes=codec), batch(records[200:])]})
    assert [row["value"] for row in read(tmp_path)] == [record.value for record in records]


def test_isolation(tmp_path: Path) -> None:
    log = [
        transactional(0, 5, [b"a", b"b"]),
        transactional(2, 6),
        plain(3),
        marker(4, 5, ABORT),
        control(5, 2),
        marker(6, 6, COMMIT),
        batch(base_offset=7, attributes=TRANSACTIONAL | CONTROL, producer_id=6, producer_epoch=0),
        transactional(8, 5),
        marker(9, 5, COMMIT),
        transactional(10, 7),
        plain(11),
    ]
    write_log(tmp_path, {0: log})
    assert offsets(read(tmp_path, **ALL)) == [0, 1, 2, 3, 8, 10, 11]
    assert offsets(read(tmp_path, **COMMITTED)) == [2, 3, 8]
    assert offsets(read(tmp_path)) == [2, 3, 8]


def test_the_marker_may_lie_in_a_later_segment_or_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, expected in ((ABORT, [1, 2, 3]), (COMMIT, [0, 1, 2, 3])):
        log = [transactional(0, 5), plain(1), plain(2), plain(3), marker(4, 5, kind), plain(5)]
        root = tmp_path / str(kind)
        write_log(root, {0: log[:2], 2: log[2:3], 3: log[3:]})
        assert offsets(read(root))[: len(expected)] == expected
        single = tmp_path / f"one-{kind}"
        write_log(single, {0: log})
        monkeypatch.setattr(segment_module.read_chunks, "__defaults__", (0, 80))
        assert offsets(read(single)) == [*expected, 5]
        monkeypatch.undo()


def test_marker_may_lie_after_the_last_stable_offset(tmp_path: Path) -> None:
    # docs/format.md, seen 27: where the .txnindex is absent, the control batches decide. Producer
    # 5's transaction is aborted at 2; producer 6's is open from 1, which is the last stable offset.
    write_log(tmp_path, {0: [transactional(0, 5), transactional(1, 6)], 2: [marker(2, 5, ABORT)]})
    assert offsets(read(tmp_path)) == []


def test_the_same_with_a_transaction_index(tmp_path: Path) -> None:
    directory = write_log(
        tmp_path, {0: [transactional(0, 5), transactional(1, 6)], 2: [marker(2, 5, ABORT)]}
    )
    index = b"\0\0" + b"".join(number.to_bytes(8, "big") for number in (5, 0, 2, 1))
    (directory / "00000000000000000002.txnindex").write_bytes(index)
    assert offsets(read(tmp_path)) == []


def test_gaps_and_empty_batches(tmp_path: Path) -> None:
    log = [
        batch([Record(3, 0), Record(7, 0)], base_offset=0, last_offset_delta=9),
        batch(base_offset=10, last_offset_delta=4),
        plain(20),
    ]
    write_log(tmp_path, {0: log})
    assert offsets(read(tmp_path)) == [3, 7, 20]
    assert offsets(read(tmp_path, **between(4, 20))) == [7]
    assert offsets(read(tmp_path, **between(8, 15))) == []


def test_bytes_in_a_batch_without_records_are_not_decoded(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [plain(0), batch(base_offset=1, payload=b"\xff\xff"), plain(2)]})
    assert offsets(read(tmp_path)) == [0, 2]


def test_times_that_spark_cannot_hold_become_its_first_or_last(tmp_path: Path) -> None:
    last = 9223372036854774  # `docs/reading.md`, Timestamps: the documented bound, in ms.
    times = [(1 << 63) - 1, last + 1, last, last - 1, -1, 0, -last, -last - 1, -(1 << 63)]
    log = [batch([Record(i, time)], max_timestamp=time) for i, time in enumerate(times)]
    write_log(tmp_path, {0: log})
    directories = [str(tmp_path)]
    reader = make_reader(directories, parse_read_options({"subscribe": "t"}))
    timestamps: list[int] = []
    for task in plan_tasks(directories):
        for rows in reader.read(task):
            timestamps += rows.column("timestamp").cast("int64").to_pylist()
    assert timestamps == [1000 * max(-last, min(time, last)) for time in times]


# Files that change between the plan and the read.


def test_a_file_renamed_deleted_is_read_from_there(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(5), 5: many(5, 5)})
    tasks = plan_tasks([str(tmp_path)])
    log = directory / "00000000000000000000.log"
    log.rename(f"{log}.deleted")
    assert offsets(read_tasks([str(tmp_path)], tasks)) == list(range(10))


def test_segment_cleaned_meanwhile_is_planned_again(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(10)})
    tasks = plan_tasks([str(tmp_path)], **between(2, 8))
    remaining = [batch for i, batch in enumerate(many(10)) if i % 3]
    log = directory / "00000000000000000000.log"
    (directory / "new").write_bytes(b"".join(remaining))
    (directory / "new").replace(log)
    assert offsets(read_tasks([str(tmp_path)], tasks)) == [2, 4, 5, 7]


@pytest.mark.parametrize("renewed", [[0], [5], [0, 5]])
def test_segments_cleaned_meanwhile_are_read_once(tmp_path: Path, renewed: list[int]) -> None:
    directory = write_log(tmp_path, {0: many(5), 5: many(5, 5)})
    tasks = plan_tasks([str(tmp_path)])
    for base in renewed:
        renew(directory / f"{base:020d}.log")
    assert offsets(read_tasks([str(tmp_path)], tasks)) == list(range(10))


def test_deleted_records_are_data_loss(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(5), 5: many(5, 5)})
    directories = [str(tmp_path)]
    tasks = plan_tasks(directories, **between(0, 5))
    (directory / "00000000000000000000.log").unlink()
    with pytest.raises(DataLossError, match="t-0: offsets 0 to 4 were deleted"):
        read_tasks(directories, tasks)
    assert read_tasks(directories, tasks, failOnDataLoss="false") == []


def test_deleted_partition_is_data_loss(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(5)})
    tasks = plan_tasks([str(tmp_path)])
    shutil.rmtree(directory)
    with pytest.raises(DataLossError, match="t-0: offsets 0 to 4"):
        read_tasks([str(tmp_path)], tasks)


def test_empty_task_has_no_rows(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(1)})
    assert read_tasks([str(tmp_path)], [[]]) == []


# Damage on the way.


@pytest.mark.parametrize("at", [0, 3, 8])
def test_a_bad_crc_names_file_partition_and_position(tmp_path: Path, at: int) -> None:
    batches = many(10)
    position = sum(map(len, batches[:at]))
    batches[at] = batches[at][:-1] + b"!"
    directory = write_log(tmp_path, {0: batches})
    with pytest.raises(CorruptFileError, match="CRC-32C") as caught:
        read(tmp_path)
    assert caught.value.position == position
    assert caught.value.topic_partition == "t-0"
    assert caught.value.path == str(directory / "00000000000000000000.log")


@pytest.mark.parametrize("number", [20, 60])
def test_damage_after_the_first_chunk_has_its_position_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    # `CorruptRecordError.in_file`: base is the position in the file at which the bytes began.
    batches = many(70)
    position = sum(map(len, batches[:number]))
    batches[number] = batches[number][:-1] + b"!"
    write_log(tmp_path, {0: batches})
    tasks = plan_tasks([str(tmp_path)])
    monkeypatch.setattr(segment_module.read_chunks, "__defaults__", (0, 1000))
    with pytest.raises(CorruptFileError, match="CRC-32C") as caught:
        read_tasks([str(tmp_path)], tasks)
    assert caught.value.position == position


def test_records_before_the_damage_can_be_read(tmp_path: Path) -> None:
    batches = many(3000)
    batches[2500] = batches[2500][:-1] + b"!"
    write_log(tmp_path, {0: batches[:2000], 2000: batches[2000:]})
    assert offsets(read(tmp_path, **between(0, 2000))) == list(range(2000))


def test_a_damaged_marker_is_an_error(tmp_path: Path) -> None:
    # docs/format.md, seen 25: nothing is dropped in silence.
    commit = marker(1, 5, COMMIT)
    damaged = commit[:61] + commit[61:].replace(b"\0\0\0\1", b"\0\0\0\5")
    assert damaged != commit
    write_log(tmp_path, {0: [transactional(0, 5), damaged, plain(2)]})
    with pytest.raises(CorruptFileError):
        read(tmp_path)


@pytest.mark.parametrize("offset", [1 << 31, 1 << 33, 1 << 60])
def test_a_batch_that_leaves_its_segment_is_an_error(tmp_path: Path, offset: int) -> None:
    # docs/format.md, seen 26: offsets that leave their segment are corruption (base + 2^31 - 1 is
    # the largest); the base offset lies outside the CRC.
    write_log(tmp_path, {0: [plain(0), plain(offset)]})
    with pytest.raises(CorruptFileError):
        read(tmp_path)


def test_a_batch_that_reaches_into_the_next_segment_is_an_error(tmp_path: Path) -> None:
    # docs/format.md, seen 26: offsets that do not rise are corruption: 0, 7, 2, 3, ...
    write_log(tmp_path, {0: [plain(0), plain(7)], 2: many(10, 2)})
    with pytest.raises(CorruptFileError):
        read(tmp_path)


def test_a_file_that_ends_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    log = b"".join(many(5))
    write_log(tmp_path, {0: [log[:-3]], 5: many(5, 5)})
    with pytest.raises(CorruptFileError, match="middle of a batch"):
        read(tmp_path)


def test_an_index_that_lies_loses_nothing_in_a_small_segment(tmp_path: Path) -> None:
    batches = many(20)
    directory = write_log(tmp_path, {0: batches})
    (directory / "00000000000000000000.index").write_bytes(
        offset_index([(5, 10 * len(batches[0]))])
    )
    assert offsets(read(tmp_path, **between(6, 20))) == list(range(6, 20))


def test_an_open_transaction_across_the_log_start(tmp_path: Path) -> None:
    """DeleteRecords moved the log start into its only batch: it stays undecided."""
    write_log(tmp_path, {0: [plain(0), transactional(1, 5, [b"v"] * 9), plain(10)]})
    assert offsets(read(tmp_path)) == [0]
    set_checkpoint(tmp_path, "log-start-offset-checkpoint", {("t", 0): 5})
    assert offsets(read(tmp_path)) == []
    assert offsets(read(tmp_path, isolationLevel="read_uncommitted")) == [5, 6, 7, 8, 9, 10]
