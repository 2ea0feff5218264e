"""Streams and batches across a restore: what it took back is data loss, what lies after is read."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.commit_log.topic_restore import RestoreReport
from klog.connector.embedded import Log
from klog.connector.open_root import open_root
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.offset_ranges import batch_ranges
from klog.connector.source.slice_reader import SliceReader
from klog.connector.source.stream_reader import KlogStreamReader
from klog.connector.source.task_reader import make_reader
from klog.errors import DataLossError
from klog.logformat.topic_partition import TopicPartition
from tests.connector.source.test_stream_reader import LOSSY, latest, rows

TOPIC = "t"


class RestoredTopic:
    """A topic of one partition with records 0 to 5, whose version 2 has the first three."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log: Log = klog.open(str(path))
        self.topic_id = self.log.create_topic(TOPIC, 1).topic_id
        for number in range(6):
            self.append(str(number))

    def append(self, value: str) -> None:
        """Append a record."""
        self.log.append(TOPIC, pa.table({"value": [value]}))

    def restore(self, version: int) -> RestoreReport:
        """Restore a version; it has as many records as its number."""
        return self.log.restore(TOPIC, version)

    def stream(self, **options: str) -> KlogStreamReader:
        """Open a stream."""
        return KlogStreamReader({"path": str(self.path), "subscribe": TOPIC} | options)

    def offsets(self, offset: int, restore: int | None = 0) -> dict[str, Any]:
        """Return the offsets of a checkpoint; None is one without the key."""
        restored = {} if restore is None else {"#restored": {TOPIC: restore} if restore else {}}
        return {"#ids": {TOPIC: self.topic_id}, **restored, TOPIC: {"0": offset}}

    def values(self, start: dict[str, Any], **options: str) -> list[tuple[int, str]]:
        """Return what a micro-batch from some offsets to the log end reads."""
        reader = self.stream(**options)
        read = rows(reader, start, latest(reader, start))
        return [(row["offset"], row["value"].decode()) for row in read]


@pytest.fixture
def topic(tmp_path: Path) -> RestoredTopic:
    return RestoredTopic(tmp_path / "root")


def test_a_stream_that_read_what_was_taken_back_fails(
    topic: RestoredTopic, caplog: pytest.LogCaptureFixture
) -> None:
    before = topic.offsets(5)
    restore = topic.restore(3).commit_version
    topic.append("after")
    with pytest.raises(
        DataLossError,
        match=f"t-0: commit {restore} restored an earlier version of the topic. From offset 3 on .*"
        "at 5; set failOnDataLoss=false to go on with offset 5",
    ):
        latest(topic.stream(), before)
    with caplog.at_level(logging.WARNING, "klog"):
        assert topic.values(before, **LOSSY) == [(6, "after")]
    assert "From offset 3 on the log is not what the stream has read" in caplog.text
    after = latest(topic.stream(**LOSSY), before)
    assert after == topic.offsets(7, restore)
    assert latest(topic.stream(), after) == after, "it is noticed once"


@pytest.mark.parametrize("offset", [0, 2, 3])
def test_a_stream_below_the_restored_end_goes_on(topic: RestoredTopic, offset: int) -> None:
    topic.restore(3)
    topic.append("after")
    kept = [(number, str(number)) for number in range(offset, 3)]
    assert topic.values(topic.offsets(offset)) == [*kept, (6, "after")]


def test_an_idle_stream_notes_the_restore(topic: RestoredTopic) -> None:
    restore = topic.restore(3).commit_version
    start = topic.offsets(3)
    end = latest(topic.stream(), start)
    assert end == topic.offsets(6, restore)
    assert rows(topic.stream(), start, end) == []


def test_who_saw_the_hole_fails_when_its_records_come_back(topic: RestoredTopic) -> None:
    restore = topic.restore(3).commit_version
    undo = topic.restore(6).commit_version
    assert topic.values(topic.offsets(5)) == [(5, "5")], "it has read what is there"
    with pytest.raises(DataLossError, match=f"commit {undo} restored .* From offset 3 on"):
        latest(topic.stream(), topic.offsets(5, restore))
    assert topic.values(topic.offsets(3, restore)) == [(3, "3"), (4, "4"), (5, "5")]


