"""Commits in the place of lost ones: few reads find them, also after log expiration."""

from __future__ import annotations

import json

import pytest

from klog.connector.commit_log import checkpoint_writer, topic_state
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.forked_commits import find_forked_commits
from klog.connector.commit_log.lost_commit_errors import ForkedCommit
from tests.connector.commit_log.memory_logs import CountingStore, appended, created, topic_log


def _log(store: CountingStore) -> CommitLog:
    """Create versions 0 to 8, with a checkpoint at 5 and another writer's commits at 2 and 4."""
    log = topic_log(store)
    first = appended(log, created(log), 5)
    checkpoint_writer.write_checkpoint(log, first)
    appended(log, first, 3)
    for version in (2, 4):
        path = log.paths.commit(version)
        fields = {**json.loads(store.files[path]), "writeId": f"other {version}"}
        store.files[path] = json.dumps(fields).encode()
    store.requests.clear()
    return log


def test_each_commit_below_the_checkpoint_is_read_once_and_a_forked_one_twice() -> None:
    store = CountingStore()
    log = _log(store)
    loaded = log.load()
    store.requests.clear()
    assert len(find_forked_commits(log, loaded)) == 2
    # The expiration files, the commits, and the expiration files again; commits 0 to 5, and 2 and 4
    # with sidecars.
    assert store.requests == {"list": 3, "read": 8}


def test_without_a_checkpoint_every_commit_is_loaded_and_none_is_read_again() -> None:
    store = CountingStore()
    log = topic_log(store)
    loaded = appended(log, created(log), 2)
    store.requests.clear()
    assert find_forked_commits(log, loaded) == []
    assert not store.requests


def test_only_versions_that_the_checkpoint_remembers_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_state, "MAX_REMEMBERED_WRITES", 5)
    store = CountingStore()
    log = _log(store)
    loaded = log.load()
    store.requests.clear()
    # The state remembers versions 4 to 8.
    (forked,) = find_forked_commits(log, loaded)
    assert isinstance(forked, ForkedCommit)
    assert forked.commit.version == 4
    assert store.requests["read"] == 3


class CleanedStore(CountingStore):
    """Has `expiration` from the next read of commit 5 on."""

    expiration = ""

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """Read a file."""
        if self.expiration and path.endswith("/log/00000000000000000005.json"):
            self.files[self.expiration] = b""
        return super().read(path, max_bytes)


def test_what_a_cleaning_overtakes_meanwhile_is_none() -> None:
    store = CleanedStore()
    log = _log(store)
    loaded = log.load()
    assert len(find_forked_commits(log, loaded)) == 2
    store.expiration = log.paths.expiration(3)
    (forked,) = find_forked_commits(log, loaded)
    assert isinstance(forked, ForkedCommit)
    assert forked.commit.version == 4
