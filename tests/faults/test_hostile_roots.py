"""Commits, checkpoints and names that are torn, newer, from another topic, or malicious.

A load gives the state of a full replay, or an error that names the file. Nothing hangs, and a
writer neither overwrites such a file nor takes it for its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import google_crc32c
import pytest

from klog.connector.commit_log import (
    checkpoint_writer,
    commit_builders,
    commit_expiration,
    state_checkpoint,
    topic_vacuum,
)
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.commit_log.format_versions import MAX_FORMAT
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError, CommitStateUnknownError, KlogError, LostCommitError
from tests.connector.commit_log.memory_logs import Clock, CountingStore, checkpoint_and_expire
from tests.faults import signed_topic
from tests.faults.signed_topic import TOPIC_ID, new

ROOT = "/root"
RECORDS = [["a0", "a1", "a2"], ["b0"]]


def create_log() -> tuple[CountingStore, CommitLog, TopicState]:
    store, clock = CountingStore(), Clock()
    log = signed_topic.log_on(store, ROOT, clock, lambda tries: None)
    state = signed_topic.append(log, signed_topic.create(log), {0: ["a0", "a1"], 1: ["b0"]})
    return store, log, signed_topic.append(log, state, {0: ["a2"]})


def with_fields(data: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(data), **fields}).encode()


def with_entry(data: bytes, **fields: Any) -> bytes:
    commit = json.loads(data)
    return with_fields(data, add=[{**commit["add"][0], **fields}])


def with_entry_twice(data: bytes, **fields: Any) -> bytes:
    (added,) = json.loads(data)["add"]
    return with_fields(data, add=[added, {**added, **fields}], post={})


ABSENT = "orders-0/" + "7" * 20 + ".log"

COMMITS: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "with junk after it": lambda data: data + b"}",
    "another version": lambda data: with_fields(data, version=7),
    "a newer format": lambda data: with_fields(data, format=MAX_FORMAT + 1, since="9.9.9"),
    "an unknown operation": lambda data: with_fields(data, operation="untwist"),
    "an old timestamp": lambda data: with_fields(data, timestampMs=5),
    "not a JSON object": lambda data: b"[1, 2]",
    "deep": lambda data: b'{"add":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a huge number": lambda data: with_fields(data, timestampMs=0).replace(b"0", b"9" * 5000, 1),
    "a number with an exponent": lambda data: data.replace(b'"version": 2', b'"version": 2e0'),
    "infinity": lambda data: with_fields(data, timestampMs=float("inf")),
    "a path above the root": lambda data: with_entry(data, file="../../etc/passwd"),
    "a path above a partition": lambda data: with_entry(data, file="orders-0/../../x.log"),
    "an absolute path": lambda data: with_entry(data, file="/etc/passwd"),
    "a URL": lambda data: with_entry(data, file="s3://bucket/orders-0/" + "0" * 20 + ".log"),
    "a file of another topic": lambda data: with_entry(data, file="secret-0/" + "0" * 20 + ".log"),
    "a file of another partition": lambda data: with_entry(
        data, file="orders-1/" + "0" * 20 + ".log"
    ),
    "a missing partition": lambda data: with_entry(
        data, partition=5, file="orders-5/" + "0" * 20 + ".log"
    ),
    "an overlap": lambda data: with_entry(data, baseOffset=1),
    "a gap": lambda data: with_entry(data, baseOffset=9, nextOffset=10),
    "a wrong log end": lambda data: with_fields(data, post={"0": {"logEnd": 77}}),
    "a segment twice": lambda data: with_entry_twice(data, baseOffset=3, nextOffset=4),
    "a partition twice": lambda data: with_fields(data, setLogStart={"0": 1, "00": 0}),
    "a missing file removed": lambda data: with_fields(data, remove=[ABSENT]),
    "a start after the end": lambda data: with_fields(data, setLogStart={"0": 99}),
    "two billion partitions": lambda data: with_fields(data, setPartitions=(1 << 31) - 1),
    "the topic created twice": lambda data: with_fields(
        data, createTopic={"topicId": "x", "partitions": 1}
    ),
    "a text of a mebibyte": lambda data: with_fields(
        data, setConfig={"retention.ms": "9" * (1 << 20)}
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", COMMITS)
def test_f17_f31_the_error_names_a_damaged_commit(damage: str) -> None:
    store, log, _ = create_log()
    path = log.paths.commit(2)
    assert COMMITS[damage](store.files[path]) != store.files[path]
    store.files[path] = COMMITS[damage](store.files[path])
    with pytest.raises(KlogError) as at:
        log.load()
    assert log.paths.commits in str(at.value)
    assert "commit 2 " in str(at.value) or path in str(at.value)
    assert len(str(at.value)) < 3000


@pytest.mark.parametrize("damage", COMMITS)
def test_f17_f31_a_writer_does_not_replace_a_damaged_commit(damage: str) -> None:
    """Another file has its version, so the write fails, and the error says so."""
    store, log, _ = create_log()
    path = log.paths.commit(2)
    bad = store.files[path] = COMMITS[damage](store.files[path])
    before = signed_topic.state_at(log, 1)
    with pytest.raises(KlogError) as at:
        signed_topic.append(log, before, {1: ["late"]})
    assert not isinstance(at.value, CommitStateUnknownError | CommitConflictError)
    assert store.files[path] == bad
    assert log.paths.commit(3) not in store.files


def test_f17_a_commit_after_a_gap_fails_reads_and_writes() -> None:
    """Versions have no gaps: a missing one was lost, or the one after it is not klog's."""
    store, log, state = create_log()
    data = store.files[log.paths.commit(2)]
    store.files[log.paths.commit(4)] = with_fields(data, version=4)
    with pytest.raises(LostCommitError, match=r"003\.json: this commit is lost.*004\.json shows"):
        log.load()
    with pytest.raises(LostCommitError):
        signed_topic.append(log, state, {1: ["b1"]})
    assert log.paths.commit(3) not in store.files


