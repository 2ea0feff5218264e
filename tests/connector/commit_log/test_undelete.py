"""A deleted topic is brought back as it was, and refused where that would be something else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
    commit_builders,
    topic_undelete,
    topic_vacuum,
)
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_expiration import expire_log
from klog.connector.commit_log.commit_json import decode_commit, encode_commit
from klog.connector.commit_log.past_versions import load_version
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_restore import existing_segments, restore_log
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.commit_log.topic_undelete import undelete_log
from klog.errors import (
    CommitConflictError,
    KlogError,
    OptionError,
    ProducerFencedError,
    RestoreRefusedError,
)
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    TOPIC,
    attempt,
    checkpoint_and_expire,
    plain,
    same,
)
from tests.connector.commit_log.test_restore_commit import RestoredLog

DELETED = ("version", "timestamp_ms", "writes", "live", "removed", "vacuum_version")
"""What a state has of the log rather than of the topic."""


@pytest.fixture
def deleted_log() -> RestoredLog:
    """Return a log whose topic had records, a hole, a restore, a config and writers."""
    topic = RestoredLog()
    topic.append((0, 3), (1, 2), writer=append_commit.Writer("loader", 4, "q", "r1"))
    topic.append((0, 3))
    topic.append((0, 2), writer=append_commit.Writer("loader", 5, "q", "r2"))
    topic.restore(2)
    topic.append((0, 4))
    topic.delete_records({1: 1})
    topic.commit(commit_builders.alter_config("an id", {}, {"retention.ms": "7"}), "alter-config")
    topic.commit(commit_builders.add_partitions("an id", 3), "add-partitions")
    return topic


def delete(topic: RestoredLog) -> TopicState:
    """Delete the topic; return the state before."""
    before = topic.state
    topic.commit(commit_builders.delete_topic(before.topic_id), "delete-topic")
    return before


def of_the_topic(state: TopicState) -> dict[str, object]:
    rows = state.segments.to_pylist()
    return {k: v for k, v in plain(state).items() if k not in DELETED} | {"rows": rows}


def test_it_is_as_it_was(deleted_log: RestoredLog) -> None:
    before = delete(deleted_log)
    assert before.holes
    assert before.restores
    undelete_log(deleted_log.log, deleted_log.state)
    state = deleted_log.state
    assert of_the_topic(state) == of_the_topic(before)
    assert state.version == before.version + 2
    assert not set(state.removed["file"].to_pylist()) & set(state.segments["file"].to_pylist())


def test_every_load_agrees(deleted_log: RestoredLog) -> None:
    before = delete(deleted_log)
    undelete_log(deleted_log.log, deleted_log.state)
    log, state = deleted_log.log, deleted_log.state
    commits = [log.read(version) for version in range(state.version + 1)]
    assert same(replay(TopicState(), [commit for commit in commits if commit]), state)
    assert same(log.load(before), state)
    commit = commits[-1]
    assert commit is not None
    plain_commit = replace(commit, size_bytes=0)
    decoded = decode_commit(encode_commit(commit), TOPIC, commit.version)
    assert replace(decoded, size_bytes=0) == plain_commit
    assert b'"format": 4, "since": "0.3.0"' in encode_commit(commit)
    deleted_log.append((2, 1))
    deleted_log.clock.now_ms += DAY_MS
    assert checkpoint_and_expire(log) == state.version
    assert of_the_topic(load_version(log, state.version, log.load())) == of_the_topic(state)


def test_writers_go_on(deleted_log: RestoredLog) -> None:
    """A batch that was committed is not written again, and a fenced run stays fenced."""
    delete(deleted_log)
    undelete_log(deleted_log.log, deleted_log.state)
    before = deleted_log.state
    again = append_commit.Writer("loader", 5, "q", "r2")
    assert deleted_log.append((0, 2), writer=again).version == before.version
    with pytest.raises(ProducerFencedError):
        deleted_log.append((0, 2), writer=append_commit.Writer("loader", 6, "q", "r1"))
    state = deleted_log.append((0, 5))
    assert state.log_end[0] == before.log_end[0] + 5


def test_a_write_of_before_the_deletion_lands(deleted_log: RestoredLog) -> None:
    write = append_commit.append(deleted_log.staged((0, 5)))
    before = delete(deleted_log)
    with pytest.raises(CommitConflictError, match="deleted meanwhile"):
        deleted_log.commit(write, "append")
    undelete_log(deleted_log.log, deleted_log.state)
    assert deleted_log.commit(write, "append").log_end[0] == before.log_end[0] + 5


def test_it_can_be_deleted_and_undeleted_again(deleted_log: RestoredLog) -> None:
    before = delete(deleted_log)
    undelete_log(deleted_log.log, deleted_log.state)
    deleted_log.append((1, 7))
    again = delete(deleted_log)
    undelete_log(deleted_log.log, deleted_log.state)
    assert of_the_topic(deleted_log.state) == of_the_topic(again)
    assert restore_log(deleted_log.log, deleted_log.state, before.version).has_changes


def test_after_a_vacuum_that_took_nothing(deleted_log: RestoredLog) -> None:
    before = delete(deleted_log)
    deleted_log.clock.now_ms += DAY_MS // 2
    topic_vacuum.vacuum(deleted_log.log, attempt("vacuum"))
    undelete_log(deleted_log.log, deleted_log.state)
    assert of_the_topic(deleted_log.state) == of_the_topic(before)


def test_a_vacuumed_file_is_named(deleted_log: RestoredLog) -> None:
    before = delete(deleted_log)
    deleted_log.clock.now_ms += 2 * DAY_MS
    topic_vacuum.vacuum(deleted_log.log, attempt("vacuum"))
    state = deleted_log.state
    with pytest.raises(RestoreRefusedError) as refused:
        undelete_log(deleted_log.log, state)
    assert "vacuum has deleted, or is about to delete, orders-" in str(refused.value)
    assert all(file in str(refused.value) for file in before.segments["file"].to_pylist()[:3])
    assert same(deleted_log.state, state)


def test_a_missing_file_is_named(deleted_log: RestoredLog) -> None:
    before = delete(deleted_log)
    file = before.segments["file"].to_pylist()[0]
    deleted_log.store.delete(deleted_log.log.paths.data(file))
    with pytest.raises(RestoreRefusedError, match=f"no complete copy of {file} or"):
        undelete_log(deleted_log.log, deleted_log.state)


def test_a_topic_that_exists(deleted_log: RestoredLog) -> None:
    with pytest.raises(OptionError, match="topic orders exists, with id an id: only a topic"):
        undelete_log(deleted_log.log, deleted_log.state)
    delete(deleted_log)
    build = commit_builders.create_topic(Topic("another id", 1), {})
    state = deleted_log.commit(build, "create-topic")
    with pytest.raises(OptionError, match="exists, with id another id"):
        undelete_log(deleted_log.log, state)


def test_an_expired_deletion(deleted_log: RestoredLog) -> None:
    delete(deleted_log)
    deleted = deleted_log.state
    checkpoint_writer.write_checkpoint(deleted_log.log, deleted)
    deleted_log.clock.now_ms += 2 * DAY_MS
    topic_vacuum.vacuum(deleted_log.log, attempt("vacuum"))
    assert expire_log(deleted_log.log, 0) == deleted.version
    words = f"was deleted before version {deleted.version + 1}, and the commits before that"
    with pytest.raises(OptionError, match=words):
        undelete_log(deleted_log.log, deleted_log.state)


@pytest.mark.parametrize("other", ["create", "create and delete", "undelete", "vacuum"])
def test_another_comes_first(
    deleted_log: RestoredLog, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """What happens after the deletion was looked up decides, whatever was looked up."""
    log, before = deleted_log.log, delete(deleted_log)
    pending = [other]

    def come_first(*arguments: object) -> set[str]:
        existing = existing_segments(*arguments)  # type: ignore[arg-type]
        if pending and pending.pop():
            if other == "undelete":
                undelete_log(log, deleted_log.state)
            elif other == "vacuum":
                deleted_log.clock.now_ms += 2 * DAY_MS
                topic_vacuum.vacuum(log, attempt("vacuum"))
            else:
                create = commit_builders.create_topic(Topic("another id", 1), {})
                deleted_log.commit(create, "create-topic")
                if other == "create and delete":
                    delete(deleted_log)
        return existing

    monkeypatch.setattr(topic_undelete, "existing_segments", come_first)
    words = {"create": "exists, with id another id", "undelete": "exists, with id an id"}
    if other == "create and delete":
        assert undelete_log(log, deleted_log.state).topic_id == "another id"
        return
    with pytest.raises(KlogError, match=words.get(other, "vacuum has deleted")):
        undelete_log(log, deleted_log.state)
    assert other != "undelete" or of_the_topic(deleted_log.state) == of_the_topic(before)
