"""The last expired version is that of a complete checkpoint, which stays until a higher one has.

In `history` each commit comes a day after the one before.
"""

from __future__ import annotations

import pytest

from klog.connector.commit_log import (
    checkpoint_parts,
    checkpoint_writer,
    commit_builders,
    commit_expiration,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.commit_log.past_versions import load_version, oldest_version
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.writable_store import PutResult
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    Clock,
    CountingStore,
    append,
    attempt,
    created,
    same,
    topic_log,
)

LITTLE = (10, 2)
"""Listings and reads of an expiration with nothing to do, besides those of a load."""


def history(
    store: CountingStore, days: int, checkpoints: tuple[int, ...]
) -> tuple[CommitLog, list[TopicState]]:
    """Make a topic with a commit a day, and checkpoints of some versions."""
    clock = Clock()
    log = topic_log(store, clock)
    states = [created(log)]
    for number in range(1, days):
        clock.now_ms += DAY_MS
        states.append(append(log, states[-1], (number % 2, 3)))
        if number in checkpoints:
            checkpoint_writer.write_checkpoint(log, states[-1])
    return log, states


def checkpoint_versions(log: CommitLog) -> list[int]:
    return sorted(name.version for name in log.checkpoint_names())


def commit_versions(log: CommitLog) -> list[int]:
    return sorted(int(name.removesuffix(".json")) for name in log.names(log.paths.commits))


@pytest.mark.parametrize(
    ("retention_days", "last_expired"), [(0, 8), (1, 8), (2, 8), (3, 5), (5, 5), (6, 2), (9, -1)]
)
def test_it_is_the_newest_checkpoint_as_old_as_the_retention(
    retention_days: int, last_expired: int
) -> None:
    log, states = history(CountingStore(), 11, checkpoints=(2, 5, 8, 10))
    retention_ms = retention_days * DAY_MS
    assert commit_expiration.preview_expiration(log, retention_ms) == last_expired
    assert commit_expiration.expire_log(log, retention_ms) == last_expired
    assert log.last_expired_version() == oldest_version(log, states[-1]) - (last_expired < 0)
    assert commit_versions(log) == list(range(last_expired + 1, 11))
    assert checkpoint_versions(log) == [v for v in (2, 5, 8, 10) if v >= last_expired]
    for version in range(max(last_expired, 0), 11):
        assert same(load_version(log, version, states[-1]), states[version])
    assert same(log.load(), states[-1])


class UnconfirmedStore(CountingStore):
    """A store that does not confirm expiration files, as a disk whose sync fails."""

    is_unconfirmed = True

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        result = super().put_if_absent(path, data)
        return PutResult.UNKNOWN if "/gc/" in path and self.is_unconfirmed else result


def test_nothing_is_deleted_before_the_store_confirms_the_expiration_file() -> None:
    """A later run reads the file, which a loss of power may undo: then all commits are needed."""
    store = UnconfirmedStore()
    log, states = history(store, 11, checkpoints=(2, 5, 8))
    for _ in range(2):
        commit_expiration.expire_log(log, 0)
        assert log.last_expired_version() == 8
        assert commit_expiration.delete_expired_commits(log) == 0
        assert commit_versions(log) == list(range(11))
        assert checkpoint_versions(log) == [2, 5, 8]
    del store.files[log.paths.expiration(8)]
    assert same(load_version(log, 0, states[-1]), states[0])
    store.is_unconfirmed = False
    assert commit_expiration.expire_log(log, 0) == 8
    assert (commit_versions(log), checkpoint_versions(log)) == ([9, 10], [8])


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_confirmed_expiration_file_of_another_is_enough(is_whole: bool) -> None:
    store = UnconfirmedStore()
    log, _ = history(store, 11, checkpoints=(2, 5, 8))
    commit_expiration.expire_log(log, 0)
    store.is_unconfirmed = False
    if is_whole:
        assert commit_expiration.expire_log(log, 0) == 8
    else:
        assert commit_expiration.delete_expired_commits(log) == 9
    assert commit_versions(log) == [9, 10]
    assert checkpoint_versions(log) == ([8] if is_whole else [2, 5, 8])


def test_a_checkpoint_of_the_last_version_does_not_expire_it() -> None:
    log, _ = history(CountingStore(), 6, checkpoints=(5,))
    assert commit_expiration.expire_log(log, -DAY_MS) == -1
    assert commit_versions(log) == list(range(6))


