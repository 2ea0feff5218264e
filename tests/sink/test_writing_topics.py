"""Topics that are made, made again or given partitions while they are written to."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import klog
from klog.connector.sink import committing, known, writing
from klog.connector.sink.known import KnownTopics
from klog.errors import (
    CommitConflictError,
    KlogError,
    LostCommitError,
    OptionError,
)
from tests.sink.writes import options, rows, values, versions, work, write, writer


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin as a process that knows nothing."""
    for module in (writing, committing):  # Spark plans and commits in two processes.
        monkeypatch.setattr(module, "KNOWN", KnownTopics())


def test_a_topic_made_anew_meanwhile_is_another(tmp_path: Path) -> None:
    log = klog.open(tmp_path)
    log.create_topic("t")
    given = options(tmp_path, topic="t")
    done = work(writing.plan(given), rows(1))
    log.delete_topic("t")
    log.create_topic("t")
    with pytest.raises(CommitConflictError, match="made anew meanwhile"):
        committing.commit(given, done)
    write(given, rows(2))
    assert values(tmp_path) == ["2"]


def test_a_root_made_anew_is_looked_at_anew(tmp_path: Path) -> None:
    given = options(tmp_path / "root", topic="t")
    for number in range(3):
        write(given, rows(number), by=writer(number))
    shutil.rmtree(tmp_path / "root")
    write(given, rows("new"), by=writer(0, query="new"))
    assert values(tmp_path / "root") == ["new"]
    assert versions(tmp_path / "root") == 1


