"""The state of a topic as of an earlier version, and the versions that have none any more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from klog.connector.commit_log import (
    checkpoint_parts,
    checkpoint_writer,
    commit_builders,
    commit_expiration,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.past_versions import load_version, oldest_version
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import ForkedCommitError, KlogError, LostCommitError, OptionError
from tests.connector.commit_log.memory_logs import (
    Clock,
    CountingStore,
    append,
    attempt,
    created,
    same,
    topic_log,
)

EXPIRES_ALL = -1
"""A retention with which every commit but the last one is old."""


def history(
    store: CountingStore, versions: int = 12, checkpoints: tuple[int, ...] = ()
) -> tuple[CommitLog, list[TopicState]]:
    """Make a topic, and return its state of each version; some have a checkpoint."""
    log = topic_log(store, Clock())
    states = [created(log)]
    for number in range(1, versions):
        states.append(append(log, states[-1], (number % 2, 3)))
        if number in checkpoints:
            checkpoint_writer.write_checkpoint(log, states[-1])
    return log, states


def expired(log: CommitLog, version: int) -> None:
    """Expire the commits up to a version, as klog 0.2 did: whether it has a checkpoint or not."""
    log.store.put_if_absent(log.paths.expiration(version), b"")
    for expired_version in range(version + 1):
        log.store.delete(log.paths.commit(expired_version))


@pytest.mark.parametrize("checkpoints", [(), (5,), (2, 5, 9), (0, 11)])
def test_each_version_is_what_it_was(checkpoints: tuple[int, ...]) -> None:
    log, states = history(CountingStore(), checkpoints=checkpoints)
    for version, state in enumerate(states):
        assert same(load_version(log, version, states[-1]), state)
    assert oldest_version(log, states[-1]) == 0


def test_the_requests_besides_the_commits_are_few() -> None:
    store = CountingStore()
    log, states = history(store, 12, checkpoints=(5, 9))
    store.requests.clear()
    load_version(log, 8, states[-1])
    assert store.requests == {"list": 2, "read": 1 + 3}
    store.requests.clear()
    load_version(log, 11, states[-1])
    assert not store.requests


@pytest.mark.parametrize("version", [-1, 12, 10**12])
def test_a_version_that_never_existed_is_refused(version: int) -> None:
    log, states = history(CountingStore())
    with pytest.raises(
        OptionError, match=rf"has no version {version}: those .* are 0 to 11\. Give"
    ):
        load_version(log, version, states[-1])


def test_a_topic_without_commits_has_no_version() -> None:
    with pytest.raises(OptionError, match=r"no version 0: it has no commits"):
        load_version(topic_log(CountingStore()), 0, TopicState())


def test_an_expired_version_is_refused_with_the_oldest_one() -> None:
    store = CountingStore()
    log, states = history(store, checkpoints=(5, 9))
    expired(log, 5)
    assert oldest_version(log, states[-1]) == 5
    for version in range(5):
        with pytest.raises(OptionError, match=rf"version {version} .* has expired: .* are 5 to 11"):
            load_version(log, version, states[-1])
    for version in range(5, 12):
        assert same(load_version(log, version, states[-1]), states[version])


def test_a_last_expired_version_without_a_checkpoint_has_the_next_one_as_the_oldest() -> None:
    log, states = history(CountingStore(), checkpoints=(5, 9))
    expired(log, 7)
    assert oldest_version(log, states[-1]) == 9
    assert same(load_version(log, 5, states[-1]), states[5])
    for version in (4, 6, 7, 8):
        with pytest.raises(OptionError, match=r"has expired: .* are 9 to 11"):
            load_version(log, version, states[-1])
    for version in (9, 10, 11):
        assert same(load_version(log, version, states[-1]), states[version])


def test_a_damaged_checkpoint_is_not_the_oldest_version() -> None:
    store = CountingStore()
    log, states = history(store, checkpoints=(5, 9))
    expired(log, 5)
    store.files[log.paths.checkpoint(min(log.checkpoint_names()))] += b"junk"
    assert oldest_version(log, states[-1]) == 9
    with pytest.raises(OptionError, match=r"version 6 .* has expired: .* are 9 to 11"):
        load_version(log, 6, states[-1])


def test_an_incomplete_checkpoint_is_not_the_oldest_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoint_parts, "PART_ROWS", 2)
    store = CountingStore()
    log, states = history(store, checkpoints=(9,))
    expired(log, 9)
    part = next(path for path in store.files if path.startswith(log.paths.parts))
    del store.files[part]
    assert oldest_version(log, states[-1]) == 11
    with pytest.raises(OptionError, match=r"has expired: the only one .* is 11, its last"):
        load_version(log, 10, states[-1])


class ExpiresMeanwhile(CountingStore):
    """Expires commits, and replaces the checkpoints, right after the checkpoints are listed."""

    log: CommitLog
    states: list[TopicState]
    pending: bool = False

    def entries(self, directory: str):  # type: ignore[no-untyped-def]
        """List a directory."""
        entries = super().entries(directory)
        if self.pending and directory == self.log.paths.checkpoints:
            self.pending = False
            old_names = self.log.checkpoint_names()
            checkpoint_writer.write_checkpoint(self.log, self.states[7])
            expired(self.log, 7)
            for name in old_names:
                self.delete(self.log.paths.checkpoint(name))
        return entries


@pytest.mark.parametrize("version", [7, 8, 10])
def test_a_load_starts_again_if_its_checkpoint_expires_meanwhile(version: int) -> None:
    store = ExpiresMeanwhile()
    store.log, store.states = history(store, checkpoints=(3,))
    store.pending = True
    assert same(load_version(store.log, version, store.states[-1]), store.states[version])


def test_a_version_that_expires_meanwhile_is_refused() -> None:
    store = ExpiresMeanwhile()
    store.log, store.states = history(store, checkpoints=(3,))
    store.pending = True
    with pytest.raises(OptionError, match=r"version 5 .* has expired: .* are 7 to 11"):
        load_version(store.log, 5, store.states[-1])


def test_a_lost_commit_is_named() -> None:
    store = CountingStore()
    log, states = history(store, checkpoints=(5,))
    for version in (3, 8):
        del store.files[log.paths.commit(version)]
    for version, lost in ((3, 3), (4, 3), (8, 8), (10, 8)):
        with pytest.raises(LostCommitError, match=rf"0{lost}\.json: this commit is lost.*11 was"):
            load_version(log, version, states[-1])
    for version in (2, 5, 7):
        assert same(load_version(log, version, states[-1]), states[version])


def test_a_commit_in_the_place_of_a_lost_one_is_refused() -> None:
    store = CountingStore()
    log, states = history(store)
    append_path = log.paths.commit(8)
    text = store.files[append_path].decode()
    store.files[append_path] = text.replace('"writeId": "', '"writeId": "x').encode()
    assert text != store.files[append_path].decode()
    for version in (8, 10):
        with pytest.raises(ForkedCommitError, match=r"commit 8 is write x"):
            load_version(log, version, states[-1])


def test_a_checkpoint_of_another_log_is_refused() -> None:
    log, states = history(CountingStore())
    checkpoint_writer.write_checkpoint(log, replace(states[6], writes={"another": 6}))
    with pytest.raises(KlogError, match=r"0006-.*parquet: this checkpoint is not one"):
        load_version(log, 6, states[-1])


def created_again(log: CommitLog, state: TopicState) -> tuple[TopicState, TopicState]:
    """Delete the topic and create it again; return both states."""
    deleted = log.commit(
        state, commit_builders.delete_topic(state.topic_id), attempt("delete-topic")
    )
    return deleted, created(log, topic_id="another id")


def test_the_earlier_topic_of_a_name_is_refused() -> None:
    log, states = history(CountingStore(), versions=3)
    deleted, again = created_again(log, states[-1])
    with pytest.raises(
        OptionError, match=r"created again after version 2, .* id an id\. Give a la"
    ):
        load_version(log, 2, again)
    with pytest.raises(OptionError, match=r"does not exist in version 3, which deleted it"):
        load_version(log, deleted.version, again)
    assert same(load_version(log, again.version, again), again)
    assert same(load_version(log, 2, deleted), states[2])


def test_a_sidecar_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klog.connector.commit_log.commit_sidecar.MAX_JSON_BYTES", 10)
    store = CountingStore()
    log, states = history(store)
    assert any(path.startswith(log.paths.sidecars) for path in store.files)
    assert same(load_version(log, 7, states[-1]), states[7])


def test_expiration_leaves_every_version_from_the_last_expired_one_on() -> None:
    log, states = history(CountingStore(), checkpoints=(9,))
    log.clock.now_ms += 1000  # type: ignore[attr-defined]
    last_expired = commit_expiration.expire_log(log, EXPIRES_ALL)
    assert last_expired == oldest_version(log, states[-1]) == 9
    for version in range(9, 12):
        assert same(load_version(log, version, states[-1]), states[version])
