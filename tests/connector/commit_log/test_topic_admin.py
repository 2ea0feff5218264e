"""The topics of a root: what each change commits, what is refused, and what it costs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from klog.connector.commit_log import (
    checkpoint_writer,
    commit_builders,
    commit_expiration,
)
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.commit_log.topic_admin import PartitionDescription, TopicAdmin
from klog.errors import CommitConflictError, LostCommitError, OptionError
from tests.connector.commit_log.memory_logs import ROOT, Clock, CountingStore, append, topic_log


def test_a_topic_is_made_as_it_was_asked_for(topics: TopicAdmin) -> None:
    state = topics.create("orders", 3, {"retention.ms": " 1000 ", "compression.type": "none"})
    assert state.log_end == (0, 0, 0)
    assert state.config == {"retention.ms": "1000", "compression.type": "uncompressed"}
    assert state.topic_id == "id 0"
    (commit,) = topics.history("orders")
    assert (commit.operation, commit.engine) == ("create-topic", "test")
    assert topics.names() == ["orders"]


def test_requests_of_a_new_topic_and_of_a_name_with_a_dot(
    topics: TopicAdmin, store: CountingStore
) -> None:
    root = find_root(ROOT)
    assert root is not None
    assert store.requests == {"read": 1}
    TopicAdmin(root, "test", random_uuid).create("orders")
    # The root; no topic.json; no checkpoint, no commit listed or read, no expiration
    # file; topic.json is put; no commit above the one that is put, again no expiration file.
    assert store.requests == {"read": 4, "create": 2, "list": 4}
    store.requests.clear()
    topics.create("or.ders")
    assert store.requests == {"read": 3, "create": 2, "list": 5}


def test_partitions_default_to_those_of_the_root(store: CountingStore) -> None:
    assert TopicAdmin(find_or_create_root(ROOT, "a cluster")).create("one").partitions == 1
    admin = TopicAdmin(find_or_create_root("/other", "a cluster", num_partitions=6))
    assert admin.create("six").partitions == 6
    assert admin.create("two", partitions=2).partitions == 2
    again = find_root("/other")
    assert again is not None
    assert again.num_partitions == 6


@pytest.mark.parametrize(
    ("name", "partitions", "config", "words"),
    [
        ("a/b", 1, {}, "'a/b' is not a topic name"),
        ("..", 1, {}, "is not a topic name"),
        ("x" * 250, 1, {}, "at most 249"),
        ("x", 0, {}, "from 1 to 100,000"),
        ("x", 100_001, {}, "from 1 to 100,000"),
        ("x", 1, {"segment.byte": "1"}, "did you mean segment.bytes?"),
        ("x", 1, {"min.insync.replicas": "1"}, "klog has no replicas"),
        ("x", 1, {"segment.bytes": "many"}, "segment.bytes: must be a whole number"),
    ],
)
def test_what_is_wrong_in_itself_is_refused_before_the_store_is_asked(
    topics: TopicAdmin,
    store: CountingStore,
    name: str,
    partitions: int,
    config: dict[str, str],
    words: str,
) -> None:
    with pytest.raises(OptionError, match=re.escape(words)):
        topics.create(name, partitions, config)
    assert not store.requests


def test_a_topic_that_is_there(topics: TopicAdmin) -> None:
    first = topics.create("orders", 2)
    with pytest.raises(OptionError, match=r"topic orders already exists in /root, with id id 0"):
        topics.create("orders", 4)
    ensured = topics.ensure("orders", 4)
    assert (ensured.state.topic_id, ensured.is_created) == (first.topic_id, False)
    assert topics.ensure("payments").is_created
    assert topics.describe("orders").version == 0


def test_names_that_a_broker_could_not_tell_apart(topics: TopicAdmin) -> None:
    topics.create("a.b_c")
    with pytest.raises(OptionError, match=r"a_b\.c collides with topic a\.b_c"):
        topics.create("a_b.c")
    topics.delete("a.b_c")
    topics.create("a_b.c")
    topics.create("a-b.c")


def test_a_topic_created_again_has_another_id_in_the_same_log(topics: TopicAdmin) -> None:
    old = topics.create("orders", 3)
    topics.delete("orders")
    with pytest.raises(OptionError, match="topic orders of /root was deleted"):
        topics.describe("orders")
    with pytest.raises(OptionError, match="was deleted"):
        topics.delete("orders")
    assert topics.names() == []
    new = topics.create("orders", 1)
    assert (new.version, new.partitions) == (2, 1)
    assert new.topic_id != old.topic_id
    operations = [commit.operation for commit in topics.history("orders")]
    assert operations == ["create-topic", "delete-topic", "create-topic"]


def test_a_topic_that_never_was(topics: TopicAdmin, store: CountingStore) -> None:
    topics.create("orders")
    for ask in (topics.describe, topics.delete, topics.history):
        with pytest.raises(OptionError, match="no topic ordesr in /root; did you mean orders"):
            ask("ordesr")
    with pytest.raises(OptionError, match="klog topics list"):
        topics.add_partitions("payments", 2)
    assert not [path for path in store.files if "ordesr" in path or "payments" in path]


def test_a_hint_names_a_topic_that_is_there(topics: TopicAdmin) -> None:
    for name in ("orders", "order-lines"):
        topics.create(name)
    topics.delete("orders")
    with pytest.raises(OptionError, match=r"no topic order in /root; did you mean order-lines\?"):
        topics.describe("order")
    topics.delete("order-lines")
    with pytest.raises(OptionError, match=r"no topic order in /root; `klog topics list`"):
        topics.describe("order")


def test_a_hint_may_name_a_topic_that_cannot_be_read(
    topics: TopicAdmin, store: CountingStore
) -> None:
    topics.create("orders")
    store.files[f"{ROOT}/_klog/topics/orders/log/{0:020d}.json"] = b"{}"
    with pytest.raises(OptionError, match=r"did you mean orders\?"):
        topics.describe("order")


def test_a_hint_is_not_the_name_that_was_given(topics: TopicAdmin, store: CountingStore) -> None:
    """A writer that was killed before a topic's first commit leaves its `topic.json`."""
    topics.create("orders")
    described = f"{ROOT}/_klog/topics/{{}}/topic.json"
    store.files[described.format("ordesr")] = store.files[described.format("orders")]
    with pytest.raises(OptionError, match=r"no topic ordesr in /root; did you mean orders\?"):
        topics.describe("ordesr")
    store.files[described.format("payments")] = store.files[described.format("orders")]
    with pytest.raises(OptionError, match=r"no topic payments in /root; `klog topics list`"):
        topics.describe("payments")


