"""The last commits lost: their traces are shown and kept until a user says otherwise."""

from __future__ import annotations

import pytest

from klog.connector.commit_log import (
    checkpoint_writer,
    commit_builders,
    snapshot_leases,
    topic_vacuum,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import CheckpointName, SidecarName
from klog.connector.commit_log.lost_commit_traces import find_lost_commit_traces
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import LostCommitError
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    ROOT,
    TOPIC,
    Clock,
    CountingStore,
    append,
    attempt,
    created,
    topic_log,
)

LOG = f"_klog/topics/{TOPIC}"


def eight(store: CountingStore, clock: Clock | None = None) -> tuple[CommitLog, TopicState]:
    """Append eight times, each segment born at the version before its commit."""
    log = topic_log(store, clock)
    state = created(log)
    for number in range(8):
        state = append(log, state, (number % 2, 3), store=store)
    return log, state


def lose(store: CountingStore, log: CommitLog, *versions: int) -> None:
    for version in versions:
        del store.files[log.paths.commit(version)]


def test_a_sound_topic_has_none() -> None:
    store = CountingStore()
    log, state = eight(store)
    checkpoint_writer.write_checkpoint(log, state)
    snapshot_leases.take_lease(log, "a-reader-x", state.version, DAY_MS)
    waiting = SidecarName(9, "0" * 16, 1, 1)  # Of a commit that is about to be put.
    store.files[log.paths.sidecar(waiting)] = b"x"
    assert find_lost_commit_traces(log) == {}


@pytest.mark.parametrize(
    ("file", "version"),
    [
        (str(SegmentPath(TOPIC, 0, 9, 8, "0badcafe")), 8),
        (f"{LOG}/checkpoints/{CheckpointName(8, 1, 1)}", 8),
        (f"{LOG}/parts/{CheckpointName(8, 1, 1)}", 8),
        (f"{LOG}/sidecars/{SidecarName(9, '0' * 16, 1, 1)}", 8),
    ],
)
def test_each_file_of_a_later_version_shows_it(file: str, version: int) -> None:
    store = CountingStore()
    log, _ = eight(store)
    store.files[f"{ROOT}/{file}"] = b"x"
    assert find_lost_commit_traces(log) == {}
    lose(store, log, 8)
    assert find_lost_commit_traces(log) == {file: version}


def test_a_lease_on_a_later_version_shows_it() -> None:
    store = CountingStore()
    log, state = eight(store)
    snapshot_leases.take_lease(log, "a-reader-x", state.version, DAY_MS)
    lose(store, log, 8)
    assert find_lost_commit_traces(log) == {f"{LOG}/pins/a-reader-x.json": 8}


def test_one_last_commit_may_leave_nothing() -> None:
    """Its segment was born before it: nobody can tell it from one that was never committed."""
    store = CountingStore()
    log, _ = eight(store)
    lose(store, log, 8)
    assert find_lost_commit_traces(log) == {}
    assert log.load().version == 7


def test_all_commits_lost_leave_their_segments() -> None:
    store = CountingStore()
    log, _ = eight(store)
    lose(store, log, *range(9))
    assert log.load().version == -1
    assert max(find_lost_commit_traces(log).values()) == 7


def test_vacuum_keeps_them_and_commits_nothing_until_it_is_told() -> None:
    store, clock = CountingStore(), Clock()
    log, _ = eight(store, clock)
    clock.now_ms += 3 * DAY_MS
    lose(store, log, 7, 8)
    before = dict(store.files)
    (trace,) = find_lost_commit_traces(log)
    dry = topic_vacuum.preview_vacuum(log)
    assert (dry.files, dry.uncommitted, dict(dry.traces)) == ({}, (), {trace: 7})
    with pytest.raises(LostCommitError, match=rf"{trace}: the log ends at version 6, .*version 7"):
        topic_vacuum.vacuum(log, attempt("vacuum"))
    assert store.files == before
    topic_vacuum.vacuum(log, attempt("vacuum"), discard_lost=True)
    assert log.load().version == 7
    clock.now_ms += 3 * DAY_MS
    for _ in range(2):
        topic_vacuum.vacuum(log, attempt("vacuum"), 0, discard_lost=True)
    assert find_lost_commit_traces(log) == {}
    assert f"{ROOT}/{trace}" not in store.files


def test_vacuum_still_deletes_what_commits_took_out() -> None:
    store, clock = CountingStore(), Clock()
    log, state = eight(store, clock)
    (first,) = state.segments["file"].to_pylist()[:1]
    build = commit_builders.delete_records(state.topic_id, {0: 3})
    state = log.commit(state, build, attempt("delete-records"))
    allowed = commit_builders.set_vacuum_version(state.version, ())
    state = log.commit(state, allowed, attempt("vacuum"))
    later = append(log, append(log, state, (0, 1), store=store), (0, 1), store=store)
    clock.now_ms += 3 * DAY_MS
    lose(store, log, later.version, later.version - 1)
    with pytest.raises(LostCommitError):
        topic_vacuum.vacuum(log, attempt("vacuum"))
    assert f"{ROOT}/{first}" not in store.files
