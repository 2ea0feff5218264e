"""Checkpoints of Spark's Kafka source, and what klog's own keep besides the next offsets.

The rule: a checkpoint has where micro-batches end. A restart reads the same micro-batch again,
reads each later record once, and reports what it cannot know.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from klog.connector.source.stream_offsets import StreamOffsets
from klog.errors import DataLossError
from klog.logformat.topic_partition import TopicPartition
from tests.connector.kafka_dir.lock_holder import holding
from tests.connector.log_dirs import many, offsets, set_checkpoint, write_log
from tests.connector.source.test_stream_reader import (
    EVERYTHING,
    ID,
    LOSSY,
    OTHER_ID,
    latest,
    name_topic,
    rows,
    stream,
)
from tests.support.batch_bytes import COMMIT, marker, plain, transactional


def places(read: list[Any]) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in read]


def test_a_stream_above_the_last_stable_offset_waits(tmp_path: Path) -> None:
    """The Kafka source reads uncommitted records by default: what it has read is not lost."""
    log = [plain(0), transactional(1, 6), plain(2)]
    directory = write_log(tmp_path, {0: log})
    start = {"t": {"0": 3}}
    reader = stream(tmp_path)
    assert latest(reader, start) == start
    assert rows(reader, start, start) == []
    log += [marker(3, 6, COMMIT), plain(4)]
    (directory / "00000000000000000000.log").write_bytes(b"".join(log))
    end = latest(reader, start)
    assert end == {"t": {"0": 5}}
    assert offsets(rows(reader, start, end)) == [4]


@pytest.mark.parametrize("count", [9, 5])
def test_only_bytes_that_are_gone_are_lost_while_a_broker_runs(tmp_path: Path, count: int) -> None:
    """The broker checkpoints its high watermark every few seconds; its bytes are there at once."""
    write_log(tmp_path, {0: many(count)}, clean=False)
    set_checkpoint(tmp_path, "replication-offset-checkpoint", {("t", 0): 4})
    start = {"t": {"0": 8}}
    with holding(tmp_path):
        if count == 9:
            assert latest(stream(tmp_path), start) == start
        else:
            with pytest.raises(DataLossError, match="t-0: the log ends at 4, the stream was at 8"):
                latest(stream(tmp_path), start)


def create_again_without_id(root: Path) -> dict[str, Any]:
    """Create a topic again after the Kafka source has read it; one new partition is longer."""
    for partition, count in (("t-0", 3), ("t-1", 9)):
        write_log(root, {0: many(count)}, partition)
        name_topic(root, OTHER_ID, partition)
    return {"t": {"0": 5, "1": 5}}


def test_a_topic_created_again_under_a_checkpoint_without_its_id(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start = create_again_without_id(tmp_path)
    with pytest.raises(
        DataLossError, match=r"t-0: the log ends at 3, .* topic was deleted and created again"
    ):
        stream(tmp_path).latestOffset(start, EVERYTHING)
    lossy = stream(tmp_path, **LOSSY)
    with caplog.at_level(logging.WARNING, "klog"):
        end = latest(lossy, start)
    assert "going on with topic t, from its start" in caplog.text
    ends = {"#ids": {"t": OTHER_ID}, "t": {"0": 3, "1": 9}}
    assert end == {**ends, "#start": {"t": {"0": 0, "1": 0}}}
    everything = [(0, offset) for offset in range(3)] + [(1, offset) for offset in range(9)]
    assert places(rows(lossy, start, end)) == everything
    again = stream(tmp_path, **LOSSY)
    assert places(rows(again, start, end)) == everything, "a restart reads the same"
    assert latest(again, end) == end, "nothing is new"
    write_log(tmp_path, {0: many(4)}, "t-0")
    assert latest(again, end) == {"#ids": {"t": OTHER_ID}, "t": {"0": 4, "1": 9}}
    assert places(rows(again, end, latest(again, end))) == [(0, 3)]


def test_a_topic_created_again_is_read_from_its_start_in_limited_batches(tmp_path: Path) -> None:
    start = create_again_without_id(tmp_path)
    reader = stream(tmp_path, maxOffsetsPerTrigger="4", **LOSSY)
    read = []
    for _ in range(4):
        end = reader.latestOffset(start, ReadMaxRows(4))
        read += places(rows(reader, start, end))
        start = end
    assert sorted(read) == [(0, offset) for offset in range(3)] + [(1, o) for o in range(9)]


@pytest.mark.parametrize("starting", ["latest", "-2", "now-1d"])
def test_the_first_batch_is_the_same_after_a_restart(tmp_path: Path, starting: str) -> None:
    write_log(tmp_path, {0: many(5)})
    reader = stream(tmp_path, startingOffsets=starting)
    start = reader.initialOffset()
    first = start["t"]["0"]
    write_log(tmp_path, {0: many(9)})
    assert reader.initialOffset() == start, "Spark asks twice in one micro-batch"
    end = latest(reader, start)
    assert end == {"#start": {"t": {"0": first}}, "t": {"0": 9}}
    write_log(tmp_path, {0: many(12)})
    restarted = stream(tmp_path, startingOffsets=starting)
    assert restarted.initialOffset() != start
    assert offsets(rows(restarted, restarted.initialOffset(), end)) == list(range(first, 9))
    second = latest(restarted, end)
    assert second == {"t": {"0": 12}}
    assert offsets(rows(restarted, end, second)) == [9, 10, 11]


@pytest.mark.parametrize("starting", ["earliest", "1970-01-01T00:00:01.001Z"])
def test_retention_before_the_first_batch_runs_again_is_noticed(
    tmp_path: Path, starting: str
) -> None:
    """What `earliest` means then is not where the micro-batch started."""
    write_log(tmp_path, {0: many(5)})
    reader = stream(tmp_path, startingOffsets=starting)
    start = reader.initialOffset()
    first = start["t"]["0"]
    end = latest(reader, start)
    assert end == {"#start": {"t": {"0": first}}, "t": {"0": 5}}
    set_checkpoint(tmp_path, "log-start-offset-checkpoint", {("t", 0): 3})
    restarted = stream(tmp_path, startingOffsets=starting)
    assert restarted.initialOffset() == {"t": {"0": 3}}
    with pytest.raises(DataLossError, match=f"t-0: offsets {first} to 2 were deleted"):
        restarted.partitions(restarted.initialOffset(), end)
    lossy = stream(tmp_path, startingOffsets=starting, **LOSSY)
    assert offsets(rows(lossy, lossy.initialOffset(), end)) == [3, 4]


def test_given_offsets_are_not_kept(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(5)})
    reader = stream(tmp_path, startingOffsets='{"t":{"0":2}}')
    assert latest(reader, reader.initialOffset()) == {"t": {"0": 5}}


def test_an_empty_first_batch_keeps_its_start(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(5)})
    reader = stream(tmp_path, startingOffsets="latest")
    end = latest(reader, reader.initialOffset())
    assert end == {"#start": {"t": {"0": 5}}, "t": {"0": 5}}
    assert latest(reader, end) == end, "an idle stream runs no second micro-batch"
    write_log(tmp_path, {0: many(7)})
    restarted = stream(tmp_path, startingOffsets="latest")
    assert rows(restarted, restarted.initialOffset(), end) == []
    assert offsets(rows(restarted, end, latest(restarted, end))) == [5, 6]


@pytest.mark.parametrize("end", [{"t": {"0": 9}}, {"#ids": {"t": ID}, "t": {"0": 9}}])
def test_a_first_batch_that_does_not_say_where_it_started(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, end: dict[str, Any]
) -> None:
    """The Kafka source keeps it in a file that Spark does not give to klog."""
    write_log(tmp_path, {0: many(9)})
    name_topic(tmp_path, ID)
    for starting in ("latest", "-3"):
        reader = stream(tmp_path, startingOffsets=starting)
        with pytest.raises(DataLossError, match="does not say where it started") as caught:
            reader.partitions(reader.initialOffset(), end)
        assert "klog checkpoint copy" in str(caught.value)
    lossy = stream(tmp_path, startingOffsets="-3", **LOSSY)
    with caplog.at_level(logging.WARNING, "klog"):
        assert offsets(rows(lossy, lossy.initialOffset(), end)) == [6, 7, 8]
    assert "does not say where it started" in caplog.text
    for starting in ("earliest", '{"t":{"0":4}}'):
        reader = stream(tmp_path, startingOffsets=starting)
        first = reader.initialOffset()["t"]["0"]
        assert offsets(rows(reader, reader.initialOffset(), end)) == list(range(first, 9))


def test_keys_of_later_versions_are_ignored() -> None:
    values = {"#later": {"t": {"9": 9}}, "#ids": {"t": ID}, "t": {"0": 4}}
    offsets = StreamOffsets.from_json(values)
    assert offsets.next_offsets == {TopicPartition("t", 0): 4}
    assert offsets.to_json() == {"#ids": {"t": ID}, "t": {"0": 4}}


def test_a_partition_is_created_again_in_a_running_stream(tmp_path: Path) -> None:
    """The checkpoint of the Kafka source gets the id with the first micro-batch of klog."""
    write_log(tmp_path, {0: many(5)})
    name_topic(tmp_path, ID)
    reader = stream(tmp_path)
    end = latest(reader, {"t": {"0": 5}})
    assert end == {"#ids": {"t": ID}, "t": {"0": 5}}
    shutil.rmtree(tmp_path / "t-0")
    write_log(tmp_path, {0: many(8)})
    name_topic(tmp_path, OTHER_ID)
    with pytest.raises(DataLossError, match="t: the topic was deleted and created again"):
        latest(reader, end)


def test_progress_has_the_metrics_of_the_kafka_source(tmp_path: Path) -> None:
    for partition, count in (("t-0", 10), ("t-1", 4)):
        write_log(tmp_path, {0: many(count)}, partition)
    reader = stream(tmp_path, maxOffsetsPerTrigger="7")
    end = reader.latestOffset({"t": {"0": 0, "1": 0}}, ReadMaxRows(7))
    assert end == {"t": {"0": 5, "1": 2}}
    size_bytes = 7 * len(many(1)[0])
    assert reader.reportLatestOffset() == {
        "#metrics": {
            "minOffsetsBehindLatest": "2",
            "maxOffsetsBehindLatest": "5",
            "avgOffsetsBehindLatest": "3.5",
            "estimatedTotalBytesBehindLatest": str(size_bytes),
        },
        "t": {"0": 10, "1": 4},
    }
    latest(reader, end)
    report = reader.reportLatestOffset() or {}
    assert set(report["#metrics"].values()) == {"0", "0.0"}