def test_partitions_only_grow(topics: TopicAdmin) -> None:
    topics.create("orders", 2)
    assert topics.add_partitions("orders", 5).log_end == (0,) * 5
    for fewer in (5, 1):
        with pytest.raises(OptionError, match=f"has 5 partitions, which cannot become {fewer}"):
            topics.add_partitions("orders", fewer)
    with pytest.raises(OptionError, match="from 1 to"):
        topics.add_partitions("orders", 10**9)


def test_configs_are_set_and_unset(topics: TopicAdmin) -> None:
    topics.create("orders", 1, {"retention.ms": "1"})
    state = topics.alter_config("orders", {"segment.ms": "5"}, ["retention.ms"])
    assert state.config == {"segment.ms": "5"}
    assert topics.alter_config("orders", {"segment.ms": "5"}, ["retention.ms"]) == state
    assert topics.describe("orders").version == 1  # No change is no commit.


def test_a_config_of_a_newer_klog_stays_until_it_is_unset(topics: TopicAdmin) -> None:
    topic_id = topics.create("orders").topic_id
    log = topics.root.log("orders")
    build = commit_builders.alter_config(topic_id, {}, {"not.yet": "x", "segment.ms": "5"})
    log.commit(log.load(), build, CommitInfo("another klog's", "alter-config", "klog 9"))
    assert topics.alter_config("orders", {"segment.ms": "6"}).config["not.yet"] == "x"
    with pytest.raises(OptionError, match=r"not\.yet: not a topic config"):
        topics.alter_config("orders", {"not.yet": "y"})
    assert topics.alter_config("orders", {}, ["not.yet"]).config == {"segment.ms": "6"}


@pytest.mark.parametrize(
    ("change", "unset", "words"),
    [
        ({"flush.ms": "1"}, [], "flush.ms: does nothing in a klog topic"),
        ({}, ["flush.ms"], "flush.ms: does nothing"),
        ({}, ["retention"], "did you mean retention.ms?"),
        ({"segment.ms": "1"}, ["segment.ms"], "segment.ms: set and unset at once"),
        ({"max.compaction.lag.ms": "9"}, [], "min.compaction.lag.ms: 10 is above"),
    ],
)
def test_configs_that_are_refused(
    topics: TopicAdmin, change: dict[str, str], unset: list[str], words: str
) -> None:
    topics.create("orders", 1, {"min.compaction.lag.ms": "10"})
    with pytest.raises(OptionError, match=re.escape(words)):
        topics.alter_config("orders", change, unset)
    assert topics.describe("orders").version == 0


