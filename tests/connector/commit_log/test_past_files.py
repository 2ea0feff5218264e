"""Which files of earlier versions are gone, and a later version that has all of its files."""

from __future__ import annotations

from threading import Barrier

import pyarrow as pa
import pytest

from klog.connector.commit_log import commit_builders, snapshot_leases, topic_vacuum
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.past_files import PastFiles
from klog.connector.commit_log.past_versions import load_version, version_at
from klog.connector.commit_log.segment_file_sizes import MAX_SINGLE_FILES
from klog.connector.commit_log.segment_path import index_file_path
from klog.connector.commit_log.topic_restore import existing_segments, restore_log
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.readable_store import DirectoryEntry, File
from klog.errors import LostCommitError, OptionError
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    Clock,
    CountingStore,
    append,
    attempt,
    checkpoint_and_expire,
    created,
    topic_log,
)
from tests.support.waiting import TIMEOUT_SECONDS


def history(store: CountingStore, days: int = 8) -> tuple[CommitLog, list[TopicState]]:
    """Append every day to partition 0; from day 4 on, delete the oldest segment after that."""
    log = topic_log(store, Clock())
    states = [append(log, created(log), (0, 3), (1, 1), store=store)]
    for day in range(1, days):
        log.clock.now_ms += DAY_MS  # type: ignore[attr-defined]
        states.append(append(log, states[-1], (0, 3), store=store))
        if day >= 4:
            build = commit_builders.delete_records("an id", {0: 3 * (day - 3)})
            states.append(log.commit(states[-1], build, attempt("delete-records")))
    return log, states


def write_files(log: CommitLog, store: CountingStore, segments: pa.Table) -> None:
    """Write files of the sizes that the entries say."""
    for entry in segments.to_pylist():
        path = log.paths.data(entry["file"])
        store.files[path] = bytes(entry["size_bytes"])
        for suffix, column in (("index", "index_bytes"), ("timeindex", "time_index_bytes")):
            if entry[column]:
                store.files[index_file_path(path, suffix)] = bytes(entry[column])


def vacuumed(log: CommitLog, grace_ms: int | None) -> TopicState:
    topic_vacuum.vacuum(log, attempt("vacuum"), grace_ms)
    return log.load()


def test_files_of_all_versions_are_there_until_vacuum() -> None:
    log, states = history(CountingStore())
    files = PastFiles(log, states[-1])
    assert [files.missing(state.segments) for state in states] == [[]] * len(states)


def test_a_few_removed_files_are_asked_for_one_by_one_and_once() -> None:
    store = CountingStore()
    log, states = history(store)
    store.requests.clear()
    files = PastFiles(log, states[-1])
    files.check(states[-1].version, states[-1].segments)
    assert not store.requests
    for state in states:
        files.check(state.version, state.segments)
    removed = {file for state in states for file in state.segments["file"].to_pylist()}
    removed -= set(states[-1].segments["file"].to_pylist())
    assert store.requests == {"open": len(removed)}


def test_the_directory_of_a_partition_is_listed_once_for_many_removed_files() -> None:
    store = CountingStore()
    log, states = history(store, days=MAX_SINGLE_FILES + 6)
    build = commit_builders.delete_records("an id", {0: states[-1].log_end[0]})
    states.append(log.commit(states[-1], build, attempt("delete-records")))
    store.requests.clear()
    files = PastFiles(log, states[-1])
    for _ in range(2):
        assert not files.missing(pa.concat_tables([state.segments for state in states]))
    assert store.requests == {"list": 1}