def put_checkpoint(store: CountingStore, log: CommitLog, data: bytes, version: int) -> str:
    name = CheckpointName(version, len(data), google_crc32c.value(data))
    path = log.paths.checkpoint(name)
    store.files[path] = data
    return path


def of_version(state: TopicState, version: int) -> bytes:
    return state_checkpoint.encode_checkpoint(replace(state, version=version))[1]


CHECKPOINTS: dict[str, Callable[[CountingStore, CommitLog, TopicState], str]] = {
    "not Parquet": lambda store, log, state: put_checkpoint(store, log, b"no Parquet", 2),
    "empty, with a matching name": lambda store, log, state: put_checkpoint(store, log, b"", 2),
    "a state older than its name": lambda store, log, state: put_checkpoint(
        store, log, of_version(state, 1), 2
    ),
    "a state newer than its name": lambda store, log, state: put_checkpoint(
        store, log, of_version(state, 9), 2
    ),
    "a version after the log's end": lambda store, log, state: put_checkpoint(
        store, log, of_version(state, 9), 9
    ),
    "a state of another topic": lambda store, log, state: put_checkpoint(
        store, log, another_topic(), 2
    ),
}


def another_topic() -> bytes:
    state = create_log()[2]
    return state_checkpoint.encode_checkpoint(
        replace(state, writes={"other": 2}, log_end=(99, 99))
    )[1]


@pytest.mark.parametrize("damage", CHECKPOINTS)
def test_f16_f17_the_error_names_an_intact_but_wrong_checkpoint(damage: str) -> None:
    store, log, state = create_log()
    path = CHECKPOINTS[damage](store, log, state)
    with pytest.raises(KlogError) as at:
        log.load()
    assert path.split("-")[0] in str(at.value)
    with pytest.raises(KlogError):
        commit_expiration.expire_log(log, 0)
    del store.files[path]  # As the error says.
    assert signed_topic.records_of(log) == RECORDS


@pytest.mark.parametrize("damage", ["torn", "empty", "changed", "zeros", "longer"])
def test_f16_a_damaged_checkpoint_is_ignored(damage: str) -> None:
    """The state is that of a full replay, and log expiration keeps the commits it would replace."""
    store, log, state = create_log()
    older = log.paths.checkpoint(
        checkpoint_writer.write_checkpoint(log, signed_topic.state_at(log, 1))
    )
    path = log.paths.checkpoint(checkpoint_writer.write_checkpoint(log, state))
    whole = store.files[path]
    middle = len(whole) // 2
    store.files[path] = {
        "torn": whole[:middle],
        "empty": b"",
        "changed": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        "zeros": bytes(len(whole)),
        "longer": whole + b"\0",
    }[damage]
    assert signed_topic.records_of(log) == RECORDS
    assert log.load().version == state.version
    log.clock.now_ms += 1  # type: ignore[attr-defined]
    assert commit_expiration.expire_log(log, 0) == 1
    assert log.paths.commit(2) in store.files
    assert older in store.files
    assert signed_topic.records_of(log) == RECORDS


@pytest.mark.parametrize(
    "name",
    [
        "../../../../etc/passwd", "00000000000000000009.json.tmp", "9" * 20 + ".json",
        "9" * 20, "-1", "0" * 19 + "9 ", "00000000000000000009", "\N{ARABIC-INDIC DIGIT NINE}" * 20,
    ],
)  # fmt: skip
def test_f31_files_with_invalid_names_are_ignored(name: str) -> None:
    """In every folder of the log, they are no versions, checkpoints or expired versions."""
    store, log, _ = create_log()
    paths = log.paths
    folders = [paths.commits, paths.checkpoints, paths.leases, f"{ROOT}/orders-0"]
    if not (name.isascii() and name.isdecimal() and int(name) < 10**10):
        folders.append(paths.expirations)
    for folder in folders:
        store.files[f"{folder}/{name}"] = b"junk"
    assert signed_topic.records_of(log) == RECORDS
    checkpoint_and_expire(log)
    topic_vacuum.vacuum(log, new("vacuum"), 0)
    assert signed_topic.records_of(log) == RECORDS
    assert all(store.files[f"{folder}/{name}"] == b"junk" for folder in folders)


def test_f31_the_error_names_a_forged_expired_version() -> None:
    store, log, state = create_log()
    store.files[log.paths.expiration(10**10 - 1)] = b""
    with pytest.raises(KlogError, match=r"orders: no checkpoint at or above version 9999999999"):
        log.load()
    with pytest.raises(KlogError, match="no checkpoint at or above version"):
        signed_topic.append(log, state, {0: ["x"]})


@pytest.mark.parametrize(
    "build",
    [
        commit_builders.create_topic(Topic("t" * 70_000, 1), {}),
        commit_builders.create_topic(Topic("an id", 1), {"retention.ms": "9" * 70_000}),
        commit_builders.create_topic(Topic("an id", (1 << 31) - 1), {}),
    ],
    ids=["a long id", "a long value", "two billion partitions"],
)
def test_f17_a_commit_that_readers_would_refuse_is_not_written(build: Any) -> None:
    """A commit that cannot be read back would make the topic unusable."""
    store = CountingStore()
    log = signed_topic.log_on(store, ROOT, Clock(), lambda tries: None)
    with pytest.raises(KlogError):
        log.commit(log.load(), build, new("create-topic"))
    assert not store.files
    assert signed_topic.create(log).topic_id == TOPIC_ID
