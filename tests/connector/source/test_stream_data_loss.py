"""A stream whose offsets are gone: which, how many, and what its user does, on every kind of root.

The rule: no error tells a stream to read again, which would plan the same offsets. The stream goes
on with what is left with `failOnDataLoss=false`, or starts with a new checkpoint.
"""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import klog
from klog.cli import main
from klog.connector import system_clock
from klog.connector.datasource import KlogDataSource
from klog.connector.embedded import Log
from klog.connector.source.load_plan import MAX_AGE_SECONDS
from klog.connector.source.stream_reader import KlogStreamReader
from klog.errors import DataLossError, OptionError
from klog.jobs import retain
from tests.connector.log_dirs import many, set_checkpoint, write_log
from tests.connector.source.test_stream_reader import EVERYTHING, LOSSY, latest, name_topic, rows

ID, OTHER_ID = "ASNFZ4mrze_-3LqYdlQyEA", "oLU2KAuJTQu3f_SSptKlOA"
STEP = "set failOnDataLoss=false to go on with {}, or start the query with a new checkpoint"


def stream(path: Path, **options: str) -> KlogStreamReader:
    values = {"subscribePattern": "t|u", "startingOffsets": "earliest", "path": str(path)}
    return KlogStreamReader(values | options)


def fill(path: Path, topic: str = "t", count: int = 9) -> Log:
    log = klog.open(path)
    log.create_topic(topic, config={"segment.bytes": "200"})
    for number in range(count):
        log.append(topic, pa.table({"value": [str(number)]}))
    return log


def delete_records(path: Path) -> None:
    words = ["--topic", "t", "--partition", "0", "--offset", "6"]
    assert main(["delete-records", "--root", str(path), *words]) == 0


def read(reader: KlogStreamReader, start: dict[str, Any]) -> list[tuple[str, int]]:
    end = latest(reader, start)
    return [(row["topic"], row["offset"]) for row in rows(reader, start, end)]


def data_loss_error(path: Path, start: dict[str, Any], remainder: str) -> str:
    """Plan as Spark does on a restart; return the error, which has to say what to do."""
    with pytest.raises(DataLossError) as caught:
        read(stream(path), start)
    error = str(caught.value)
    assert error.endswith(STEP.format(remainder))
    assert "read again" not in error
    return error


def checkpoint_at(path: Path, **offsets: int) -> dict[str, Any]:
    """Return a checkpoint at these offsets of partition 0."""
    ids = stream(path).initialOffset().get("#ids", {})
    next_offsets = {topic: {"0": offset} for topic, offset in offsets.items()}
    return {"#ids": {topic: ids[topic] for topic in offsets if topic in ids}, **next_offsets}


