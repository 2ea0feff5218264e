"""A topic's log that cannot be believed: passed over where that is safe, else named."""

from __future__ import annotations

import json

import pytest

from klog.connector.log import checkpoint, cleaning, operations
from klog.connector.log.commit import FORMAT, SINCE
from klog.connector.log.paths import CheckpointName
from klog.errors import (
    KlogError,
    UnsupportedFormatError,
)
from tests.commits.logs import CountingStore, append, created, same, topic_log


@pytest.mark.parametrize("damage", ["torn", "changed", "empty"])
def test_a_damaged_checkpoint_is_passed_over(damage: str) -> None:
    store = CountingStore()
    log = topic_log(store)
    state = append(log, created(log), (0, 3))
    path = log.paths.checkpoint(cleaning.write_checkpoint(log, state))
    whole = store.files[path]
    damaged = {"torn": whole[:-5], "changed": whole[:-5] + bytes(5), "empty": b""}
    store.files[path] = damaged[damage]
    assert same(log.load(), state)
    for version in range(state.version + 1):
        store.delete(log.paths.commit(version))
    store.files[log.paths.boundary(state.version)] = b""
    with pytest.raises(KlogError, match="no checkpoint at or above boundary 1 can be read"):
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
    said = json.loads(store.files[log.paths.commit(state.version)])
    said["add"][0]["baseOffset"] = 1
    store.files[log.paths.commit(state.version)] = json.dumps(said).encode()
    with pytest.raises(KlogError, match=r"commit 1 \(append, test\) does not follow"):
        log.load()


def test_a_checkpoint_of_a_newer_klog_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store = CountingStore()
    log = topic_log(store)
    state = created(log)
    monkeypatch.setattr(checkpoint, "LEAST_FORMAT", FORMAT + 1)
    monkeypatch.setitem(SINCE, FORMAT + 1, "9.1.0")
    name, data = checkpoint.encode(state)
    store.files[log.paths.checkpoint(name)] = data
    with pytest.raises(UnsupportedFormatError, match=r"checkpoint .*: it has format 4"):
        log.load()


def test_a_checkpoint_names_its_bytes() -> None:
    log = topic_log(CountingStore())
    state = append(log, created(log), (0, 3), writer=operations.Writer("w", 0, "q", "r"))
    name, data = checkpoint.encode(state)
    assert name == CheckpointName(1, len(data), name.crc32c)
    assert same(checkpoint.decode(data), state)
    with pytest.raises(UnsupportedFormatError, match="it is no Parquet file"):
        checkpoint.decode(b"PAR1")