@pytest.mark.parametrize(("days", "last_expired"), [(None, -1), (20, 3), (3, 8)])
def test_the_config_of_the_topic_says_how_old(days: int | None, last_expired: int) -> None:
    log, states = history(CountingStore(), 11, checkpoints=(3, 8))
    config = {} if days is None else {"klog.commit.retention.ms": str(days * DAY_MS)}
    build = commit_builders.alter_config(states[-1].topic_id, states[-1].config, config)
    log.commit(states[-1], build, attempt("alter-config"))
    log.clock.now_ms += 14 * DAY_MS  # type: ignore[attr-defined]
    assert commit_expiration.expire_log(log) == last_expired
    log.clock.now_ms += 30 * DAY_MS  # type: ignore[attr-defined]
    assert commit_expiration.expire_log(log) == 8


def test_an_incomplete_checkpoint_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_parts, "PART_ROWS", 2)
    store = CountingStore()
    log, states = history(store, 11, checkpoints=(5,))
    before = set(store.files)
    checkpoint_writer.write_checkpoint(log, states[8])
    part = next(path for path in set(store.files) - before if path.startswith(log.paths.parts))
    del store.files[part]
    assert commit_expiration.expire_log(log, 0) == 5
    assert checkpoint_versions(log) == [5, 8]
    for version in range(5, 11):
        assert same(load_version(log, version, states[-1]), states[version])


def expired_by_klog_0_2(log: CommitLog, version: int, name: CheckpointName) -> None:
    """Expire commits as klog 0.2 did: on the newest checkpoint, up to any version."""
    log.store.put_if_absent(log.paths.expiration(version), str(name).encode())
    for expired_version in range(version + 1):
        log.store.delete(log.paths.commit(expired_version))


def test_a_root_of_klog_0_2_gets_a_checkpoint_at_its_next_expired_version() -> None:
    log, states = history(CountingStore(), 11, checkpoints=(2, 8))
    name = max(log.checkpoint_names())
    expired_by_klog_0_2(log, 6, name)
    assert same(log.load(), states[-1])
    assert oldest_version(log, states[-1]) == 8
    assert commit_expiration.expire_log(log, 3 * DAY_MS) == 6
    assert checkpoint_versions(log) == [8]
    assert commit_expiration.expire_log(log, 2 * DAY_MS) == 8
    assert checkpoint_versions(log) == [8]
    for version in range(8, 11):
        assert same(load_version(log, version, states[-1]), states[version])


def test_what_an_interrupted_expiration_left_is_deleted_later() -> None:
    store = CountingStore()
    log, states = history(store, 11, checkpoints=(2, 8))
    before = dict(store.files)
    commit_expiration.expire_log(log, 0)
    expired = dict(store.files)
    store.files.update(before)
    assert commit_expiration.expire_log(log, 30 * DAY_MS) == 8
    assert store.files == expired
    assert same(log.load(), states[-1])


def test_nothing_is_deleted_while_the_checkpoint_of_the_last_expired_version_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be restored, and then needs its parts."""
    monkeypatch.setattr(checkpoint_parts, "PART_ROWS", 2)
    store = CountingStore()
    log, states = history(store, 11, checkpoints=(8,))
    commit_expiration.expire_log(log, 0)
    (name,) = log.checkpoint_names()
    lost = store.files.pop(log.paths.checkpoint(name))
    monkeypatch.setattr(checkpoint_parts, "PART_ROWS", 3)
    checkpoint_writer.write_checkpoint(log, states[-1])
    assert commit_expiration.expire_log(log, 0) == 8
    store.files[log.paths.checkpoint(name)] = lost
    assert same(load_version(log, 9, states[-1]), states[9])


class SlowExpiration(CountingStore):
    """Runs something between the listing of checkpoints and the deletion of the first."""

    meanwhile: object = None

    def delete(self, path: str) -> None:
        """Remove a file, after what comes in between."""
        meanwhile, self.meanwhile = self.meanwhile, None
        if callable(meanwhile):
            meanwhile()
        super().delete(path)


def test_a_slow_expiration_deletes_no_checkpoint_that_another_has_raised_it_to() -> None:
    store = SlowExpiration()
    log, states = history(store, 11, checkpoints=(2, 5, 8))
    store.meanwhile = lambda: commit_expiration.expire_log(log, 2 * DAY_MS)
    assert commit_expiration.expire_log(log, 5 * DAY_MS) == 5
    assert log.last_expired_version() == 8
    assert checkpoint_versions(log) == [8]
    assert same(load_version(log, 8, states[-1]), states[8])


def test_an_expiration_with_nothing_to_do_asks_little() -> None:
    store = CountingStore()
    log, _ = history(store, 11, checkpoints=(2, 5, 8))
    commit_expiration.expire_log(log, 0)
    store.requests.clear()
    log.load()
    load = store.requests.copy()
    store.requests.clear()
    commit_expiration.expire_log(log, 0)
    more = store.requests - load
    assert more.keys() <= {"list", "read"}
    assert (more["list"], more["read"]) == LITTLE
