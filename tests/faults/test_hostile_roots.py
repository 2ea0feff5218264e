"""Commits, checkpoints and names that are torn, of the future, of another, or made to do harm.

What is loaded is what a full replay gives, or the error names the file; nobody hangs, and a writer
neither writes over such a file nor takes it for its own.
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
from tests.connector.commit_log.memory_logs import Clock, CountingStore
from tests.faults import signed_topic
from tests.faults.signed_topic import TOPIC_ID, new

ROOT = "/root"
RECORDS = [["a0", "a1", "a2"], ["b0"]]


def begun() -> tuple[CountingStore, CommitLog, TopicState]:
    store, clock = CountingStore(), Clock()
    log = signed_topic.log_on(store, ROOT, clock, lambda tries: None)
    state = signed_topic.append(log, signed_topic.create(log), {0: ["a0", "a1"], 1: ["b0"]})
    return store, log, signed_topic.append(log, state, {0: ["a2"]})


def changed(data: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(data), **fields}).encode()


def with_entry(data: bytes, **fields: Any) -> bytes:
    said = json.loads(data)
    return changed(data, add=[{**said["add"][0], **fields}])


def with_entry_twice(data: bytes, **fields: Any) -> bytes:
    (added,) = json.loads(data)["add"]
    return changed(data, add=[added, {**added, **fields}], post={})


ABSENT = "orders-0/" + "7" * 20 + ".log"

COMMITS: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "with junk behind it": lambda data: data + b"}",
    "of another version": lambda data: changed(data, version=7),
    "of a newer format": lambda data: changed(data, format=MAX_FORMAT + 1, since="9.9.9"),
    "of an unknown operation": lambda data: changed(data, operation="untwist"),
    "of the past": lambda data: changed(data, timestampMs=5),
    "no JSON object": lambda data: b"[1, 2]",
    "deep": lambda data: b'{"add":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "of a huge number": lambda data: changed(data, timestampMs=0).replace(b"0", b"9" * 5000, 1),
    "of a number with an exponent": lambda data: data.replace(b'"version": 2', b'"version": 2e0'),
    "of infinity": lambda data: changed(data, timestampMs=float("inf")),
    "above": lambda data: with_entry(data, file="../../etc/passwd"),
    "above, from a partition": lambda data: with_entry(data, file="orders-0/../../x.log"),
    "absolute": lambda data: with_entry(data, file="/etc/passwd"),
    "a URL": lambda data: with_entry(data, file="s3://bucket/orders-0/" + "0" * 20 + ".log"),
    "of another topic": lambda data: with_entry(data, file="secret-0/" + "0" * 20 + ".log"),
    "of another partition": lambda data: with_entry(data, file="orders-1/" + "0" * 20 + ".log"),
    "of a partition that is not": lambda data: with_entry(
        data, partition=5, file="orders-5/" + "0" * 20 + ".log"
    ),
    "an overlap": lambda data: with_entry(data, baseOffset=1),
    "a gap": lambda data: with_entry(data, baseOffset=9, nextOffset=10),
    "an end that is not": lambda data: changed(data, post={"0": {"logEnd": 77}}),
    "a segment twice": lambda data: with_entry_twice(data, baseOffset=3, nextOffset=4),
    "a partition twice": lambda data: changed(data, setLogStart={"0": 1, "00": 0}),
    "what is not there removed": lambda data: changed(data, remove=[ABSENT]),
    "a start behind the end": lambda data: changed(data, setLogStart={"0": 99}),
    "two billion partitions": lambda data: changed(data, setPartitions=(1 << 31) - 1),
    "the topic made twice": lambda data: changed(
        data, createTopic={"topicId": "x", "partitions": 1}
    ),
    "a text of a mebibyte": lambda data: changed(data, setConfig={"retention.ms": "9" * (1 << 20)}),
}  # fmt: skip


@pytest.mark.parametrize("damage", COMMITS)
def test_f17_f31_a_commit_that_is_none_is_named(damage: str) -> None:
    store, log, _ = begun()
    path = log.paths.commit(2)
    assert COMMITS[damage](store.files[path]) != store.files[path]
    store.files[path] = COMMITS[damage](store.files[path])
    with pytest.raises(KlogError) as at:
        log.load()
    assert log.paths.commits in str(at.value)
    assert "commit 2 " in str(at.value) or path in str(at.value)
    assert len(str(at.value)) < 3000


@pytest.mark.parametrize("damage", COMMITS)
def test_f17_f31_a_writer_leaves_a_bad_commit_as_it_is(damage: str) -> None:
    """Its number is taken by something that is not its own: it did not land, and says so."""
    store, log, _ = begun()
    path = log.paths.commit(2)
    bad = store.files[path] = COMMITS[damage](store.files[path])
    before = signed_topic.fold_to(log, 1)
    with pytest.raises(KlogError) as at:
        signed_topic.append(log, before, {1: ["late"]})
    assert not isinstance(at.value, CommitStateUnknownError | CommitConflictError)
    assert store.files[path] == bad
    assert log.paths.commit(3) not in store.files


def test_f17_a_commit_behind_a_gap_ends_reads_and_writes() -> None:
    """Numbers have no gaps: one that is missing was lost, or the one behind it is not klog's."""
    store, log, state = begun()
    data = store.files[log.paths.commit(2)]
    store.files[log.paths.commit(4)] = changed(data, version=4)
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
    "no Parquet": lambda store, log, state: put_checkpoint(store, log, b"no Parquet", 2),
    "empty, as it says": lambda store, log, state: put_checkpoint(store, log, b"", 2),
    "of an older state than its name": lambda store, log, state: put_checkpoint(
        store, log, of_version(state, 1), 2
    ),
    "of a newer state than its name": lambda store, log, state: put_checkpoint(
        store, log, of_version(state, 9), 2
    ),
    "of the future": lambda store, log, state: put_checkpoint(store, log, of_version(state, 9), 9),
    "of another topic's log": lambda store, log, state: put_checkpoint(
        store, log, another_topic(), 2
    ),
}