def test_a_deleted_file_is_named_with_the_oldest_version_that_has_all() -> None:
    log, states = history(CountingStore())
    current = vacuumed(log, DAY_MS * 3 // 2)
    # Those that were removed on days 4 and 5 are gone: version 8 removed the last of them.
    files = PastFiles(log, current, "asOfVersion")
    for state in states:
        missing = files.missing(state.segments)
        assert bool(missing) == (state.version < 8)
        if missing:
            with pytest.raises(
                OptionError,
                match=rf"asOfVersion: version {state.version} of topic orders needs {missing[0]}, "
                r".* Version 8 can be read: give .* klog\.removed\.file\.retention\.ms",
            ):
                files.check(state.version, state.segments)
    segment = states[0].segments.slice(1, 1)  # Partition 1: live.
    files.check(0, segment)


def test_purged_segments_are_gone_too() -> None:
    log, states = history(CountingStore())
    log.clock.now_ms += DAY_MS  # type: ignore[attr-defined]
    vacuumed(log, 0)
    current = vacuumed(log, 0)
    assert not current.removed.num_rows
    files = PastFiles(log, current)
    assert files.missing(states[0].segments)
    assert files.readable_version_after(0) == states[-1].version


def test_the_oldest_version_has_its_commits_too() -> None:
    log, states = history(CountingStore())
    log.clock.now_ms += DAY_MS  # type: ignore[attr-defined]
    checkpoint_and_expire(log)
    current = log.load()
    assert PastFiles(log, current).readable_version_after(2) == states[-1].version - 1


@pytest.mark.parametrize(("days", "is_there"), [(None, False), (30, True)])
def test_the_config_of_the_topic_keeps_files(days: int | None, is_there: bool) -> None:
    log, states = history(CountingStore())
    configs = {} if days is None else {"klog.removed.file.retention.ms": str(days * DAY_MS)}
    build = commit_builders.alter_config("an id", {}, configs)
    log.commit(states[-1], build, attempt("alter-config"))
    log.clock.now_ms += 20 * DAY_MS  # type: ignore[attr-defined]
    current = vacuumed(log, None)
    assert (not PastFiles(log, current).missing(states[0].segments)) == is_there
    log.clock.now_ms += 20 * DAY_MS  # type: ignore[attr-defined]
    assert PastFiles(log, vacuumed(log, None)).missing(states[0].segments)


def test_a_lease_keeps_the_files_of_its_version() -> None:
    """A reader may take one; without it, a file that goes is the same error."""
    log, states = history(CountingStore())
    snapshot_leases.take_lease(log, "a-lease-of-mine", states[2].version, DAY_MS)
    current = vacuumed(log, 0)
    assert not PastFiles(log, current).missing(states[2].segments)
    snapshot_leases.release_lease(log, "a-lease-of-mine")
    assert PastFiles(log, vacuumed(log, 0)).missing(states[2].segments)


def test_a_time_is_the_last_version_at_or_before_it() -> None:
    store = CountingStore()
    log, states = history(store)
    times = {state.version: state.timestamp_ms for state in states}
    for timestamp_ms in times.values():
        for later_ms in (0, 1, DAY_MS // 2):
            expected = max(v for v, ms in times.items() if ms <= timestamp_ms + later_ms)
            assert version_at(log, timestamp_ms + later_ms, states[-1]) == expected
    assert version_at(log, 10**15, states[-1]) == states[-1].version
    store.requests.clear()
    version_at(log, times[3], states[-1])
    assert store.requests["read"] <= 5


def test_a_time_before_the_first_commit_is_refused() -> None:
    log, states = history(CountingStore())
    first = log.read_without_sidecar(0)
    assert first is not None
    assert version_at(log, first.timestamp_ms, states[-1]) == 0
    with pytest.raises(OptionError, match=r"at 2023-.*Z: .* 0 to 12\. .*Version 0 is of 20"):
        version_at(log, first.timestamp_ms - 1, states[-1])


def test_a_time_before_the_last_expired_version_is_refused() -> None:
    log, states = history(CountingStore())
    log.clock.now_ms += DAY_MS  # type: ignore[attr-defined]
    last_expired = checkpoint_and_expire(log)
    current = log.load()
    oldest = load_version(log, last_expired, current)
    assert version_at(log, oldest.timestamp_ms, current) == last_expired
    with pytest.raises(OptionError, match=rf"Version {last_expired} is of 20"):
        version_at(log, oldest.timestamp_ms - 1, current)
    with pytest.raises(OptionError, match=rf"those .* are {last_expired} to {current.version}"):
        version_at(log, states[0].timestamp_ms, current)


def test_a_lost_commit_whose_time_is_needed_is_named() -> None:
    store = CountingStore()
    log, states = history(store)
    del store.files[log.paths.commit(5)]
    with pytest.raises(LostCommitError, match=r"0005\.json: this commit is lost"):
        version_at(log, states[1].timestamp_ms, states[-1])


def test_a_version_between_a_restore_and_its_undoing_is_not_promised() -> None:
    """Versions 2 and 4 have all files, 1 and 3 have not: the error of each names one that has."""
    store = CountingStore()
    log = topic_log(store, Clock())
    state = append(log, created(log), (0, 3), store=store)
    write_files(log, store, state.segments)
    remove = commit_builders.delete_records("an id", {0: 3})
    state = log.commit(state, remove, attempt("delete-records"))
    restore_log(log, state, 1)
    state = log.commit(log.load(), remove, attempt("delete-records"))
    log.clock.now_ms += DAY_MS  # type: ignore[attr-defined]
    current = vacuumed(log, 0)
    files = PastFiles(log, current)
    is_readable = {}
    for version in range(state.version + 1):
        is_readable[version] = not files.missing(load_version(log, version, current).segments)
    assert is_readable == {0: True, 1: False, 2: True, 3: False, 4: True}
    for version in (1, 3):
        segments = load_version(log, version, current).segments
        with pytest.raises(OptionError, match=r"Version 4 can be read: give that one, or another"):
            files.check(version, segments)


class SideBySide(CountingStore):
    """A store whose requests each wait until three have started."""

    max_parallel_reads = 3
    barrier = Barrier(3)

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """List a directory."""
        if "/orders-" in directory:
            self.barrier.wait(TIMEOUT_SECONDS)
        return super().entries(directory)

    def open(self, path: str, size_bytes: int | None = None) -> File:
        """Open a file."""
        self.barrier.wait(TIMEOUT_SECONDS)
        return super().open(path)


@pytest.mark.parametrize(("count", "kind"), [(3, "open"), (12, "list")])
def test_removed_files_are_looked_for_side_by_side(count: int, kind: str) -> None:
    store = SideBySide()
    log = topic_log(store, Clock())
    state = log.commit(
        TopicState(),
        commit_builders.create_topic(Topic("an id", count), {}),
        attempt("create-topic"),
    )
    state = append(log, state, *((number, 3) for number in range(count)), store=store)
    write_files(log, store, state.segments)
    remove = commit_builders.delete_records("an id", dict.fromkeys(range(count), 3))
    current = log.commit(state, remove, attempt("delete-records"))
    store.requests.clear()
    assert existing_segments(log, state, current) == set(state.segments["file"].to_pylist())
    assert store.requests == {kind: count}
