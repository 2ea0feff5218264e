"""A topic's log that cannot be believed: passed over where that is safe, else named."""

from __future__ import annotations

import json

import pytest

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
    state_checkpoint,
)
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.commit_log.format_versions import FIRST_VERSION, MAX_FORMAT
from klog.errors import (
    KlogError,
    UnsupportedFormatError,
)
from tests.connector.commit_log.memory_logs import CountingStore, append, created, same, topic_log


@pytest.mark.parametrize("damage", ["torn", "changed", "empty"])
def test_a_damaged_checkpoint_is_passed_over(damage: str) -> None:
    store = CountingStore()
    log = topic_log(store)
    state = append(log, created(log), (0, 3))
    path = log.paths.checkpoint(checkpoint_writer.write_checkpoint(log, state))
    whole = store.files[path]
    damaged = {"torn": whole[:-5], "changed": whole[:-5] + bytes(5), "empty": b""}
    store.files[path] = damaged[damage]
    assert same(log.load(), state)
    for version in range(state.version + 1):
        store.delete(log.paths.commit(version))
    store.files[log.paths.expiration(state.version)] = b""
    with pytest.raises(KlogError, match="no checkpoint at or above version 1 can be read"):
        log.load()
    store.files[path] = whole
    assert same(log.load(), state)


def test_a_commit_that_is_none_is_named() -> None:
    store = CountingStore()
    log = topic_log(store)
    created(log)
    store.files[log.paths.commit(1)] = b"{}"
    with pytest.raises(UnsupportedFormatError, match=r"log/0{19}1.json: its format is None"):
        log.load()


def test_a_commit_that_does_not_follow_is_named() -> None:
    store = CountingStore()
    log = topic_log(store)
    state = append(log, created(log), (0, 3))
    fields = json.loads(store.files[log.paths.commit(state.version)])
    fields["add"][0]["baseOffset"] = 1
    store.files[log.paths.commit(state.version)] = json.dumps(fields).encode()
    with pytest.raises(KlogError, match=r"commit 1 \(append, test\) does not follow"):
        log.load()


def test_a_checkpoint_of_a_newer_klog_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store = CountingStore()
    log = topic_log(store)
    state = created(log)
    monkeypatch.setattr(state_checkpoint, "MIN_FORMAT", MAX_FORMAT + 1)
    monkeypatch.setitem(FIRST_VERSION, MAX_FORMAT + 1, "9.1.0")
    name, data = state_checkpoint.encode_checkpoint(state)
    store.files[log.paths.checkpoint(name)] = data
    with pytest.raises(
        UnsupportedFormatError, match=rf"checkpoint .*: it has format {MAX_FORMAT + 1}"
    ):
        log.load()


def test_a_checkpoint_names_its_bytes() -> None:
    log = topic_log(CountingStore())
    state = append(log, created(log), (0, 3), writer=append_commit.Writer("w", 0, "q", "r"))
    name, data = state_checkpoint.encode_checkpoint(state)
    assert name == CheckpointName(1, len(data), name.crc32c)
    assert same(state_checkpoint.decode_checkpoint(data), state)
    with pytest.raises(UnsupportedFormatError, match="it is not a Parquet file"):
        state_checkpoint.decode_checkpoint(b"PAR1")