def another_topic() -> bytes:
    state = begun()[2]
    return state_checkpoint.encode_checkpoint(
        replace(state, writes={"other": 2}, log_end=(99, 99))
    )[1]


@pytest.mark.parametrize("damage", CHECKPOINTS)
def test_f16_f17_a_whole_checkpoint_that_is_wrong_is_named(damage: str) -> None:
    store, log, state = begun()
    path = CHECKPOINTS[damage](store, log, state)
    with pytest.raises(KlogError) as at:
        log.load()
    assert path.split("-")[0] in str(at.value)
    with pytest.raises(KlogError):
        commit_expiration.expire_log(log, 0)
    del store.files[path]  # What the error asks for.
    assert signed_topic.records_of(log) == RECORDS


@pytest.mark.parametrize("damage", ["torn", "empty", "changed", "zeros", "longer"])
def test_f16_a_damaged_checkpoint_is_passed_over(damage: str) -> None:
    """The state is that of a full replay, and cleaning keeps what the damaged one stood for."""
    store, log, state = begun()
    older = log.paths.checkpoint(
        checkpoint_writer.write_checkpoint(log, signed_topic.fold_to(log, 1))
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
def test_f31_names_that_are_none_are_not_read(name: str) -> None:
    """In every folder of the log: neither versions, nor checkpoints, nor a boundary."""
    store, log, _ = begun()
    paths = log.paths
    folders = [paths.commits, paths.checkpoints, paths.leases, f"{ROOT}/orders-0"]
    if not (name.isascii() and name.isdecimal() and int(name) < 10**10):
        folders.append(paths.expirations)
    for folder in folders:
        store.files[f"{folder}/{name}"] = b"junk"
    assert signed_topic.records_of(log) == RECORDS
    checkpoint_writer.write_checkpoint(log, log.load())
    commit_expiration.expire_log(log, 0)
    topic_vacuum.vacuum(log, new("vacuum"), 0)
    assert signed_topic.records_of(log) == RECORDS
    assert all(store.files[f"{folder}/{name}"] == b"junk" for folder in folders)


def test_f31_a_boundary_that_nobody_made_is_named() -> None:
    store, log, state = begun()
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
def test_f17_what_no_reader_would_take_is_not_written(build: Any) -> None:
    """A commit that cannot be read back would end the topic for everybody."""
    store = CountingStore()
    log = signed_topic.log_on(store, ROOT, Clock(), lambda tries: None)
    with pytest.raises(KlogError):
        log.commit(log.load(), build, new("create-topic"))
    assert not store.files
    assert signed_topic.create(log).topic_id == TOPIC_ID
