"""Vacuum of a topic: garbage goes when it is old enough, and nothing else does."""

from __future__ import annotations

import pytest

from klog.connector.commit_log import (
    checkpoint_writer,
    commit_builders,
    orphan_files,
    snapshot_leases,
    topic_vacuum,
)
from klog.connector.commit_log.commit import Actions
from klog.connector.commit_log.commit_log_paths import CheckpointName
from klog.connector.store.temporary_names import temporary_path
from klog.errors import (
    KlogError,
)
from tests.connector.commit_log.listed_segments import list_segments
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


def test_vacuum_deletes_orphan_files_and_nothing_else() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    state = append(log, state, (0, 3), store=store)
    removed = state.segments["file"].to_pylist()
    staged(state, (0, 1), store=store)  # Never committed.
    clock.now_ms += 1000
    state = append(log, state, (0, 3), store=store)
    live = state.segments["file"].to_pylist()[1:]
    build = commit_builders.delete_records("an id", {0: 3})
    state = log.commit(state, build, attempt("delete-records"))
    waiting = orphan_files.WaitingFiles(1, 7, *[state.timestamp_ms + DAY_MS] * 2)
    expected = orphan_files.OrphanFiles((), (), waiting=waiting)
    assert topic_vacuum.vacuum(log, attempt("vacuum")) == expected
    snapshot_leases.take_lease(log, "12345678", state.version - 1, lease_ms=10 * DAY_MS)
    clock.now_ms += 2 * DAY_MS
    deleted = topic_vacuum.vacuum(log, attempt("vacuum"))
    assert (deleted.removed, len(deleted.uncommitted)) == ((), 1)
    snapshot_leases.release_lease(log, "12345678")
    deleted = topic_vacuum.vacuum(log, attempt("vacuum"))
    assert (deleted.removed, deleted.uncommitted) == (tuple(removed), ())
    assert list_segments(log) == set(live)
    topic_vacuum.vacuum(log, attempt("vacuum"))
    assert log.load().removed.num_rows == 0


def test_vacuum_takes_the_files_of_a_deleted_topic() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    append(log, created(log), (0, 3), (1, 2), store=store)
    deleted = log.commit(log.load(), commit_builders.delete_topic("an id"), attempt("delete-topic"))
    assert topic_vacuum.vacuum(log, attempt("vacuum")).files == {}
    clock.now_ms += 2 * DAY_MS
    vacuumed = topic_vacuum.vacuum(log, attempt("vacuum"))
    assert (len(vacuumed.removed), vacuumed.uncommitted) == (2, ())
    assert sum(vacuumed.files.values()) == 14
    assert list_segments(log) == set()
    topic_vacuum.vacuum(log, attempt("vacuum"))
    after = log.load()
    assert (after.removed.num_rows, after.topic_id) == (0, "")
    assert after.version > deleted.version


def test_nothing_but_vacuum_follows_a_deletion() -> None:
    log = topic_log(CountingStore())
    nothing = commit_builders.set_vacuum_version(3, ())
    with pytest.raises(KlogError, match="the topic is not there"):
        log.commit(log.load(), nothing, attempt("vacuum"))
    state = log.commit(created(log), commit_builders.delete_topic("an id"), attempt("delete-topic"))
    with pytest.raises(KlogError, match="the topic is not there"):
        log.commit(state, lambda _: Actions(vacuum_version=1, config={"a": "b"}), attempt("vacuum"))


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_without_its_log_is_an_orphan_of_the_same_age(suffix: str) -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    killed = staged(state, (0, 1)).segments[0]["file"].removesuffix(".log") + suffix
    store.files[log.paths.data(killed)] = b"12345"
    clock.now_ms += 1000
    append(log, state, (0, 1), store=store)
    assert topic_vacuum.vacuum(log, attempt("vacuum")).files == {}
    clock.now_ms += 2 * DAY_MS
    assert topic_vacuum.preview_vacuum(log).files == {killed: 5}
    assert topic_vacuum.vacuum(log, attempt("vacuum")).files == {killed: 5}
    assert log.paths.data(killed) not in store.files


def temporary(path: str) -> str:
    """Name what a writer of `path` leaves when it is killed."""
    return temporary_path(path, lambda: "0123456789abcdef")


def test_temporary_files_go_by_the_version_in_their_names() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    for _ in range(3):
        clock.now_ms += 1000
        state = append(log, state, (0, 1), store=store)

    def killed_at(version: int) -> set[str]:
        born = f"orders-0/{0:020d}-{version:010d}-00000000"
        return {
            *(temporary(log.paths.data(born + end)) for end in (".log", ".index", ".timeindex")),
            temporary(log.paths.commit(version)),
            temporary(log.paths.checkpoint(CheckpointName(version, 1, 1))),
            temporary(log.paths.expiration(version)),
        }

    kept = {
        temporary(log.paths.description),
        temporary(log.paths.lease("12345678")),
        temporary(f"{log.paths.root}/other-0/{0:020d}-{0:010d}-00000000.log"),
        f"{log.paths.root}/orders-0/.notes.tmp",
        f"{log.paths.root}/orders-0/.{'0' * 20}.log.0123456789abcdef.tmp",
        temporary(log.paths.expiration(2)),
    } | killed_at(3)
    gone = (killed_at(0) | killed_at(1) | killed_at(2)) - kept
    store.files.update(dict.fromkeys(kept | gone, b"123"))
    assert topic_vacuum.vacuum(log, attempt("vacuum")).temporary_files == ()
    checkpoint_writer.write_checkpoint(log, state)
    store.files[log.paths.expiration(2)] = b""
    clock.now_ms += 2 * DAY_MS
    before = dict(store.files)
    preview = topic_vacuum.preview_vacuum(log)
    assert store.files == before  # A dry run writes nothing, nor a vacuum version.
    assert {log.paths.data(file) for file in preview.temporary_files} == gone
    assert sum(preview.files.values()) == 3 * len(gone)
    assert topic_vacuum.vacuum(log, attempt("vacuum")) == preview
    assert before.keys() - store.files.keys() == gone


def test_a_removed_file_that_is_not_listed_is_not_forgotten_within_the_grace() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = append(log, created(log), (0, 3), store=store)
    (file,) = state.segments["file"].to_pylist()
    data = store.files.pop(log.paths.data(file))  # Listed late.
    clock.now_ms += 2 * DAY_MS  # Its birth is below the horizon that vacuum commits.
    state = log.commit(
        state, commit_builders.delete_records("an id", {0: 3}), attempt("delete-records")
    )
    topic_vacuum.vacuum(log, attempt("vacuum"), DAY_MS)
    store.files[log.paths.data(file)] = data
    assert topic_vacuum.vacuum(log, attempt("vacuum"), DAY_MS).files == {}
    clock.now_ms += 2 * DAY_MS
    assert topic_vacuum.vacuum(log, attempt("vacuum"), DAY_MS).removed == (file,)


def test_vacuum_drops_pins_that_ended_longer_ago_than_the_grace() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    for name, lease_ms in (("00000001", 0), ("00000002", 2 * DAY_MS)):
        snapshot_leases.take_lease(log, name, state.version, lease_ms)
    store.files[log.paths.lease("00000003")] = b"torn"
    clock.now_ms += DAY_MS + 1
    assert topic_vacuum.preview_vacuum(log).files == {}
    assert len(log.names(log.paths.leases)) == 3
    topic_vacuum.vacuum(log, attempt("vacuum"))
    assert log.names(log.paths.leases) == ["00000002.json", "00000003.json"]
    assert snapshot_leases.min_leased_version(log, snapshot_leases.read_leases(log)) == 0