@pytest.mark.parametrize("how", ["delete-records", "retain", "raw"])
def test_restart_before_the_log_start(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if how == "raw":
        write_log(tmp_path, {0: many(9)})
        name_topic(tmp_path, ID)
        start, log_start = checkpoint_at(tmp_path, t=2), 6
        set_checkpoint(tmp_path, "log-start-offset-checkpoint", {("t", 0): 6})
    else:
        fill(tmp_path)
        start, log_start = checkpoint_at(tmp_path, t=2), 6
        if how == "delete-records":
            delete_records(tmp_path)
        else:
            later = system_clock.now_ms() + 8 * 24 * 3600 * 1000
            assert retain.run(None, str(tmp_path), clock_ms=lambda: later).exit_code == 0
            log_start = 9
    error = data_loss_error(tmp_path, start, f"the log start, offset {log_start}")
    lost = log_start - 2
    assert f"t-0: offsets 2 to {log_start - 1} were deleted: {lost} that the stream has" in error
    with caplog.at_level(logging.WARNING, "klog"):
        remaining = [("t", offset) for offset in range(log_start, 9)]
        assert read(stream(tmp_path, **LOSSY), start) == remaining
    assert f"going on with the log start, offset {log_start}" in caplog.text


def test_all_of_a_planned_batch_was_deleted(tmp_path: Path) -> None:
    """A batch that was planned before a kill, all of it below the log start now."""
    fill(tmp_path)
    start, end = checkpoint_at(tmp_path, t=2), checkpoint_at(tmp_path, t=4)
    delete_records(tmp_path)
    with pytest.raises(DataLossError, match="t-0: offsets 2 to 3 were deleted: 2 that the stream"):
        stream(tmp_path).partitions(start, end)
    assert rows(stream(tmp_path, **LOSSY), start, end) == []


@pytest.mark.parametrize("is_raw", [False, True])
def test_topic_created_again(tmp_path: Path, is_raw: bool) -> None:
    if is_raw:
        write_log(tmp_path, {0: many(9)})
        name_topic(tmp_path, ID)
        start, end = checkpoint_at(tmp_path, t=2), checkpoint_at(tmp_path, t=9)
        shutil.rmtree(tmp_path / "t-0")
        write_log(tmp_path, {0: many(4)})
        name_topic(tmp_path, OTHER_ID)
    else:
        log = fill(tmp_path)
        start, end = checkpoint_at(tmp_path, t=2), checkpoint_at(tmp_path, t=9)
        log.delete_topic("t")
        fill(tmp_path, count=4)
    error = data_loss_error(tmp_path, start, "the new topic, from its start")
    assert error.startswith("t: the topic was deleted and created again")
    assert read(stream(tmp_path, **LOSSY), start) == [("t", offset) for offset in range(4)]
    with pytest.raises(DataLossError, match=r"without offsets 2 to 8: 7 that the stream has not"):
        stream(tmp_path).partitions(start, end)
    assert rows(stream(tmp_path, **LOSSY), start, end) == []


@pytest.mark.parametrize("is_raw", [False, True])
def test_a_partition_that_was_deleted(tmp_path: Path, is_raw: bool) -> None:
    if is_raw:
        for name in ("t-0", "u-0"):
            write_log(tmp_path, {0: many(9)}, name)
        start, end = checkpoint_at(tmp_path, t=2, u=2), checkpoint_at(tmp_path, t=9, u=9)
        shutil.rmtree(tmp_path / "u-0")
    else:
        log = fill(tmp_path)
        fill(tmp_path, "u")
        start, end = checkpoint_at(tmp_path, t=2, u=2), checkpoint_at(tmp_path, t=9, u=9)
        log.delete_topic("u")
    error = data_loss_error(tmp_path, start, "the other partitions")
    assert error.startswith("u-0: the partition was deleted while the stream was at 2")
    remaining = [("t", offset) for offset in range(2, 9)]
    assert read(stream(tmp_path, **LOSSY), start) == remaining
    with pytest.raises(DataLossError, match="with offsets 2 to 8: 7 that the stream has not read"):
        stream(tmp_path).partitions(start, end)
    assert len(rows(stream(tmp_path, **LOSSY), start, end)) == len(remaining)


@pytest.mark.parametrize("is_raw", [False, True])
def test_a_log_that_ends_before_the_checkpoint(tmp_path: Path, is_raw: bool) -> None:
    """A directory that was restored from an older copy."""
    if is_raw:
        write_log(tmp_path, {0: many(5)})
    else:
        fill(tmp_path, count=5)
    start, end = checkpoint_at(tmp_path, t=9), checkpoint_at(tmp_path, t=12)
    error = data_loss_error(tmp_path, start, "offset 9, which leaves out what is written before it")
    assert error.startswith("t-0: the log ends at 5, the stream was at 9")
    assert read(stream(tmp_path, **LOSSY), start) == []
    with pytest.raises(DataLossError, match="t-0: offsets 9 to 11 were cut off: 3 that the stream"):
        stream(tmp_path).partitions(start, end)


def test_an_idle_stream_is_told_once_of_each_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark asks an idle stream again and again; a log that grows meanwhile is the same loss."""
    write_log(tmp_path, {0: many(5)})
    reader, start = stream(tmp_path, **LOSSY), {"t": {"0": 9}, "u": {"0": 9}}
    for count in (5, 5, 6, 7):
        write_log(tmp_path, {0: many(count)})
        assert latest(reader, start) == start
    cut, deleted = caplog.messages
    assert cut.startswith("t-0: the log ends at 5, the stream was at 9")
    assert deleted.startswith("u-0: the partition was deleted while the stream was at 9")
    write_log(tmp_path, {0: many(9)})
    assert latest(reader, start) == start
    write_log(tmp_path, {0: many(8)})
    assert latest(reader, start) == start
    assert len(caplog.messages) == 3, "the log was cut again"
    assert latest(stream(tmp_path, **LOSSY), start) == start
    assert len(caplog.messages) == 5, "another reader knows nothing of what the first one said"


@pytest.mark.parametrize(
    "options",
    [{"subscribe": "t"}, {"subscribePattern": "^t"}, {"assign": '{"t": [0]}'}],
    ids=str,
)
def test_a_subscription_that_became_narrower(
    tmp_path: Path, options: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """As for Spark's Kafka source it is data loss; the sentence says what has happened."""
    for name in ("t-0", "t-1", "u-0"):
        write_log(tmp_path, {0: many(9)}, name)
    wider = KlogStreamReader({"path": str(tmp_path), "subscribe": "t,u"})
    start = latest(wider, {"t": {"0": 9, "1": 9}, "u": {"0": 9}})
    values = {"path": str(tmp_path)} | options
    text = "{}: the query does not subscribe to the partition any more, and the stream was at 9"
    gone = ["t-1", "u-0"] if "assign" in options else ["u-0"]
    with pytest.raises(DataLossError, match=text.format(gone[0])):
        latest(KlogStreamReader(values), start)
    assert latest(KlogStreamReader(values | LOSSY), start) == start
    assert [message.split(";")[0] for message in caplog.messages] == [*map(text.format, gone)]


def test_a_topic_that_is_subscribed_to_and_was_deleted(tmp_path: Path) -> None:
    log = fill(tmp_path)
    start = checkpoint_at(tmp_path, t=2)
    log.delete_topic("t")
    for options in ({}, LOSSY):
        values = {"subscribe": "t", "path": str(tmp_path)} | options
        with pytest.raises(OptionError, match="topic t was deleted"):
            KlogStreamReader(values).latestOffset(start, EVERYTHING)


def test_a_topic_that_was_deleted_and_undeleted(tmp_path: Path) -> None:
    log = fill(tmp_path)
    topic_id = log.describe("t").topic_id
    start, end = checkpoint_at(tmp_path, t=2), checkpoint_at(tmp_path, t=9)
    log.delete_topic("t")
    assert log.undelete_topic("t").topic_id == topic_id
    log.append("t", pa.table({"value": ["9"]}))
    remaining = [("t", offset) for offset in range(2, 10)]
    assert read(stream(tmp_path), start) == remaining
    assert len(rows(stream(tmp_path), start, end)) == len(remaining) - 1
    values = log.scan("t").read_all()["value"].to_pylist()
    assert values == [str(number).encode() for number in range(10)]


def test_records_that_are_deleted_while_a_task_reads(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(9)})
    start, end = checkpoint_at(tmp_path, t=2), checkpoint_at(tmp_path, t=9)
    reader = stream(tmp_path)
    (partition,) = reader.partitions(start, end)
    (directory / "00000000000000000000.log").unlink()
    write_log(tmp_path, {6: many(3, 6)})
    with pytest.raises(DataLossError) as caught:
        list(reader.read(partition))
    assert str(caught.value).endswith(STEP.format("what is left"))


