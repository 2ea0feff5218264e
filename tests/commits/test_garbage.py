"""What vacuum may take, and when: cases that the simulation found, each by itself."""

from __future__ import annotations

from collections import Counter

import pytest

from klog.connector.log import cleaning, garbage, leftovers, operations, pins
from klog.connector.log.author import random_uuid
from klog.connector.log.topic_log import TopicLog
from klog.connector.store.contract import Put
from klog.connector.store.files import Entry
from klog.connector.store.temporary import temporary_path
from klog.errors import CommitConflictError
from tests.commits.logs import (
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
    log.commit(state, operations.delete_topic(state.topic_id), attempt("delete-topic"))
    clock.now_ms += 2 * DAY_MS
    assert len(vacuumed(log).removed) == 1
    assert not [path for path in store.files if path.endswith(".log")]
    assert log.load().topic_id == ""


def test_vacuum_takes_pins_that_ended_a_grace_ago() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    created(log)
    pins.pin(log, "0000000a", 0, lease_ms=DAY_MS)
    pins.pin(log, "0000000b", 0, lease_ms=DAY_MS // 2)
    clock.now_ms += 2 * DAY_MS - 1
    vacuumed(log)
    assert [name for name in store.files if "/pins/" in name] == [log.paths.pin("0000000a")]
    clock.now_ms += 2
    vacuumed(log)
    assert not [name for name in store.files if "/pins/" in name]


def test_what_comes_of_age_while_vacuum_looks_stays() -> None:
    clock = Clock()
    store = SlowPins(clock)
    log = topic_log(store, clock)
    state = append(log, created(log), (0, 3), store=store)
    log.commit(state, operations.delete_records(state.topic_id, {0: 3}), attempt("delete-records"))
    clock.now_ms += DAY_MS // 2
    store.takes_ms = DAY_MS
    # A reader may have put a pin behind that look, well inside its grace.
    assert garbage.find_garbage(log, DAY_MS).garbage.removed == ()
    store.takes_ms = 0
    assert len(garbage.find_garbage(log, DAY_MS).garbage.removed) == 1


def test_keys_spread_over_other_partitions_are_refused() -> None:
    log = topic_log(CountingStore())
    state = created(log, partitions=2)
    found = staged(state, (0, 3))
    spread = operations.Staged(found.topic_id, found.birth, found.segments, partitions=2)
    log.commit(state, operations.add_partitions(state.topic_id, 3), attempt("add-partitions"))
    with pytest.raises(CommitConflictError, match="3 partitions now"):
        log.commit(state, operations.append(spread), attempt("append"))
    assert log.commit(state, operations.append(found), attempt("append")).log_end == (3, 0, 0)


def test_what_may_not_be_durable_is_put_until_the_store_says_that_it_is() -> None:
    store = Unsynced()
    log = topic_log(store)
    state = created(log)
    store.fails, store.requests = 2, Counter()
    assert append(log, state, (0, 3)).log_end == (3, 0)
    assert store.requests["create"] == 3


def test_nothing_is_cleaned_behind_a_checkpoint_that_may_not_be_durable() -> None:
    store, clock = Unsynced(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    for _ in range(3):
        state = append(log, state, (0, 1))
    cleaning.write_checkpoint(log, state)
    clock.now_ms += DAY_MS
    store.fails = 1
    assert cleaning.clean_log(log, 0) == -1
    assert log.paths.commit(0) in store.files
    assert cleaning.clean_log(log, 0) == 2
    assert log.paths.commit(0) not in store.files


def vacuumed(log: TopicLog) -> garbage.Garbage:
    """Vacuum with a grace of a day."""
    return garbage.vacuum(log, attempt("vacuum"), DAY_MS)


class SlowPins(CountingStore):
    """A store where it takes long to list the pins."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock, self.takes_ms = clock, 0

    def entries(self, directory: str) -> list[Entry]:
        if directory.endswith("/pins"):
            self._clock.now_ms += self.takes_ms
        return super().entries(directory)


class Unsynced(CountingStore):
    """A store that puts, and cannot sync for a while."""

    fails = 0

    def put_if_absent(self, path: str, data: bytes) -> Put:
        found = super().put_if_absent(path, data)
        self.fails -= 1
        return Put.UNKNOWN if self.fails >= 0 else found


@pytest.mark.parametrize("pin_id", ["1234567", "12345678/x", "../../12345678", "a" * 65, "ä" * 8])
def test_a_pin_that_vacuum_would_not_see_is_refused(pin_id: str) -> None:
    store = CountingStore()
    with pytest.raises(ValueError, match="is no id of a pin"):
        pins.pin(topic_log(store), pin_id, 0, DAY_MS)
    assert store.files == {}


def test_any_new_id_is_one_of_a_pin() -> None:
    log = topic_log(CountingStore())
    for version in range(20, 0, -1):
        pins.pin(log, random_uuid(), version, DAY_MS)
        assert pins.pinned_version(log, pins.read_pins(log)) == version


@pytest.mark.parametrize(
    "said",
    [
        b"", b"junk", b"\xff", b"[]", b"1", b"[" * 100_000, b'{"version": 5}',
        b'{"version": 5, "expiresMs": 1e999}', b'{"version": 1e999, "expiresMs": 5}',
        b'{"version": -5, "expiresMs": 5}', b'{"version": 5, "expiresMs": "5"}',
        b'{"version": 5, "expiresMs": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_a_pin_that_cannot_be_read_keeps_everything(said: bytes) -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    created(log)
    store.files[log.paths.pin("12345678")] = said
    for step_ms in (0, -DAY_MS, 99 * DAY_MS):
        clock.now_ms += step_ms
        assert pins.pinned_version(log, pins.read_pins(log)) == 0
    pins.drop_pins(log, clock.now_ms)
    assert pins.pinned_version(log, pins.read_pins(log)) == 0


def test_a_horizon_is_of_a_commit_that_is_known_to_be_old() -> None:
    """A log that keeps its commits for less than vacuum's grace has cleaned some that are young."""
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    for _ in range(5):
        state = append(log, state, (0, 1))
    cleaning.write_checkpoint(log, state)
    begun = staged(state, (0, 1), store=store)
    state = append(log, state, (0, 1))
    clock.now_ms += 1000
    assert cleaning.clean_log(log, 0) == 5
    assert garbage.vacuum(log, attempt("vacuum")).orphans == ()
    assert log.load().horizon == 0
    assert log.commit(log.load(), operations.append(begun), attempt("append")).log_end == (7, 0)
    assert cleaning.version_before(log, log.load(), state.timestamp_ms) == state.version
    assert cleaning.version_before(log, log.load(), state.timestamp_ms - 1) == -1


def test_a_boundary_that_is_being_made_is_no_leftover() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    for _ in range(5):
        state = append(log, state, (0, 1))
    store.files[log.paths.boundary(2)] = b""
    for version in (1, 3):
        path = temporary_path(log.paths.boundary(version), lambda: "0123456789abcdef")
        store.files[path] = b"x"
    found = leftovers.find_leftovers(log, [], leftovers.list_folders(log), state.version)
    (only,) = found
    assert f"{1:020d}" in only
