"""Defects that sources of Kafka have had, by name: each of them is absent here.

The rule: a batch and a stream, on a klog root and on a broker's directory, neither skip nor repeat
a record without a word, and never call a gap that Kafka made by itself data loss.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest

import klog
from klog.cli import main
from klog.connector.open_root import open_root
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.stream_reader import KlogStreamReader
from klog.errors import ChangedDuringReadError, DataLossError, OffsetOutOfRangeError
from klog.jobs import adopt
from tests.connector.log_dirs import (
    many,
    offsets,
    plan_tasks,
    read_tasks,
    set_checkpoint,
    write_log,
)
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
from tests.jobs.broker_dirs import write_broker_dir
from tests.support.batch_bytes import ABORT, COMMIT, marker, plain, transactional
from tests.support.resolved_offsets import resolve_offsets

UNCOMMITTED = {"isolationLevel": "read_uncommitted"}


class Topic(Protocol):
    """Topic t with one partition of a root at `path`, in either kind of root."""

    path: Path

    def grow(self, count: int) -> None:
        """Append until the log ends at an offset."""

    def delete_before(self, offset: int) -> None:
        """Move the log start."""

    def create_again(self, count: int) -> None:
        """Delete the topic and create it again with so many records."""


class BrokerTopic:
    """A topic in the log directory of a broker."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def grow(self, count: int) -> None:
        write_log(self.path, {0: many(count)})
        name_topic(self.path, ID)

    def delete_before(self, offset: int) -> None:
        set_checkpoint(self.path, "log-start-offset-checkpoint", {("t", 0): offset})

    def create_again(self, count: int) -> None:
        shutil.rmtree(self.path / "t-0")
        write_log(self.path, {0: many(count)})
        name_topic(self.path, OTHER_ID)