class Interleaves(CountingStore):
    """Before a commit is put, another makes theirs."""

    other: Any = None

    def put_if_absent(self, path: str, data: bytes) -> Any:
        if self.other is not None and "/log/" in path:
            other, self.other = self.other, None
            other()
        return super().put_if_absent(path, data)


@pytest.fixture
def racing(topics: TopicAdmin, store: CountingStore) -> tuple[TopicAdmin, Interleaves]:
    slow = Interleaves(store.files)
    return TopicAdmin(replace(topics.root, store=slow), "test", topics.new_id), slow


def test_of_two_who_make_a_topic_one_is_told(racing: tuple[TopicAdmin, Interleaves]) -> None:
    topics, store = racing
    store.other = lambda: topics.create("orders", 7)
    with pytest.raises(OptionError, match="already exists"):
        topics.create("orders", 2)
    assert len(topics.describe("orders").partitions) == 7


def test_two_right_changes_do_not_make_a_wrong_config(
    racing: tuple[TopicAdmin, Interleaves],
) -> None:
    topics, store = racing
    topics.create("orders")
    store.other = lambda: topics.alter_config("orders", {"max.compaction.lag.ms": "9"})
    with pytest.raises(OptionError, match=r"is above max\.compaction\.lag\.ms 9"):
        topics.alter_config("orders", {"min.compaction.lag.ms": "10"})
    assert topics.describe("orders").config == {"max.compaction.lag.ms": "9"}


def test_a_config_that_another_changed_is_a_conflict(
    racing: tuple[TopicAdmin, Interleaves],
) -> None:
    topics, store = racing
    topics.create("orders")
    store.other = lambda: topics.alter_config("orders", {"segment.ms": "1"})
    with pytest.raises(CommitConflictError, match=r"topic orders of /root: config segment\.ms was"):
        topics.alter_config("orders", {"segment.ms": "2"})


def test_a_topic_that_was_deleted_meanwhile(racing: tuple[TopicAdmin, Interleaves]) -> None:
    topics, store = racing
    topics.create("orders")
    store.other = lambda: topics.delete("orders")
    with pytest.raises(CommitConflictError, match="topic orders of /root: the topic was deleted"):
        topics.add_partitions("orders", 2)
    topics.create("orders")
    store.other = lambda: topics.delete("orders")
    assert topics.delete("orders").topic_id == ""  # Both wanted it gone.


def test_describe_counts_by_partition(topics: TopicAdmin, store: CountingStore) -> None:
    topics.create("orders", 3)
    log = topic_log(store)
    append(log, append(log, log.load(), (0, 3), (2, 1)), (2, 4))
    description = topics.describe("orders")
    assert description.partitions == (
        PartitionDescription(0, 0, 3, 1, 0),
        PartitionDescription(1, 0, 0, 0, 0),
        PartitionDescription(2, 0, 5, 2, 0),
    )
    assert (description.topic_id, description.version) == ("id 0", 2)


def test_history_ends_where_commits_expired(topics: TopicAdmin, store: CountingStore) -> None:
    topics.create("orders", 1)
    clock = Clock()
    log = topic_log(store, clock)
    state = log.load()
    for _ in range(4):
        clock.now_ms += 1000
        state = append(log, state, (0, 1))
        if state.version == 2:
            checkpoint_writer.write_checkpoint(log, state)
    assert commit_expiration.expire_log(log, retention_ms=2000) == 2
    assert [commit.version for commit in topics.history("orders")] == [4, 3]
    store.delete(log.paths.commit(3))
    with pytest.raises(LostCommitError, match=r"log/0{19}3\.json: this commit is lost.*0004\.json"):
        list(topics.history("orders"))


def test_a_stray_file_among_the_topics_is_not_a_topic(tmp_path: Path) -> None:
    admin = TopicAdmin(find_or_create_root(str(tmp_path / "root"), "a cluster"))
    admin.create("orders")
    (tmp_path / "root" / "_klog" / "topics" / ".DS_Store").write_bytes(b"left by a desktop")
    assert admin.root.topic_names() == admin.names() == ["orders"]
    assert admin.create("_DS_Store").topic_id  # It collides with nothing.
    for use in (admin.describe, admin.delete):
        with pytest.raises(OptionError, match=r"no topic \.DS_Store.*is a file"):
            use(".DS_Store")
