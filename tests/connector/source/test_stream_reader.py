"""The stream reader, called as Spark calls it but without Spark."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from klog.connector.options.read_options import parse_shared_options
from klog.connector.source import scan_planner
from klog.connector.source.stream_reader import KlogStreamReader
from klog.errors import DataLossError, OffsetOutOfRangeError, OptionError
from tests.connector.log_dirs import many, offsets, set_checkpoint, write_log
from tests.support.batch_bytes import ABORT, COMMIT, marker, plain, transactional

ID, OTHER_ID = "ASNFZ4mrze_-3LqYdlQyEA", "oLU2KAuJTQu3f_SSptKlOA"
EVERYTHING = ReadAllAvailable()
LOSSY = {"failOnDataLoss": "false"}


def stream(root: Path, **options: str) -> KlogStreamReader:
    values = {"subscribe": "t", "startingOffsets": "earliest", "path": str(root)} | options
    if values.keys() & {"subscribePattern", "assign"}:
        del values["subscribe"]
    return KlogStreamReader(values)


def name_topic(root: Path, topic_id: str, partition: str = "t-0") -> None:
    text = f"version: 0\ntopic_id: {topic_id}"
    (root / partition / "partition.metadata").write_text(text)


def rows(reader: KlogStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
    """Plan in the driver, read what tasks would, after the journey through pickle."""
    read: list[Any] = []
    for partition in reader.partitions(start, end):
        worker = pickle.loads(pickle.dumps(reader))
        for batch in worker.read(pickle.loads(pickle.dumps(partition))):
            read += batch.to_pylist()
    return read


def latest(reader: KlogStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    offsets = reader.latestOffset(start, EVERYTHING)
    assert json.loads(json.dumps(offsets)) == offsets
    return offsets


@pytest.mark.parametrize(
    ("starting", "expected"),
    [("earliest", 3), ("latest", 10), ('{"t":{"0":7}}', 7), ('{"t":{"0":-1}}', 10)],
)
def test_where_a_new_query_starts(tmp_path: Path, starting: str, expected: int) -> None:
    write_log(tmp_path, {0: many(10)})
    set_checkpoint(tmp_path, "log-start-offset-checkpoint", {("t", 0): 3})
    assert stream(tmp_path, startingOffsets=starting).initialOffset() == {"t": {"0": expected}}


def test_latest_is_the_default(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(10)})
    reader = KlogStreamReader({"subscribe": "t", "path": str(tmp_path)})
    assert reader.initialOffset() == {"t": {"0": 10}}


def test_a_start_by_time(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(10)})
    by_partition = {"startingOffsetsByTimestamp": '{"t":{"0":1004}}'}
    for options in ({"startingTimestamp": "1004"}, by_partition, {"startingOffsets": "-6"}):
        reader = KlogStreamReader({"subscribe": "t", "path": str(tmp_path)} | options)
        assert reader.initialOffset() == {"t": {"0": 4}}


def test_20_start_after_the_log_end(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(10)})
    start = '{"t":{"0":11}}'
    with pytest.raises(OffsetOutOfRangeError):
        stream(tmp_path, startingOffsets=start).initialOffset()
    lossy = stream(tmp_path, startingOffsets=start, **LOSSY)
    assert lossy.initialOffset() == {"t": {"0": 10}}


def test_11_start_below_the_log_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_log(tmp_path, {0: many(10)})
    set_checkpoint(tmp_path, "log-start-offset-checkpoint", {("t", 0): 6})
    start = '{"t":{"0":2}}'
    with pytest.raises(OffsetOutOfRangeError, match="t-0: startingOffsets 2 is out of range"):
        stream(tmp_path, startingOffsets=start).initialOffset()
    lossy = stream(tmp_path, startingOffsets=start, **LOSSY)
    assert lossy.initialOffset() == {"t": {"0": 2}}
    assert caplog.messages == []
    end = latest(lossy, {"t": {"0": 2}})
    assert end == {"t": {"0": 10}}
    assert offsets(rows(lossy, {"t": {"0": 2}}, end)) == [6, 7, 8, 9]
    assert "t-0: offsets 2 to 5 were deleted" in caplog.text


def test_a_partial_json_names_what_is_missing(tmp_path: Path) -> None:
    for number in (0, 1):
        write_log(tmp_path, {0: many(1)}, f"t-{number}")
    with pytest.raises(OptionError, match="Add t-1"):
        stream(tmp_path, startingOffsets='{"t":{"0":0}}').initialOffset()


def test_offsets_are_those_of_kafka_with_ids(tmp_path: Path) -> None:
    for name in ("t-0", "t-10", "t-2", "u-0"):
        write_log(tmp_path, {0: many(2)}, name)
        if name[0] == "t":
            name_topic(tmp_path, ID, name)
    stated = stream(tmp_path, subscribe="u,t").initialOffset()
    assert json.dumps(stated) == json.dumps(
        {"#ids": {"t": ID}, "t": {"0": 0, "2": 0, "10": 0}, "u": {"0": 0}}
    )


def test_batch_after_batch(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(3)})
    reader = stream(tmp_path)
    start = reader.initialOffset()
    assert start == {"t": {"0": 0}}
    read: list[int] = []
    for total in (3, 3, 5, 9):
        (directory / "00000000000000000000.log").write_bytes(b"".join(many(total)))
        end = latest(reader, start)
        assert end["t"] == {"0": total}
        batch = offsets(rows(reader, start, end))
        assert batch == list(range(start["t"]["0"], total))
        reader.commit(end)
        read += batch
        start = end
    assert read == list(range(9))
    reader.stop()


def test_a_restart_reads_the_same_batch(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(9)})
    name_topic(tmp_path, ID)
    for start in ({"t": {"0": 2}}, {"#ids": {"t": ID}, "t": {"0": 2}}):
        end = {"#ids": {"t": ID}, "t": {"0": 6}}
        assert offsets(rows(stream(tmp_path), start, end)) == [2, 3, 4, 5]


def test_plain_kafka_offsets_are_accepted(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(9)})
    name_topic(tmp_path, ID)
    reader = stream(tmp_path)
    end = latest(reader, {"t": {"0": 4}})
    assert end == {"#ids": {"t": ID}, "t": {"0": 9}}
    assert offsets(rows(reader, {"t": {"0": 4}}, end)) == [4, 5, 6, 7, 8]


def test_nothing_new_is_nothing_to_read(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(9)})
    reader = stream(tmp_path)
    end = latest(reader, {"t": {"0": 9}})
    assert end == {"t": {"0": 9}}
    assert list(reader.partitions({"t": {"0": 9}}, end)) == []


def test_a_new_partition_is_read_from_its_start(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(3)})
    reader = stream(tmp_path, startingOffsets="latest")
    start = reader.initialOffset()
    write_log(tmp_path, {0: many(2)}, "t-1")
    end = latest(reader, start)
    assert end == {"#start": {"t": {"0": 3, "1": 0}}, "t": {"0": 3, "1": 2}}
    read = rows(reader, start, end)
    assert [(row["partition"], row["offset"]) for row in read] == [(1, 0), (1, 1)]


@pytest.mark.parametrize("starting", ["latest", "earliest"])
@pytest.mark.parametrize("count", [4, 2])
def test_a_new_partition_that_does_not_start_at_0_is_data_loss(
    tmp_path: Path, starting: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    write_log(tmp_path, {0: many(3)})
    start = {"t": {"0": 3}}
    write_log(tmp_path, {0: many(count)}, "t-1")
    set_checkpoint(tmp_path, "log-start-offset-checkpoint", {("t", 1): 2})
    error = "t-1: the partition is new to the stream, and offsets 0 to 1 were deleted"
    reader = stream(tmp_path, startingOffsets=starting)
    end = latest(reader, start)
    for planner in (reader, stream(tmp_path, startingOffsets=starting)):
        with pytest.raises(DataLossError, match=error):
            planner.partitions(start, end)
    read = rows(stream(tmp_path, startingOffsets=starting, **LOSSY), start, end)
    assert [(row["partition"], row["offset"]) for row in read] == [(1, o) for o in range(2, count)]
    assert error in caplog.text
    assert rows(reader, end, end) == [], "known from then on"


def test_a_new_partition_that_is_gone_again_is_data_loss(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(3)})
    start, end = {"t": {"0": 3}}, {"t": {"0": 3, "1": 4}}
    with pytest.raises(DataLossError, match="t-1: the partition is new to the stream, and was"):
        stream(tmp_path).partitions(start, end)
    assert rows(stream(tmp_path, **LOSSY), start, end) == []


def test_a_new_topic_of_a_pattern_is_read_from_its_start(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(3)})
    reader = stream(tmp_path, subscribePattern="^[tu]$", startingOffsets="latest")
    start = reader.initialOffset()
    write_log(tmp_path, {0: many(2)}, "u-0")
    write_log(tmp_path, {0: many(2)}, "v-0")
    end = latest(reader, start)
    assert end == {"#start": {"t": {"0": 3}, "u": {"0": 0}}, "t": {"0": 3}, "u": {"0": 2}}
    assert [(r["topic"], r["offset"]) for r in rows(reader, start, end)] == [("u", 0), ("u", 1)]


def create_topic_again(root: Path, count: int) -> dict[str, Any]:
    """Delete a topic that a stream has read up to offset 5, and create it again."""
    write_log(root, {0: many(5)})
    name_topic(root, ID)
    start = latest(stream(root), stream(root).initialOffset())
    assert start == {"#ids": {"t": ID}, "t": {"0": 5}}
    shutil.rmtree(root / "t-0")
    write_log(root, {0: many(count)})
    name_topic(root, OTHER_ID)
    return start


@pytest.mark.parametrize("count", [0, 3, 5, 8])
def test_topic_created_again_is_data_loss(tmp_path: Path, count: int) -> None:
    start = create_topic_again(tmp_path, count)
    with pytest.raises(DataLossError, match="t: the topic was deleted and created again"):
        stream(tmp_path).latestOffset(start, EVERYTHING)


@pytest.mark.parametrize("count", [0, 3, 5, 8])
def test_topic_created_again_is_read_from_its_start(tmp_path: Path, count: int) -> None:
    start = create_topic_again(tmp_path, count)
    reader = stream(tmp_path, **LOSSY)
    end = latest(reader, start)
    assert end == {"#ids": {"t": OTHER_ID}, "#start": {"t": {"0": 0}}, "t": {"0": count}}
    assert offsets(rows(reader, start, end)) == list(range(count))


def test_log_end_before_the_checkpoint(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(5)})
    start = {"t": {"0": 9}}
    with pytest.raises(DataLossError, match="t-0: the log ends at 5, the stream was at 9"):
        stream(tmp_path).latestOffset(start, EVERYTHING)
    lossy = stream(tmp_path, **LOSSY)
    assert latest(lossy, start) == start
    assert rows(lossy, start, start) == []


def test_a_partition_that_is_gone(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(5)})
    start = {"t": {"0": 5, "1": 7}}
    with pytest.raises(DataLossError, match="t-1: the partition was deleted"):
        stream(tmp_path).latestOffset(start, EVERYTHING)
    lossy = stream(tmp_path, **LOSSY)
    assert latest(lossy, start) == start
    assert rows(lossy, start, start) == []


def test_19_a_topic_that_is_gone(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(5)}, "u-0")
    start = {"t": {"0": 5}, "u": {"0": 5}}
    for options in ({}, LOSSY):
        with pytest.raises(OptionError, match="no topic t"):
            stream(tmp_path, subscribe="t,u", **options).latestOffset(start, EVERYTHING)
    with pytest.raises(DataLossError, match="t-0"):
        stream(tmp_path, subscribePattern="t|u").latestOffset(start, EVERYTHING)
    lossy = stream(tmp_path, subscribePattern="t|u", **LOSSY)
    assert latest(lossy, start) == start


def test_records_deleted_before_they_were_read(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(9)})
    set_checkpoint(tmp_path, "log-start-offset-checkpoint", {("t", 0): 6})
    start, end = {"t": {"0": 2}}, {"t": {"0": 9}}
    with pytest.raises(DataLossError, match="t-0: offsets 2 to 5 were deleted"):
        stream(tmp_path).partitions(start, end)
    assert offsets(rows(stream(tmp_path, **LOSSY), start, end)) == [6, 7, 8]


def test_committed_ends_at_the_last_stable_offset(tmp_path: Path) -> None:
    log = [plain(0), transactional(1, 5), plain(2), marker(3, 5, ABORT), transactional(4, 6)]
    directory = write_log(tmp_path, {0: log})
    reader = stream(tmp_path)
    start = reader.initialOffset()
    end = latest(reader, start)
    assert end["t"] == {"0": 4}
    assert offsets(rows(reader, start, end)) == [0, 2]
    log += [marker(5, 6, COMMIT), plain(6)]
    (directory / "00000000000000000000.log").write_bytes(b"".join(log))
    start, end = end, latest(reader, end)
    assert end == {"t": {"0": 7}}
    assert offsets(rows(reader, start, end)) == [4, 6]


def test_uncommitted_reads_all(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [transactional(0, 5), transactional(1, 6), marker(2, 5, ABORT)]})
    reader = stream(tmp_path, isolationLevel="read_uncommitted")
    start = reader.initialOffset()
    end = latest(reader, start)
    assert end["t"] == {"0": 3}
    assert offsets(rows(reader, start, end)) == [0, 1]


def test_progress_reports_what_was_last_seen(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(3)})
    reader = stream(tmp_path)
    end = latest(reader, {"t": {"0": 0}})
    (directory / "00000000000000000000.log").write_bytes(b"".join(many(8)))
    assert (reader.reportLatestOffset() or {})["t"] == end["t"]
    assert isinstance(reader.getDefaultReadLimit(), ReadAllAvailable)


def test_a_deleted_partition_is_noticed_where_topics_have_ids(tmp_path: Path) -> None:
    for partition in ("t-0", "u-0"):
        write_log(tmp_path, {0: many(10)}, partition)
        name_topic(tmp_path, ID, partition)
    reader = stream(tmp_path, subscribePattern="t|u")
    start = reader.initialOffset()
    shutil.rmtree(tmp_path / "u-0")
    with pytest.raises(DataLossError, match="u-0: the partition was deleted"):
        latest(reader, start)
    lossy = latest(stream(tmp_path, subscribePattern="t|u", **LOSSY), start)
    assert lossy["u"] == {"0": 0}, "the checkpoint never goes back"


def test_offsets_by_partition_do_not_bind_a_restart(tmp_path: Path) -> None:
    """A partition that came since: the checkpoint decides, and `load()` must not refuse it."""
    write_log(tmp_path, {0: many(10)})
    write_log(tmp_path, {0: many(4)}, "t-1")
    values = {"subscribe": "t", "path": str(tmp_path), "startingOffsets": '{"t":{"0":5}}'}
    assert scan_planner.try_resolve_offsets(values, parse_shared_options(values)) is None
    reader = stream(tmp_path, startingOffsets=values["startingOffsets"])
    end = latest(reader, {"t": {"0": 5}})
    read = [(row["partition"], row["offset"]) for row in rows(reader, {"t": {"0": 5}}, end)]
    assert read == [(0, offset) for offset in range(5, 10)] + [(1, o) for o in range(4)]