def test_two_first_writes_share_the_topic_they_make(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    first, second = (work(writing.plan(given), rows(n)) for n in (1, 2))
    committing.commit(given, first)
    committing.commit(given, second)
    assert values(tmp_path) == ["1", "2"]


@pytest.mark.parametrize(
    ("partitions", "config", "said"),
    [
        (3, {}, "3 partitions now, rows were spread over 1"),
        (1, {"cleanup.policy": "compact"}, "with configs that this write did not go by"),
    ],
)
def test_a_topic_made_otherwise_meanwhile_is_told(
    tmp_path: Path, partitions: int, config: Mapping[str, str], said: str
) -> None:
    given = options(tmp_path, topic="t")
    done = work(writing.plan(given), rows(1))
    klog.open(tmp_path).create_topic("t", partitions, config)
    with pytest.raises(CommitConflictError, match=said):
        committing.commit(given, done)
    write(given, rows(1, key=["a"]))
    assert values(tmp_path) == ["1"]


def test_a_missing_topic_is_refused_where_none_may_be_made(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t", createTopic="false")
    with pytest.raises(OptionError, match="is no klog root, and createTopic=false"):
        writing.plan(given)
    klog.open(tmp_path).create_topic("other")
    with pytest.raises(OptionError, match="there is no topic t in"):
        writing.plan(given)
    by_column = options(tmp_path, createTopic="false")
    with pytest.raises(KlogError, match="row 1 of task 0: there is no topic t in"):
        work(writing.plan(by_column), rows(1, 2, topic=["other", "t"]))


def test_the_topic_that_was_seen_longest_ago_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "MOST_TOPICS", 2)
    given, topics = options(tmp_path), KnownTopics()
    for topic in "abc":
        klog.open(tmp_path).create_topic(topic)
    seen = {topic: topics.load(given, topic) for topic in ("a", "b", "a", "c")}
    states = {topic: (one.state.topic_id, one.state.version) for topic, one in seen.items()}
    for topic, is_kept in (("a", True), ("c", True), ("b", False)):
        assert (topics.last(given, topic, states[topic]) is seen[topic]) == is_kept, topic


def test_partitions_added_meanwhile_are_told(tmp_path: Path) -> None:
    log = klog.open(tmp_path)
    log.create_topic("t")
    given = options(tmp_path, topic="t")
    done = work(writing.plan(given), rows(1))
    log.add_partitions("t", 2)
    with pytest.raises(CommitConflictError, match="rows were spread over 1"):
        committing.commit(given, done)


def test_partitions_added_between_batches(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    write(given, rows(0), by=writer(0))
    klog.open(tmp_path).add_partitions("t", 2)
    write(given, rows(1, partition=[1]), by=writer(1))
    assert values(tmp_path) == ["0", "1"]


@pytest.mark.parametrize("topics", [("t",), ("other", "t")])
def test_a_topic_whose_folder_was_deleted_is_another(
    tmp_path: Path, topics: tuple[str, ...]
) -> None:
    """Another process has made it, or only another topic of the root."""
    given = options(tmp_path / "root", topic="t")
    for number in range(3):
        write(given, rows(number), by=writer(number))
    shutil.rmtree(tmp_path / "root")
    for topic in topics:
        klog.open(tmp_path / "root").create_topic(topic)
    write(given, rows("new"), by=writer(0, query="new"))
    assert values(tmp_path / "root") == ["new"]


def test_a_topic_folder_that_lost_all_commits_is_no_other(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    write(given, rows(0))
    for file in (tmp_path / "_klog/topics/t/log").iterdir():
        file.unlink()
    with pytest.raises(LostCommitError, match="this process, which has loaded it, shows"):
        write(given, rows(1))


def test_what_an_older_copy_lacks_is_told_by_a_process_that_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, root = options(tmp_path / "root", topic="t"), tmp_path / "root"
    write(given, rows(0), by=writer(0))
    shutil.copytree(root, tmp_path / "backup")
    for number in (1, 2, 3):
        write(given, rows(number), by=writer(number))
    shutil.rmtree(root)
    shutil.copytree(tmp_path / "backup", root)
    with pytest.raises(LostCommitError, match=r"001\.json: this .* start this process again"):
        write(given, rows("again"), by=writer(1))
    for module in (writing, committing):
        monkeypatch.setattr(module, "KNOWN", KnownTopics())
    write(given, rows("again"), by=writer(1))
    assert values(root) == ["0", "again"]
    assert versions(root) == 2


@pytest.mark.parametrize("more", [0, 1])
def test_a_process_tells_that_another_has_replaced_the_last_commit_it_knows(
    tmp_path: Path, more: int
) -> None:
    given, topics = options(tmp_path, topic="t"), KnownTopics()
    for number in range(2):
        write(given, rows(number))
    topics.load(given, "t")
    (tmp_path / f"_klog/topics/t/log/{1:020}.json").unlink()
    with pytest.raises(LostCommitError, match="this process, which has loaded it, shows"):
        topics.load(given, "t")
    for _ in range(1 + more):
        klog.open(tmp_path).append("t", rows("another"))
    with pytest.raises(LostCommitError, match=r"001\.json: commit 1 is write .* another was put"):
        topics.load(given, "t")


def test_a_lost_description_is_told_by_a_process_that_knows_the_topic(tmp_path: Path) -> None:
    given, topics = options(tmp_path, topic="t"), KnownTopics()
    write(given, rows(0))
    known = topics.load(given, "t")
    (tmp_path / "_klog/topics/t/topic.json").unlink()
    known = topics.load(given, "t")
    with pytest.raises(KlogError, match=r"topic\.json: this file is lost"):
        known.log.load_cold(known.state)


def test_new_topics_that_collide_are_refused_before_one_is_made(tmp_path: Path) -> None:
    given = options(tmp_path)
    done = work(writing.plan(given), rows(1, 2, 3, topic=["a", "x.y", "x_y"]))
    with pytest.raises(OptionError, match=r"topics x.y and x_y collide"):
        committing.commit(given, done)
    assert klog.open(tmp_path).topics() == []
    klog.open(tmp_path).create_topic("z_b")
    with pytest.raises(KlogError, match=r"row 0 of task 0: topic z.b collides with topic z_b"):
        work(writing.plan(given), rows(1, topic=["z.b"]))


def test_a_topic_whose_rows_are_all_refused_is_not_made(tmp_path: Path) -> None:
    given = options(tmp_path, deadLetterTopic="dead")
    write(given, rows(1, topic=["typo"], partition=[7]), by=writer(0))
    assert klog.open(tmp_path).topics() == ["dead"]
