"""Topics that are created, re-created or get partitions while they are written to."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import klog
from klog.connector.sink import topic_state_cache, write_commit
from klog.connector.sink.topic_state_cache import TopicStateCache
from klog.connector.sink.write_plan import load_topic_plan, load_write_plan
from klog.errors import (
    CommitConflictError,
    KlogError,
    LostCommitError,
    OptionError,
)
from klog.logformat.codecs.codec_names import CODEC_NAMES
from tests.connector.sink.multi_task_writes import (
    forget_topics,
    rows,
    stage,
    values,
    versions,
    write,
    write_options,
    writer,
)


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_topics(monkeypatch)


def test_topic_re_created_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    log = klog.open(tmp_path)
    log.create_topic("t")
    options = write_options(tmp_path, topic="t")
    messages = stage(load_write_plan(options), rows(1))
    log.delete_topic("t")
    log.create_topic("t")
    with pytest.raises(CommitConflictError, match=r"the topic was .* meanwhile: its id is"):
        write_commit.commit(options, messages)
    write(options, rows(2))
    assert values(tmp_path) == ["2"]


def test_re_created_root_is_loaded_again(tmp_path: Path) -> None:
    options = write_options(tmp_path / "root", topic="t")
    for number in range(3):
        write(options, rows(number), by=writer(number))
    shutil.rmtree(tmp_path / "root")
    write(options, rows("new"), by=writer(0, query="new"))
    assert values(tmp_path / "root") == ["new"]
    assert versions(tmp_path / "root") == 1


def test_two_first_writes_share_the_topic_that_one_creates(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    first, second = (stage(load_write_plan(options), rows(n)) for n in (1, 2))
    write_commit.commit(options, first)
    write_commit.commit(options, second)
    assert values(tmp_path) == ["1", "2"]


@pytest.mark.parametrize(
    ("partitions", "config", "message"),
    [
        (3, {}, "3 partitions now, rows were spread over 1"),
        (1, {"cleanup.policy": "compact"}, "with configs that this write did not use"),
    ],
)
def test_topic_created_otherwise_meanwhile_is_a_conflict(
    tmp_path: Path, partitions: int, config: Mapping[str, str], message: str
) -> None:
    options = write_options(tmp_path, topic="t")
    messages = stage(load_write_plan(options), rows(1))
    klog.open(tmp_path).create_topic("t", partitions, config)
    with pytest.raises(CommitConflictError, match=message):
        write_commit.commit(options, messages)
    write(options, rows(1, key=["a"]))
    assert values(tmp_path) == ["1"]


def test_missing_topic_is_refused_without_create_topic(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t", createTopic="false")
    with pytest.raises(OptionError, match="is not a klog root: createTopic=false"):
        load_write_plan(options)
    klog.open(tmp_path).create_topic("other")
    with pytest.raises(OptionError, match="there is no topic t in"):
        load_write_plan(options)
    by_column = write_options(tmp_path, createTopic="false")
    with pytest.raises(KlogError, match="row 1 of task 0: there is no topic t in"):
        stage(load_write_plan(by_column), rows(1, 2, topic=["other", "t"]))


def test_cache_drops_the_topic_used_longest_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_state_cache, "MAX_TOPICS", 2)
    options, topics = write_options(tmp_path), TopicStateCache()
    for topic in "abc":
        klog.open(tmp_path).create_topic(topic)
    loaded = {topic: topics.load(options, topic) for topic in ("a", "b", "a", "c")}
    states = {
        topic: (cached.state.topic_id, cached.state.version) for topic, cached in loaded.items()
    }
    for topic, is_cached in (("a", True), ("c", True), ("b", False)):
        cached = topics.load_unless_at(options, topic, *states[topic])
        assert (cached is loaded[topic]) == is_cached, topic


def test_partitions_added_meanwhile_are_a_conflict(tmp_path: Path) -> None:
    log = klog.open(tmp_path)
    log.create_topic("t")
    options = write_options(tmp_path, topic="t")
    messages = stage(load_write_plan(options), rows(1))
    log.add_partitions("t", 2)
    with pytest.raises(CommitConflictError, match="rows were spread over 1"):
        write_commit.commit(options, messages)


def test_partitions_added_between_batches_are_used(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    write(options, rows(0), by=writer(0))
    klog.open(tmp_path).add_partitions("t", 2)
    write(options, rows(1, partition=[1]), by=writer(1))
    assert values(tmp_path) == ["0", "1"]


@pytest.mark.parametrize("topics", [("t",), ("other", "t")])
def test_topic_whose_folder_was_deleted_is_loaded_again(
    tmp_path: Path, topics: tuple[str, ...]
) -> None:
    """Another process has re-created it, or only another topic of the root."""
    options = write_options(tmp_path / "root", topic="t")
    for number in range(3):
        write(options, rows(number), by=writer(number))
    shutil.rmtree(tmp_path / "root")
    for topic in topics:
        klog.open(tmp_path / "root").create_topic(topic)
    write(options, rows("new"), by=writer(0, query="new"))
    assert values(tmp_path / "root") == ["new"]


def test_topic_folder_without_commits_is_a_lost_log(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    write(options, rows(0))
    for file in (tmp_path / "_klog/topics/t/log").iterdir():
        file.unlink()
    with pytest.raises(LostCommitError, match="this process, which has loaded it, shows"):
        write(options, rows(1))


def test_root_restored_from_an_older_copy_is_refused_by_a_process_that_knows_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, root = write_options(tmp_path / "root", topic="t"), tmp_path / "root"
    write(options, rows(0), by=writer(0))
    shutil.copytree(root, tmp_path / "backup")
    for number in (1, 2, 3):
        write(options, rows(number), by=writer(number))
    shutil.rmtree(root)
    shutil.copytree(tmp_path / "backup", root)
    with pytest.raises(LostCommitError, match=r"001\.json: this .* start this process again"):
        write(options, rows("again"), by=writer(1))
    forget_topics(monkeypatch)
    write(options, rows("again"), by=writer(1))
    assert values(root) == ["0", "again"]
    assert versions(root) == 2


@pytest.mark.parametrize("more", [0, 1])
def test_replaced_last_commit_is_refused_by_a_process_that_knows_it(
    tmp_path: Path, more: int
) -> None:
    options, topics = write_options(tmp_path, topic="t"), TopicStateCache()
    for number in range(2):
        write(options, rows(number))
    topics.load(options, "t")
    (tmp_path / f"_klog/topics/t/log/{1:020}.json").unlink()
    with pytest.raises(LostCommitError, match="this process, which has loaded it, shows"):
        topics.load(options, "t")
    for _ in range(1 + more):
        klog.open(tmp_path).append("t", rows("another"))
    with pytest.raises(LostCommitError, match=r"001\.json: commit 1 is write .* another was put"):
        topics.load(options, "t")


def test_lost_topic_description_is_refused_by_a_process_that_knows_the_topic(
    tmp_path: Path,
) -> None:
    options, topics = write_options(tmp_path, topic="t"), TopicStateCache()
    write(options, rows(0))
    cached = topics.load(options, "t")
    (tmp_path / "_klog/topics/t/topic.json").unlink()
    cached = topics.load(options, "t")
    with pytest.raises(KlogError, match=r"topic\.json: this file is lost"):
        cached.log.load_cold(cached.state)


def test_colliding_new_topics_are_refused_before_one_is_created(tmp_path: Path) -> None:
    options = write_options(tmp_path)
    messages = stage(load_write_plan(options), rows(1, 2, 3, topic=["a", "x.y", "x_y"]))
    with pytest.raises(OptionError, match=r"topics x.y and x_y collide"):
        write_commit.commit(options, messages)
    assert klog.open(tmp_path).topics() == []
    klog.open(tmp_path).create_topic("z_b")
    with pytest.raises(KlogError, match=r"row 0 of task 0: topic z.b collides with topic z_b"):
        stage(load_write_plan(options), rows(1, topic=["z.b"]))


def test_topic_whose_rows_are_all_rejected_is_not_created(tmp_path: Path) -> None:
    options = write_options(tmp_path, deadLetterTopic="dead")
    write(options, rows(1, topic=["typo"], partition=[7]), by=writer(0))
    assert klog.open(tmp_path).topics() == ["dead"]


@pytest.mark.parametrize(
    ("config", "max_batch_bytes"), [({}, 134217728), ({"max.message.bytes": "5000"}, 5000)]
)
def test_options_of_a_write_do_not_apply_to_its_dead_letter_topic(
    tmp_path: Path, config: dict[str, str], max_batch_bytes: int
) -> None:
    """docs/write-plan.md, Dead letters."""
    klog.open(tmp_path).create_topic("dead", config={"segment.bytes": "300000000", **config})
    options = {"partitioner": "round-robin", "compression.type": "gzip", "max.message.bytes": 900}
    plan = load_write_plan(write_options(tmp_path, topic="t", deadLetterTopic="dead", **options))
    settings = load_topic_plan(plan, "dead").settings
    assert (settings.partitioner, CODEC_NAMES[settings.codec]) == ("murmur2", "zstd")
    assert settings.max_batch_bytes == max_batch_bytes
    assert load_topic_plan(plan, "other").settings.partitioner == "round-robin"
