"""Which files of earlier versions are gone, and the oldest version that has all of its files."""

from __future__ import annotations

import pytest

from klog.connector.commit_log import commit_builders, snapshot_leases, topic_vacuum
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.past_files import PastFiles
from klog.connector.commit_log.past_versions import load_version, version_at
from klog.connector.commit_log.topic_state import TopicState
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


def vacuumed(log: CommitLog, grace_ms: int | None) -> TopicState:
    topic_vacuum.vacuum(log, attempt("vacuum"), grace_ms)
    return log.load()


def test_files_of_all_versions_are_there_until_vacuum() -> None:
    log, states = history(CountingStore())
    files = PastFiles(log, states[-1])
    assert [files.missing(state.segments) for state in states] == [[]] * len(states)


def test_the_directory_of_a_partition_is_listed_once_and_only_for_removed_segments() -> None:
    store = CountingStore()
    log, states = history(store)
    store.requests.clear()
    files = PastFiles(log, states[-1])
    files.check(states[-1].version, states[-1].segments)
    assert not store.requests
    for state in states:
        files.check(state.version, state.segments)
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
                r".*are all there is 8: give .* klog\.removed\.file\.retention\.ms",
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
    assert files.oldest_version_after(0) == states[-1].version


def test_the_oldest_version_has_its_commits_too() -> None:
    log, states = history(CountingStore())
    log.clock.now_ms += DAY_MS  # type: ignore[attr-defined]
    checkpoint_and_expire(log)
    current = log.load()
    assert PastFiles(log, current).oldest_version_after(2) == states[-1].version - 1


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