class KlogTopic:
    """A topic of a klog root."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        self.log = klog.open(path)
        self.log.create_topic("t")

    def grow(self, count: int) -> None:
        numbers = range(self.count, count)
        if numbers:
            self.log.append("t", pa.table({"value": [str(number) for number in numbers]}))
        self.count = count

    def delete_before(self, offset: int) -> None:
        words = ["--topic", "t", "--partition", "0", "--offset", str(offset)]
        assert main(["delete-records", "--root", str(self.path), *words]) == 0

    def create_again(self, count: int) -> None:
        self.log.delete_topic("t")
        self.log.create_topic("t")
        self.count = 0
        self.grow(count)


@pytest.fixture(params=[BrokerTopic, KlogTopic])
def topic(request: pytest.FixtureRequest, tmp_path: Path) -> Topic:
    topic: Topic = request.param(tmp_path / "root")
    return topic


def at(reader: KlogStreamReader, offset: int) -> dict[str, Any]:
    """Return a checkpoint of the present topic at an offset."""
    return reader.initialOffset() | {"t": {"0": offset}}


def read_to_end(reader: KlogStreamReader, start: dict[str, Any]) -> list[int]:
    return offsets(rows(reader, start, latest(reader, start)))


def batch_ranges(path: Path, **options: str) -> list[tuple[int, int]]:
    parsed = parse_read_options({"subscribe": "t"} | options)
    resolved = resolve_offsets(open_root([str(path)]), parsed)
    return [(planned.start_offset, planned.end_offset) for planned in resolved]


def batch_offsets(path: Path, **options: str) -> list[int]:
    parsed = parse_read_options({"subscribe": "t"} | options)
    tasks = scan_planner.plan_snapshot(open_root([str(path)]).snapshot(), parsed)
    return offsets(read_tasks([str(path)], tasks))


def starting(offset: int) -> dict[str, str]:
    return {"startingOffsets": json.dumps({"t": {"0": offset}})}


def test_an_offset_past_the_end_must_not_rewind_a_stream(topic: Topic) -> None:
    topic.grow(5)
    start = at(stream(topic.path), 9)
    with pytest.raises(DataLossError, match="t-0: the log ends at 5, the stream was at 9"):
        stream(topic.path).latestOffset(start, EVERYTHING)
    lossy = stream(topic.path, **LOSSY)
    assert latest(lossy, start) == start
    topic.grow(12)
    assert read_to_end(lossy, start) == [9, 10, 11]


def test_an_offset_past_the_end_must_not_rewind_a_new_stream(topic: Topic) -> None:
    """It starts at the latest offset there is, also if its first micro-batch runs again."""
    topic.grow(5)
    with pytest.raises(OffsetOutOfRangeError, match="t-0: startingOffsets 9 is out of range"):
        stream(topic.path, **starting(9)).initialOffset()
    reader = stream(topic.path, **starting(9), **LOSSY)
    start = reader.initialOffset()
    assert start["t"] == {"0": 5}
    topic.grow(7)
    end = latest(reader, start)
    assert offsets(rows(reader, start, end)) == [5, 6]
    topic.grow(8)
    again = stream(topic.path, **starting(9), **LOSSY)
    start = again.initialOffset()
    assert start["t"] == {"0": 8}
    assert offsets(rows(again, start, end)) == [5, 6]
    assert read_to_end(again, end) == [7]


def test_an_offset_past_the_end_must_not_skip_what_comes_after_an_empty_micro_batch(
    topic: Topic,
) -> None:
    topic.grow(5)
    reader = stream(topic.path, **starting(9), **LOSSY)
    end = latest(reader, reader.initialOffset())
    assert (end["t"], end["#start"]) == ({"0": 5}, {"t": {"0": 5}})
    topic.grow(8)
    again = stream(topic.path, **starting(9), **LOSSY)
    assert rows(again, again.initialOffset(), end) == []
    assert read_to_end(again, end) == [5, 6, 7]


def test_an_offset_past_the_end_must_not_rewind_a_batch(topic: Topic) -> None:
    topic.grow(5)
    for loss in ({}, LOSSY):
        with pytest.raises(OffsetOutOfRangeError, match="t-0: startingOffsets 9 is after the end"):
            batch_ranges(topic.path, **starting(9), **loss)


def test_retention_advancing_during_a_read_is_noticed(topic: Topic) -> None:
    topic.grow(9)
    reader = stream(topic.path)
    start, end = at(reader, 2), latest(reader, at(reader, 2))
    resolved = resolve_offsets(open_root([str(topic.path)]), parse_read_options({"subscribe": "t"}))
    topic.delete_before(6)
    again = stream(topic.path)
    with pytest.raises(DataLossError, match="t-0: offsets 2 to 5 were deleted: 4 that the stream"):
        again.partitions(start, end)
    assert offsets(rows(stream(topic.path, **LOSSY), start, end)) == [6, 7, 8]
    root, options = open_root([str(topic.path)]), parse_read_options({"subscribe": "t"})
    with pytest.raises(ChangedDuringReadError, match="offsets 0 to 5 were deleted since the read"):
        scan_planner.plan_tasks(root, resolved, options)


def test_retention_advancing_while_a_task_reads_is_noticed(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: many(4), 4: many(4, 4)})
    tasks = plan_tasks([str(tmp_path)])
    (directory / "00000000000000000000.log").unlink()
    with pytest.raises(DataLossError, match="t-0: offsets 0 to 3 were deleted"):
        read_tasks([str(tmp_path)], tasks)
    assert offsets(read_tasks([str(tmp_path)], tasks, **LOSSY)) == [4, 5, 6, 7]


def test_end_offsets_use_the_isolation_level_in_force(tmp_path: Path) -> None:
    """A transaction from offset 4 on is open: the last stable offset is 4, the log end 7."""
    write_log(tmp_path, {0: [*many(4), transactional(4, 9), plain(5), plain(6)]})
    for options, end in (({}, 4), (UNCOMMITTED, 7)):
        assert batch_ranges(tmp_path, **options) == [(0, end)]
        new = stream(tmp_path, startingOffsets="latest", **options)
        assert new.initialOffset() == {"t": {"0": end}}
        assert latest(stream(tmp_path, **options), {"t": {"0": 0}}) == {"t": {"0": end}}
        now = stream(tmp_path, **options)
        now.prepareForTriggerAvailableNow()
        assert latest(now, {"t": {"0": 0}}) == {"t": {"0": end}}
    explicit = {"endingOffsets": '{"t":{"0":6}}'}
    assert batch_ranges(tmp_path, **explicit, **UNCOMMITTED) == [(0, 6)]
    assert batch_ranges(tmp_path, **explicit, **LOSSY) == [(0, 4)]
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 4 that are stable"):
        batch_ranges(tmp_path, **explicit)


def test_a_start_of_a_stream_uses_the_isolation_level_in_force(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [*many(4), transactional(4, 9), plain(5), plain(6)]})
    uncommitted = stream(tmp_path, **starting(6), **UNCOMMITTED)
    assert uncommitted.initialOffset() == {"t": {"0": 6}}
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 4 that are stable"):
        stream(tmp_path, **starting(6)).initialOffset()
    lossy = stream(tmp_path, **starting(6), **LOSSY)
    assert lossy.initialOffset() == {"t": {"0": 4}}


@pytest.mark.parametrize("count", [0, 3, 5, 8])
def test_a_topic_made_again_under_a_stream_is_an_error_and_never_a_silent_skip(
    topic: Topic, count: int
) -> None:
    topic.grow(5)
    reader = stream(topic.path)
    start = latest(reader, reader.initialOffset())
    topic.create_again(count)
    for strict in (reader, stream(topic.path)):
        with pytest.raises(DataLossError, match="t: the topic was deleted and created again"):
            strict.latestOffset(start, EVERYTHING)
    assert read_to_end(stream(topic.path, **LOSSY), start) == list(range(count))


@pytest.mark.parametrize("count", [3, 8])
def test_a_topic_made_again_after_its_micro_batch_was_planned(topic: Topic, count: int) -> None:
    topic.grow(5)
    reader = stream(topic.path)
    start = reader.initialOffset()
    end = latest(reader, start)
    topic.create_again(count)
    with pytest.raises(DataLossError, match="t-0: the topic was deleted and created again"):
        stream(topic.path).partitions(start, end)
    lossy = stream(topic.path, **LOSSY)
    assert rows(lossy, start, end) == []
    assert read_to_end(lossy, end) == list(range(count))


def test_retention_before_the_micro_batch_of_a_topic_made_again_runs_again(topic: Topic) -> None:
    """Where the micro-batch started, the offsets before it do not say: they are of the old one."""
    topic.grow(3)
    start = latest(stream(topic.path), stream(topic.path).initialOffset())
    topic.create_again(9)
    end = latest(stream(topic.path, **LOSSY), start)
    assert end["#start"] == {"t": {"0": 0}}
    topic.delete_before(5)
    with pytest.raises(DataLossError, match="t-0: offsets 0 to 4 were deleted: 5 that the stream"):
        stream(topic.path).partitions(start, end)
    assert offsets(rows(stream(topic.path, **LOSSY), start, end)) == [5, 6, 7, 8]
    del end["#start"]  # As an older klog wrote it.
    with pytest.raises(DataLossError, match=r"t-0: the partition is new .* 0 to 4 were deleted"):
        stream(topic.path).partitions(start, end)


def test_a_topic_made_again_that_does_not_start_at_0_is_data_loss(
    topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    topic.grow(3)
    start = latest(stream(topic.path), stream(topic.path).initialOffset())
    topic.create_again(9)
    topic.delete_before(5)
    lossy = stream(topic.path, **LOSSY)
    assert read_to_end(lossy, start) == [5, 6, 7, 8]
    created_again, deleted = caplog.messages
    assert created_again.startswith("t: the topic was deleted and created again")
    assert deleted.startswith("t-0: the partition is new to the stream, and offsets 0 to 4 were")
    with pytest.raises(DataLossError, match="t: the topic was deleted and created again"):
        stream(topic.path).latestOffset(start, EVERYTHING)


GAPS = [
    *(transactional(offset, 3) for offset in (0, 1)),
    marker(2, 3, COMMIT),
    plain(7),  # A compaction has removed 3 to 6 and 8 to 10.
    transactional(11, 4),
    marker(12, 4, ABORT),
    plain(13),
    transactional(14, 4),
    marker(15, 4, COMMIT),
]
VISIBLE = [0, 1, 7, 13, 14]


@pytest.fixture(params=["broker", "klog"])
def gaps(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a root whose topic has gaps of markers, aborted records and a compaction."""
    root = write_broker_dir(tmp_path / "gaps", {"t-0": {0: b"".join(GAPS)}})
    if request.param == "klog":
        adopt.run(None, str(root))
    return root


