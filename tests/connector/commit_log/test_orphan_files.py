"""What vacuum may take, and when: cases that the simulation found, each by itself."""

from __future__ import annotations

from collections import Counter

import pytest

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
    commit_builders,
    commit_expiration,
    commit_history,
    orphan_files,
    snapshot_leases,
    temporary_files,
    topic_vacuum,
)
from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.store.readable_store import DirectoryEntry
from klog.connector.store.temporary_names import temporary_path
from klog.connector.store.writable_store import PutResult
from klog.errors import CommitConflictError
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    Clock,
    CountingStore,
    append,
    attempt,
    created,
    staged,
    topic_log,
)


def test_vacuum_takes_what_a_deleted_topic_leaves() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = append(log, created(log), (0, 3), store=store)
    log.commit(state, commit_builders.delete_topic(state.topic_id), attempt("delete-topic"))
    clock.now_ms += 2 * DAY_MS
    assert len(vacuumed(log).removed) == 1
    assert not [path for path in store.files if path.endswith(".log")]
    assert log.load().topic_id == ""


def test_vacuum_takes_pins_that_ended_a_grace_ago() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    created(log)
    snapshot_leases.take_lease(log, "0000000a", 0, lease_ms=DAY_MS)
    snapshot_leases.take_lease(log, "0000000b", 0, lease_ms=DAY_MS // 2)
    clock.now_ms += 2 * DAY_MS - 1
    vacuumed(log)
    assert [name for name in store.files if "/pins/" in name] == [log.paths.lease("0000000a")]
    clock.now_ms += 2
    vacuumed(log)
    assert not [name for name in store.files if "/pins/" in name]


def test_what_comes_of_age_while_vacuum_looks_stays() -> None:
    clock = Clock()
    store = SlowPins(clock)
    log = topic_log(store, clock)
    state = append(log, created(log), (0, 3), store=store)
    removal = log.commit(
        state, commit_builders.delete_records(state.topic_id, {0: 3}), attempt("delete-records")
    ).version
    clock.now_ms += DAY_MS // 2
    store.takes_ms = DAY_MS
    # A reader may have taken a lease after that, well inside its grace.
    assert orphan_files.find_orphan_files(log, DAY_MS).files.removed == ()
    store.takes_ms = 0
    assert orphan_files.find_orphan_files(log, DAY_MS).files.removed == ()
    # Only a vacuum version that a commit raised to the removal lets it go.
    assert len(orphan_files.find_orphan_files(log, DAY_MS, removal).files.removed) == 1


def test_keys_spread_over_other_partitions_are_refused() -> None:
    log = topic_log(CountingStore())
    state = created(log, partitions=2)
    write = staged(state, (0, 3))
    spread = append_commit.StagedSegments(
        write.topic_id, write.base_version, write.segments, partitions=2
    )
    log.commit(state, commit_builders.add_partitions(state.topic_id, 3), attempt("add-partitions"))
    with pytest.raises(CommitConflictError, match="3 partitions now"):
        log.commit(state, append_commit.append(spread), attempt("append"))
    assert log.commit(state, append_commit.append(write), attempt("append")).log_end == (3, 0, 0)


def test_what_may_not_be_durable_is_put_until_the_store_says_that_it_is() -> None:
    store = Unsynced()
    log = topic_log(store)
    state = created(log)
    store.fails, store.requests = 2, Counter()
    assert append(log, state, (0, 3)).log_end == (3, 0)
    assert store.requests["create"] == 3


def test_nothing_expires_on_a_checkpoint_that_may_not_be_durable() -> None:
    store, clock = Unsynced(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    for _ in range(3):
        checkpoint_writer.write_checkpoint(log, state)
        state = append(log, state, (0, 1))
    clock.now_ms += DAY_MS
    store.fails = 1
    assert commit_expiration.expire_log(log, 0) == -1
    assert log.paths.commit(0) in store.files
    assert commit_expiration.expire_log(log, 0) == 2
    assert log.paths.commit(0) not in store.files


def vacuumed(log: CommitLog) -> orphan_files.OrphanFiles:
    """Vacuum with a grace of a day."""
    return topic_vacuum.vacuum(log, attempt("vacuum"), DAY_MS)


class SlowPins(CountingStore):
    """A store where it takes long to list the pins."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock, self.takes_ms = clock, 0

    def entries(self, directory: str) -> list[DirectoryEntry]:
        if directory.endswith("/pins"):
            self._clock.now_ms += self.takes_ms
        return super().entries(directory)


class Unsynced(CountingStore):
    """A store that puts, and cannot sync for a while."""

    fails = 0

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        result = super().put_if_absent(path, data)
        self.fails -= 1
        return PutResult.UNKNOWN if self.fails >= 0 else result


@pytest.mark.parametrize("lease_id", ["1234567", "12345678/x", "../../12345678", "a" * 65, "ä" * 8])
def test_a_lease_that_vacuum_would_not_see_is_refused(lease_id: str) -> None:
    store = CountingStore()
    with pytest.raises(ValueError, match="is not the id of a lease"):
        snapshot_leases.take_lease(topic_log(store), lease_id, 0, DAY_MS)
    assert store.files == {}


def test_any_new_id_is_one_of_a_lease() -> None:
    log = topic_log(CountingStore())
    for version in range(20, 0, -1):
        snapshot_leases.take_lease(log, random_uuid(), version, DAY_MS)
        assert snapshot_leases.min_leased_version(log, snapshot_leases.read_leases(log)) == version


@pytest.mark.parametrize(
    "data",
    [
        b"", b"junk", b"\xff", b"[]", b"1", b"[" * 100_000, b'{"version": 5}',
        b'{"version": 5, "expiresMs": 1e999}', b'{"version": 1e999, "expiresMs": 5}',
        b'{"version": -5, "expiresMs": 5}', b'{"version": 5, "expiresMs": "5"}',
        b'{"version": 5, "expiresMs": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_a_lease_that_cannot_be_read_keeps_everything(data: bytes) -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    created(log)
    store.files[log.paths.lease("12345678")] = data
    for step_ms in (0, -DAY_MS, 99 * DAY_MS):
        clock.now_ms += step_ms
        assert snapshot_leases.min_leased_version(log, snapshot_leases.read_leases(log)) == 0
    snapshot_leases.delete_expired_leases(log, clock.now_ms)
    assert snapshot_leases.min_leased_version(log, snapshot_leases.read_leases(log)) == 0


def test_a_vacuum_version_is_of_a_commit_that_is_known_to_be_old() -> None:
    """A log that keeps its commits for less than vacuum's grace has cleaned some that are young."""
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    for _ in range(5):
        state = append(log, state, (0, 1))
    checkpoint_writer.write_checkpoint(log, state)
    begun = staged(state, (0, 1), store=store)
    state = append(log, state, (0, 1))
    clock.now_ms += 1000
    assert commit_expiration.expire_log(log, 0) == 5
    assert topic_vacuum.vacuum(log, attempt("vacuum")).uncommitted == ()
    assert log.load().vacuum_version == 0
    assert log.commit(log.load(), append_commit.append(begun), attempt("append")).log_end == (
        7,
        0,
    )
    assert commit_history.version_at_time(log, log.load(), state.timestamp_ms) == state.version
    assert commit_history.version_at_time(log, log.load(), state.timestamp_ms - 1) == -1


def test_an_expired_version_that_is_being_written_is_not_deleted() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    for _ in range(5):
        state = append(log, state, (0, 1))
    store.files[log.paths.expiration(2)] = b""
    for version in (1, 3):
        path = temporary_path(log.paths.expiration(version), lambda: "0123456789abcdef")
        store.files[path] = b"x"
    files = temporary_files.find_temporary_files(
        log, [], temporary_files.list_folders(log), state.version
    )
    (only,) = files
    assert f"{1:020d}" in only
