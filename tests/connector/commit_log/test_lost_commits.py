"""Files of a topic's log that were lost at rest: an error when they are needed, never skipped."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from klog.connector.commit_log import checkpoint_writer
from klog.connector.commit_log.commit_log import MAX_UNLISTED_COMMITS, CommitLog
from klog.connector.commit_log.commit_log_reader import LISTING_INTERVAL_MS
from klog.connector.commit_log.commit_tail import read_listed
from klog.connector.commit_log.lost_commit_errors import Evidence
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import KlogError, LostCommitError
from tests.connector.commit_log.memory_logs import (
    Clock,
    CountingStore,
    append,
    appended,
    checkpoint_and_expire,
    created,
    same,
    topic_log,
)


def eight(store: CountingStore, clock: Clock | None = None) -> tuple[CommitLog, TopicState]:
    """Make a topic and append eight times: versions 0 to 8."""
    log = topic_log(store, clock)
    return log, appended(log, created(log), 8)


@pytest.mark.parametrize("lost", [[0], [4], [7], [1, 2, 3], [0, 5], list(range(8))])
def test_a_cold_load_tells_the_lowest_lost_commit(lost: list[int]) -> None:
    store = CountingStore()
    log, state = eight(store)
    for version in lost:
        del store.files[log.paths.commit(version)]
    with pytest.raises(LostCommitError, match=rf"log/0*{lost[0]}\.json: this commit is lost.*008"):
        log.load()
    before = dict(store.files)
    with pytest.raises(LostCommitError):
        append(log, replace(state, loaded_ms=-1), (0, 1))
    assert store.files == before


def test_what_a_checkpoint_stands_for_is_not_needed_by_a_load() -> None:
    store = CountingStore()
    log, state = eight(store)
    checkpoint_writer.write_checkpoint(log, state)
    for version in (0, 3, 7):
        del store.files[log.paths.commit(version)]
    assert same(log.load(), state)
    state = append(log, log.load(), (0, 1))
    del store.files[log.paths.commit(8)]
    assert same(log.load(), state)


def test_a_checkpoint_above_the_last_commit_shows_that_commits_were_lost() -> None:
    store = CountingStore()
    log, state = eight(store)
    path = log.paths.checkpoint(checkpoint_writer.write_checkpoint(log, state))
    for version in (7, 8):
        del store.files[log.paths.commit(version)]
    with pytest.raises(LostCommitError, match=rf"008\.json: this commit is lost.*{path}"):
        log.load()


def test_a_checkpoint_of_another_log_is_refused() -> None:
    store = CountingStore()
    log, state = eight(store)
    checkpoint_writer.write_checkpoint(log, replace(state, writes={"another": 8}))
    with pytest.raises(KlogError, match=r"0008-.*parquet: this checkpoint is not"):
        log.load()


def test_a_lost_commit_after_a_checkpoint_is_an_error() -> None:
    store = CountingStore()
    log, state = eight(store)
    checkpoint_writer.write_checkpoint(log, state)
    state = appended(log, state, 4)
    del store.files[log.paths.commit(10)]
    with pytest.raises(LostCommitError, match=r"010\.json"):
        log.load()


def test_a_warm_writer_reads_the_number_above_its_own() -> None:
    store = CountingStore()
    log, state = eight(store)
    appended(log, state, 2)
    del store.files[log.paths.commit(9)]
    with pytest.raises(LostCommitError, match=r"009\.json"):
        append(log, state, (0, 1))
    assert log.paths.commit(9) not in store.files


def test_a_late_warm_writer_commits_after_the_others() -> None:
    log, state = eight(CountingStore())
    later = appended(log, state, 2)
    assert append(log, state, (0, 1)).version == later.version + 1


def test_a_warm_writer_lists_after_a_minute() -> None:
    store, clock = CountingStore(), Clock()
    log, state = eight(store, clock)
    del store.files[log.paths.commit(4)]
    state = append(log, state, (0, 1))
    clock.now_ms += LISTING_INTERVAL_MS
    with pytest.raises(LostCommitError, match=r"004\.json"):
        append(log, state, (0, 1))
    assert log.paths.commit(10) not in store.files


def test_a_writer_that_loads_before_each_commit_loads_cold_after_a_minute() -> None:
    """Each of its loads lists from its own state on, which shows nothing of what is below."""
    store, clock = CountingStore(), Clock()
    log, state = eight(store, clock)
    del store.files[log.paths.commit(4)]
    clock.now_ms += LISTING_INTERVAL_MS
    state = log.load(state)
    with pytest.raises(LostCommitError, match=r"004\.json"):
        append(log, state, (0, 1))
    assert log.paths.commit(9) not in store.files


@pytest.mark.parametrize(
    ("own_commits", "after_ms"), [(8, LISTING_INTERVAL_MS), (MAX_UNLISTED_COMMITS - 1, 0)]
)
def test_a_load_for_a_commit_leaves_nothing_for_the_commit_to_load(
    own_commits: int, after_ms: int
) -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = appended(log, created(log), own_commits)
    clock.now_ms += after_ms
    store.requests.clear()
    loaded = log.load_to_commit(state)
    assert store.requests == {"list": 3, "read": 1 + own_commits + 1}
    store.requests.clear()
    append(log, loaded, (0, 1))
    assert store.requests == {"read": 1, "create": 1, "list": 1}


def test_a_load_for_a_commit_goes_on_from_its_state_within_the_minute() -> None:
    store, clock = CountingStore(), Clock()
    log, state = eight(store, clock)
    clock.now_ms += LISTING_INTERVAL_MS - 1
    store.requests.clear()
    assert log.load_to_commit(state) is state
    assert store.requests == {"read": 1, "list": 1}


def test_a_load_for_a_commit_after_a_minute_tells_a_lost_commit() -> None:
    store, clock = CountingStore(), Clock()
    log, state = eight(store, clock)
    del store.files[log.paths.commit(4)]
    clock.now_ms += LISTING_INTERVAL_MS
    with pytest.raises(LostCommitError, match=r"004\.json"):
        log.load_to_commit(state)


def test_a_warm_reader_tells_by_a_checkpoint_that_the_last_commits_are_lost() -> None:
    store, clock = CountingStore(), Clock()
    log, state = eight(store, clock)
    path = log.paths.checkpoint(checkpoint_writer.write_checkpoint(log, appended(log, state, 2)))
    for version in (9, 10):
        del store.files[log.paths.commit(version)]
    clock.now_ms += LISTING_INTERVAL_MS
    with pytest.raises(LostCommitError, match=rf"009\.json|010\.json.*{path}"):
        log.load(state)


def test_a_clock_that_goes_back_makes_a_writer_list() -> None:
    store, clock = CountingStore(), Clock()
    log, state = eight(store, clock)
    del store.files[log.paths.commit(4)]
    clock.now_ms -= 1
    with pytest.raises(LostCommitError):
        append(log, state, (0, 1))


def test_a_warm_writer_loads_cold_after_a_hundred_commits_of_its_own() -> None:
    """Version 0 is the first of them, so version 99 is the last before the load."""
    store = CountingStore()
    log, state = eight(store)
    del store.files[log.paths.commit(4)]
    with pytest.raises(LostCommitError, match=r"004\.json"):
        appended(log, state, 101)
    assert log.paths.commit(99) in store.files
    assert log.paths.commit(100) not in store.files


def test_a_warm_reader_lists_once_a_minute() -> None:
    store, clock = CountingStore(), Clock()
    log, state = eight(store, clock)
    clock.now_ms += LISTING_INTERVAL_MS
    store.requests.clear()
    again = log.load(state)
    assert same(again, state)
    # Its own commit and the next; the commits from its own on, the expiration files and the
    # checkpoints.
    assert store.requests == {"read": 2, "list": 3}
    store.requests.clear()
    assert log.load(again) is again
    assert store.requests == {"read": 1, "list": 1}


@pytest.mark.parametrize("lost", [8, 9, 10])
def test_a_warm_reader_tells_what_is_lost_from_its_own_commit_on(lost: int) -> None:
    store, clock = CountingStore(), Clock()
    log, state = eight(store, clock)
    appended(log, state, 3)
    del store.files[log.paths.commit(lost)]
    clock.now_ms += LISTING_INTERVAL_MS
    with pytest.raises(LostCommitError, match=rf"0{lost}\.json"):
        log.load(state)


def test_a_process_tells_that_the_last_commit_it_knows_is_lost() -> None:
    store, clock = CountingStore(), Clock()
    log, state = eight(store, clock)
    del store.files[log.paths.commit(8)]
    assert log.load().version == 7  # Nothing shows it to another.
    clock.now_ms += LISTING_INTERVAL_MS
    with pytest.raises(LostCommitError, match="this process, which has loaded it, shows"):
        log.load(state)
    with pytest.raises(LostCommitError):
        append(log, state, (0, 1))


def test_a_commit_in_the_place_of_a_lost_one_is_never_replayed() -> None:
    store = CountingStore()
    log, _ = eight(store)
    path = log.paths.commit(4)
    fields = json.loads(store.files[path])
    for previous in (fields["previousWriteId"], None):
        other = {**fields, "writeId": "another", "previousWriteId": previous}
        store.files[path] = json.dumps(other).encode()
        with pytest.raises(LostCommitError) as caught:
            log.load()
        text = str(caught.value)
        assert text.startswith(
            f"{path}: commit 4 is write another (append), and {log.paths.commit(5)}"
        )
        assert f"it was write {fields['writeId']}: that commit was lost" in text
        assert "put the lost commit in its place from a copy" in text
        assert "other than klog" not in text


def test_commits_of_klog_0_1_say_nothing_of_the_one_before() -> None:
    store = CountingStore()
    log, state = eight(store)
    for version in range(9):
        fields = json.loads(store.files[log.paths.commit(version)])
        del fields["previousWriteId"]
        store.files[log.paths.commit(version)] = json.dumps(fields).encode()
    assert same(log.load(), state)
    assert append(log, log.load(), (0, 1)).version == 9


def test_a_listing_alone_proves_nothing() -> None:
    """What a listing leaves out is read, and read again."""

    class Late(CountingStore):
        hidden: str = ""

        def names_after(self, directory: str, name: str) -> list[str]:
            return [file for file in super().names_after(directory, name) if "004" not in file]

        def read(self, path: str, max_bytes: int | None = None) -> bytes:
            if path == self.hidden:
                self.hidden = ""
                raise FileNotFoundError(path)
            return super().read(path, max_bytes)

    store = Late()
    log, state = eight(store)
    store.hidden = log.paths.commit(4)
    assert same(log.load(), state)
    assert store.hidden == ""


def test_a_number_far_above_asks_for_few() -> None:
    store = CountingStore()
    log, _ = eight(store)
    store.files[log.paths.commit(10**9)] = b"{}"
    store.requests.clear()
    with pytest.raises(LostCommitError, match=r"009\.json: .*01000000000\.json shows"):
        log.load()
    assert store.requests["read"] < 20


def test_parallel_reads_give_the_same_tail() -> None:
    store = CountingStore()
    log, _ = eight(store)
    tail = read_listed(store, log.paths, log.read, 2, Evidence(8, "a test"))
    store.max_parallel_reads = 3
    assert read_listed(store, log.paths, log.read, 2, None) == tail
    assert [commit.version for commit in tail.commits] == list(range(2, 9))


def test_a_lost_expired_version_is_an_error_when_the_commits_are_needed() -> None:
    store, clock = CountingStore(), Clock()
    log, state = eight(store, clock)
    clock.now_ms += 10**10
    expired = checkpoint_and_expire(log)
    del store.files[log.paths.expiration(expired)]
    assert same(log.load(), state)
    (name,) = log.checkpoint_names()
    store.files[log.paths.checkpoint(name)] = b"torn"
    with pytest.raises(LostCommitError, match=r"000\.json"):
        log.load()