@pytest.mark.parametrize("start", range(17))
def test_no_false_data_loss_on_transactional_or_compacted_gaps(gaps: Path, start: int) -> None:
    expected = [offset for offset in VISIBLE if offset >= start]
    reader = stream(gaps, **starting(start))
    initial = reader.initialOffset()
    assert initial["t"] == {"0": start}
    assert read_to_end(reader, initial) == expected
    for end in range(start, 17):
        options = starting(start) | {"endingOffsets": json.dumps({"t": {"0": end}})}
        assert batch_offsets(gaps, **options) == [o for o in expected if o < end]
        then = initial | {"t": {"0": end}}
        assert offsets(rows(stream(gaps), initial, then)) == [o for o in expected if o < end]


def test_available_now_ends_though_the_last_offset_is_a_control_record(gaps: Path) -> None:
    reader = stream(gaps, maxOffsetsPerTrigger="3")
    reader.prepareForTriggerAvailableNow()
    start, read = reader.initialOffset(), []
    for _ in range(6):
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        read += offsets(rows(reader, start, end))
        start = end
    assert start["t"] == {"0": 16}
    assert read == VISIBLE
    assert reader.latestOffset(start, reader.getDefaultReadLimit()) == start


def test_a_batch_ends_though_the_last_offset_is_a_control_record(gaps: Path) -> None:
    (only,) = batch_ranges(gaps)
    assert only == (0, 16)
    assert batch_offsets(gaps) == VISIBLE