def test_a_checkpoint_without_the_key_goes_on_with_one_warning(
    topic: RestoredTopic, caplog: pytest.LogCaptureFixture
) -> None:
    start = topic.offsets(5, None)
    with caplog.at_level(logging.WARNING, "klog"):
        assert latest(topic.stream(), start) == topic.offsets(6)
        assert caplog.text == ""
        assert latest(topic.stream(), topic.offsets(6, None)) == topic.offsets(6, None)
        restore = topic.restore(3).commit_version
        topic.append("after")
        for reader in (topic.stream(), topic.stream()):
            for _ in range(2):
                assert latest(reader, start) == topic.offsets(7, restore)
    assert len(caplog.messages) == 2, "one of each reader, which may be of another root"
    for message in caplog.messages:
        assert "the checkpoint of this stream does not say" in message


def test_a_micro_batch_that_runs_again_across_a_restore(
    topic: RestoredTopic, caplog: pytest.LogCaptureFixture
) -> None:
    start, end = topic.offsets(1), topic.offsets(5)
    topic.restore(3)
    with pytest.raises(DataLossError, match=r"t-0: commit 7 restored .* offsets 3 to 4: 2 that"):
        rows(topic.stream(), start, end)
    with caplog.at_level(logging.WARNING, "klog"):
        assert [row["offset"] for row in rows(topic.stream(**LOSSY), start, end)] == [1, 2]
    assert "offsets 3 to 4" in caplog.text
    assert len(rows(topic.stream(), start, topic.offsets(3))) == 2


def plan(topic: RestoredTopic, options: dict[str, str]) -> tuple[Any, Any, SliceReader]:
    parsed = parse_read_options({"subscribe": TOPIC, **options})
    snapshot = open_root([str(topic.path)]).snapshot()
    logs = snapshot.open([TopicPartition(TOPIC, 0)])
    resolved = [offset_range.resolved() for offset_range in batch_ranges(logs, parsed, 0)]
    return parsed, resolved, make_reader([str(topic.path)], parsed)


@pytest.mark.parametrize("options", [{}, LOSSY], ids=["strict", "lossy"])
def test_a_batch_that_was_resolved_before_a_restore(
    topic: RestoredTopic, options: dict[str, str]
) -> None:
    parsed, resolved, reader = plan(topic, options)
    topic.restore(3)
    root = open_root([str(topic.path)])
    if not options:
        with pytest.raises(DataLossError, match=r"commit 7 restored .* offsets 3 to 5 since"):
            scan_planner.plan_tasks(root, resolved, parsed)
        return
    tasks = scan_planner.plan_tasks(root, resolved, parsed)
    assert sum(len(batch) for task in tasks for batch in reader.read(task)) == 3


@pytest.mark.parametrize("options", [{}, LOSSY], ids=["strict", "lossy"])
def test_a_file_that_a_restore_removed_and_vacuum_deleted_under_a_plan(
    topic: RestoredTopic, options: dict[str, str]
) -> None:
    parsed, _, reader = plan(topic, options)
    root = open_root([str(topic.path)])
    tasks = scan_planner.plan_snapshot(root.snapshot(), parsed)
    topic.restore(3)
    for file in sorted(topic.path.glob("t-0/*.log"))[3:]:
        file.unlink()

    def count() -> int:
        return sum(len(batch) for task in tasks for batch in reader.read(task))

    if options:
        assert count() == 3
        return
    with pytest.raises(DataLossError, match=r"t-0: the records from offset 3 on were taken back"):
        count()


def test_a_hole_is_read_as_nothing(topic: RestoredTopic) -> None:
    topic.restore(3)
    assert topic.log.scan(TOPIC).read_all().num_rows == 3
    assert topic.log.scan(TOPIC, start=3, end=5).read_all().num_rows == 0
    assert topic.log.scan(TOPIC, start=2, end=4).read_all()["offset"].to_pylist() == [2]
    assert topic.log.describe(TOPIC).partitions[0].log_end == 6
    limited = topic.stream(maxOffsetsPerTrigger="2")
    assert [row["offset"] for row in rows(limited, topic.offsets(0), topic.offsets(6, 7))] == [
        0, 1, 2,
    ]  # fmt: skip