def test_records_that_are_deleted_after_the_load_of_a_batch(tmp_path: Path) -> None:
    fill(tmp_path)
    batch = KlogDataSource({"subscribe": "t", "path": str(tmp_path)})
    lossy_batch = KlogDataSource({"subscribe": "t", "path": str(tmp_path), **LOSSY})
    for source in (batch, lossy_batch):
        source.schema()
        assert batch_offsets(source) == list(range(9))
    delete_records(tmp_path)
    assert batch_offsets(batch) == list(range(9)), "as loaded: vacuum has not taken the files yet"
    error = (
        "t-0: offsets 0 to 5 were deleted since the read was planned; read again, or set "
        "failOnDataLoss=false to go on with the log start, offset 6"
    )
    for source in (batch, lossy_batch):
        plan = source._load_plan
        assert plan is not None
        source._load_plan = replace(plan, made_seconds=plan.made_seconds - MAX_AGE_SECONDS)
    with pytest.raises(DataLossError) as caught:
        batch_offsets(batch)
    assert str(caught.value) == error
    assert batch_offsets(lossy_batch) == [6, 7, 8]


def batch_offsets(source: KlogDataSource) -> list[int]:
    """Run one action on a DataFrame."""
    reader = source.reader(StructType([]))
    return [
        offset
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for offset in batch["offset"].to_pylist()
    ]
