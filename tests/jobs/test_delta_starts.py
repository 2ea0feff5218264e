"""Where a copy of a Delta table starts, and which version its topic is at."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import klog
from klog.connector.options.write_options import parse_write_options
from klog.errors import DataLossError, KlogError, OptionError
from klog.jobs.copying_from_delta.start_version import (
    Start,
    TableBounds,
    parse_start,
    plan_start,
)
from klog.jobs.copying_from_delta.topic_position import (
    Position,
    TopicPosition,
    transactional_id,
)

TOPIC = "orders"
TABLE = TableBounds("t", "an-id", lambda: 3, 9)
NEW = Position()


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("snapshot", Start(snapshot_version=9)),
        ("latest", Start(done_version=9)),
        ("earliest", Start(done_version=2)),
        ("5", Start(done_version=4)),
        ("10", Start(done_version=9)),
    ],
)
def test_starts_of_a_new_copy(text: str, start: Start) -> None:
    assert plan_start(NEW, TABLE, text, None) == start
    # Once there is a position, only --restart-at counts.
    assert plan_start(Position(version=7), TABLE, text, None) == Start()


def test_version_0_is_before_every_position() -> None:
    table = TableBounds("t", "an-id", lambda: 0, 9)
    assert plan_start(NEW, table, "earliest", None) == Start()


@pytest.mark.parametrize(("text", "error"), [("2", "3 is the earliest"), ("11", "is at version 9")])
def test_versions_that_the_table_does_not_have(text: str, error: str) -> None:
    with pytest.raises(OptionError, match=f"--starting-version {text}: .*{error}"):
        plan_start(NEW, TABLE, text, None)
    with pytest.raises(OptionError, match=f"--restart-at {text}: .*{error}"):
        plan_start(Position(version=7), TABLE, "snapshot", text)


def test_a_table_whose_versions_are_all_expired() -> None:
    table = TableBounds("t", "an-id", lambda: 10, 9)
    with pytest.raises(OptionError, match=r"--starting-version earliest: .* Give snapshot"):
        plan_start(NEW, table, "earliest", None)


@pytest.mark.parametrize("text", ["", "-1", "1.0", "Latest", "1" * 19])
def test_texts_of_a_start(text: str) -> None:
    with pytest.raises(OptionError, match="--restart-at: must be one of snapshot, earliest"):
        parse_start("--restart-at", text)


def test_a_snapshot_that_is_not_complete_is_completed() -> None:
    pending = Position(version=4, snapshot_version=6)
    assert plan_start(pending, TABLE, "earliest", None) == Start(snapshot_version=6)


def test_restarts_go_only_forward() -> None:
    at_7, at_9 = Position(version=7), Position(version=9)
    assert plan_start(at_7, TABLE, "snapshot", "snapshot") == Start(snapshot_version=9)
    assert plan_start(at_7, TABLE, "snapshot", "8") == Start()
    assert plan_start(at_7, TABLE, "snapshot", "9") == Start(done_version=8)
    for position, text in ((at_7, "7"), (at_9, "snapshot"), (at_9, "9")):
        with pytest.raises(OptionError, match="its versions only go up"):
            plan_start(position, TABLE, "snapshot", text)
    assert plan_start(at_9, TABLE, "snapshot", "latest") == Start()


@pytest.mark.parametrize("text", ["earliest", "0"])
def test_version_0_is_before_the_topic(text: str) -> None:
    table = TableBounds("t", "an-id", lambda: 0, 9)
    with pytest.raises(OptionError, match="its versions only go up"):
        plan_start(Position(version=7), table, "snapshot", text)
    with pytest.raises(OptionError, match="a snapshot of version 9 was begun"):
        plan_start(Position(snapshot_version=9), table, "snapshot", text)
    assert plan_start(NEW, table, "snapshot", text) == Start()


@pytest.mark.parametrize("version", [None, 4])
def test_a_restart_before_a_snapshot_that_is_not_complete(version: int | None) -> None:
    pending = Position(version, snapshot_version=9)
    for text in ("6", "9"):
        with pytest.raises(OptionError, match=r"snapshot of version 9 was begun .* from 10 on"):
            plan_start(pending, TABLE, "snapshot", text)
    for text in ("latest", "10"):
        assert plan_start(pending, TABLE, "snapshot", text) == Start(done_version=9)
    assert plan_start(pending, TABLE, "snapshot", "snapshot") == Start(snapshot_version=9)


def test_another_table_is_refused_unless_the_copy_starts_again() -> None:
    position = Position(other_tables=("old-id",))
    with pytest.raises(KlogError, match="id an-id, and the topic has versions of old-id"):
        plan_start(position, TABLE, "latest", None)
    assert plan_start(position, TABLE, "latest", "snapshot") == Start(snapshot_version=9)
    known = Position(version=8, other_tables=("old-id",))
    assert plan_start(known, TABLE, "snapshot", None) == Start()


def test_a_table_that_is_older_than_its_topic_is_data_loss() -> None:
    with pytest.raises(DataLossError, match="is at version 9, and the topic has version 10"):
        plan_start(Position(version=10), TABLE, "snapshot", None)


class TestTopicPosition:
    """The position in a topic's commit log."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return str(tmp_path / "root")

    def position(self, root: str, table_id: str = "an-id", **options: str) -> TopicPosition:
        texts = {"path": root, "topic": TOPIC, "numPartitions": "2", **options}
        return TopicPosition(parse_write_options(texts), table_id)

    def write(self, root: str, version: int) -> None:
        """Write a version as the job's writes do."""
        klog.open(root).append(
            TOPIC,
            pa.table({"value": ["v"]}),
            transactional_id=transactional_id("an-id"),
            transaction_version=version,
        )

    def test_nothing_is_there(self, root: str) -> None:
        position = self.position(root)
        assert position.load() == NEW
        assert not Path(root).exists()
        klog.open(root).create_topic("other")
        assert position.load() == NEW

    def test_the_first_commit_creates_the_topic(self, root: str) -> None:
        position = self.position(root)
        assert position.advance(4, NEW) == Position(version=4) == position.load()
        assert len(klog.open(root).describe(TOPIC).partitions) == 2
        with pytest.raises(OptionError, match="createTopic=false"):
            self.position(f"{root}2", createTopic="false").advance(4, NEW)

    def test_the_first_of_two_runs_fixes_the_snapshot(self, root: str) -> None:
        first, second = self.position(root), self.position(root)
        seen = second.load()
        assert first.fix_snapshot(5, NEW).snapshot_version == 5
        assert second.fix_snapshot(6, seen).snapshot_version == 5
        assert second.advance(6, seen) == Position(snapshot_version=5)
        self.write(root, 5)
        assert first.load() == Position(version=5)

    def test_a_position_moves_once(self, root: str) -> None:
        first, second = self.position(root), self.position(root)
        seen = first.advance(3, NEW)
        self.write(root, 4)
        assert second.advance(8, seen).version == 4
        assert second.advance(8, second.load()).version == 8
        versions = len(klog.open(root).history(TOPIC))
        assert versions == 4

    def test_a_restart_fixes_a_snapshot_after_the_position(self, root: str) -> None:
        position = self.position(root)
        seen = position.advance(3, NEW)
        seen = position.fix_snapshot(6, seen)
        assert seen == Position(version=3, snapshot_version=6)
        assert position.fix_snapshot(8, seen) == Position(version=3, snapshot_version=8)
        self.write(root, 8)
        assert position.load() == Position(version=8)

    def test_a_topic_that_is_created_again_is_at_nothing(self, root: str) -> None:
        position = self.position(root)
        position.advance(3, NEW)
        log = klog.open(root)
        log.delete_topic(TOPIC)
        assert position.load() == NEW
        log.create_topic(TOPIC)
        assert position.load() == NEW
        other = self.position(root, "new-id")
        position.fix_snapshot(3, NEW)
        assert other.load() == Position(other_tables=("an-id",))

    def test_a_topic_that_is_another_one(self, root: str) -> None:
        """It is not created again with a position that only the earlier one had reached."""
        position = self.position(root)
        seen = position.advance(3, NEW)
        log = klog.open(root)
        log.delete_topic(TOPIC)
        for create in (False, True):
            if create:
                log.create_topic(TOPIC)
            with pytest.raises(DataLossError, match="was deleted or created again"):
                position.advance(4, seen)
        assert position.load() == NEW
        assert log.history(TOPIC)[0].operation == "create-topic"

    def test_the_topic_of_rejected_rows(self, root: str) -> None:
        position = self.position(root, deadLetterTopic="rejected")
        position.ensure_dead_letter_topic()
        assert not Path(root).exists()
        position.advance(3, NEW)
        for _ in range(2):
            position.ensure_dead_letter_topic()
        assert klog.open(root).topics() == [TOPIC, "rejected"]

    def test_which_snapshot_comes_after_earlier_rows(self) -> None:
        assert not Position(snapshot_version=3).has_earlier_rows
        assert Position(version=1, snapshot_version=3).has_earlier_rows
        assert Position(snapshot_version=3, other_tables=("old-id",)).has_earlier_rows
