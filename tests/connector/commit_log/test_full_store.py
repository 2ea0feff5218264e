"""Vacuum where nothing more can be written: what needs no commit goes first, and makes room."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from klog.connector.commit_log import (
    checkpoint_writer,
    commit_builders,
    commit_expiration,
    topic_vacuum,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.segment_path import index_file_path
from klog.connector.store.temporary_names import temporary_path
from klog.connector.store.writable_store import PutResult
from klog.errors import KlogError
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


@dataclass
class FullStore(CountingStore):
    """Files in a dictionary that has room for so many bytes."""

    room_bytes: int = 1 << 30

    def fill(self) -> None:
        """Leave no room."""
        self.room_bytes = self._used()

    def _used(self) -> int:
        return sum(map(len, self.files.values()))

    def _make_room(self, data: bytes) -> None:
        if self._used() + len(data) > self.room_bytes:
            raise KlogError(f"not written: error {errno.ENOSPC}. Free some space there")

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Create a file; a name that is taken is seen first, as the real stores do."""
        if path not in self.files:
            self._make_room(data)
        return super().put_if_absent(path, data)

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file."""
        data = b"".join(pieces)
        self._make_room(data)
        super().put(path, [data])


def littered(store: CountingStore, clock: Clock) -> tuple[CommitLog, dict[str, str]]:
    """Make a log with a file of each kind that may go, two days old; gives the files by kind.

    `late` is an orphan that only a higher horizon lets go.
    """
    log = topic_log(store, clock)
    state = append(log, created(log), (0, 3), store=store)
    removed = state.segments["file"][0].as_py()
    files = {"removed": removed, "orphan": staged(state, (0, 1), store=store).segments[0]["file"]}
    temporary = temporary_path(log.paths.commit(1), lambda: "0123456789abcdef")
    files["temporary"] = temporary.removeprefix(f"{log.paths.root}/")
    store.files[temporary] = bytes(2000)
    store.files[log.paths.data(removed)] = bytes(2000)
    store.files[log.paths.data(files["orphan"])] = bytes(2000)
    state = append(log, state, (0, 3), store=store)
    state = log.commit(
        state, commit_builders.delete_records("an id", {0: 3}), attempt("delete-records")
    )
    state = log.commit(state, commit_builders.set_vacuum_version(3, ()), attempt("vacuum"))
    files["late"] = staged(state, (0, 1), store=store).segments[0]["file"]
    clock.now_ms += 1000
    append(log, state, (1, 3), store=store)
    clock.now_ms += 2 * DAY_MS
    return log, files


@pytest.mark.parametrize("kind", ["removed", "orphan", "temporary"])
def test_what_a_committed_state_allows_makes_room_for_the_commit(kind: str) -> None:
    store, clock = FullStore(), Clock()
    log, files = littered(store, clock)
    for other in {"removed", "orphan", "temporary"} - {kind}:
        del store.files[log.paths.data(files[other])]
    before = log.load()
    store.fill()
    deleted = topic_vacuum.vacuum(log, attempt("vacuum"), DAY_MS)
    assert set(deleted.files) == {files[kind], files["late"]}
    assert log.load().vacuum_version > before.vacuum_version
    live = log.load().segments["file"].to_pylist()
    assert list_segments(log) == set(live)


def test_indexes_of_removed_segments_make_room_for_the_commit_that_lets_the_segments_go() -> None:
    store, clock = FullStore(), Clock()
    log = topic_log(store, clock)
    state = append(log, created(log), (0, 3), store=store)
    (file,) = state.segments["file"].to_pylist()
    index = index_file_path(file, "index")
    store.files[log.paths.data(index)] = bytes(2000)
    log.commit(state, commit_builders.delete_records("an id", {0: 3}), attempt("delete-records"))
    clock.now_ms += 2 * DAY_MS
    store.fill()
    assert topic_vacuum.Vacuum(log, DAY_MS).free().waiting_indexes.files == {index: 2000}
    assert log.paths.data(index) in store.files
    assert topic_vacuum.vacuum(log, attempt("vacuum"), DAY_MS).files.keys() == {file, index}


def test_a_commit_that_cannot_be_put_lets_go_only_what_needed_none() -> None:
    store, clock = FullStore(), Clock()
    log, files = littered(store, clock)
    store.room_bytes = 0
    run = topic_vacuum.Vacuum(log, DAY_MS)
    plan = run.free()
    with pytest.raises(KlogError, match="not written"):
        run.finish(plan, attempt("vacuum"))
    assert set(run.deleted.files) == {files[kind] for kind in ("removed", "orphan", "temporary")}
    assert run.deleted.removed == (files["removed"],)
    assert log.paths.data(files["late"]) in store.files
    store.room_bytes = 1 << 30
    assert set(topic_vacuum.vacuum(log, attempt("vacuum"), DAY_MS).files) == {files["late"]}


def test_nothing_goes_by_a_commit_that_may_not_be_durable() -> None:
    """A loss of power may undo it, and what it took out is live again."""

    @dataclass
    class Unsynced(FullStore):
        is_unsynced: bool = False

        def put_if_absent(self, path: str, data: bytes) -> PutResult:
            result = super().put_if_absent(path, data)
            return PutResult.UNKNOWN if self.is_unsynced else result

    store, clock = Unsynced(), Clock()
    log, files = littered(store, clock)
    store.is_unsynced = True
    run = topic_vacuum.Vacuum(log, DAY_MS)
    plan = run.free()
    assert run.deleted.files == {}
    store.is_unsynced = False
    run.finish(plan, attempt("vacuum"))
    assert set(run.deleted.files) == set(files.values())


def test_what_fails_in_the_middle_does_not_hide_what_went() -> None:
    @dataclass
    class Locked(CountingStore):
        locked: str = ""

        def delete(self, path: str) -> None:
            if path == self.locked:
                raise KlogError(f"{path}: not deleted: Permission denied")
            super().delete(path)

    store, clock = Locked(), Clock()
    log, files = littered(store, clock)
    store.locked = log.paths.data(files["orphan"])
    run = topic_vacuum.Vacuum(log, DAY_MS)
    with pytest.raises(KlogError, match="Permission denied"):
        run.free()
    assert (run.deleted.removed, run.deleted.uncommitted) == ((files["removed"],), ())
    assert run.deleted.files == {files["removed"]: 2000}


def test_commits_that_an_ended_cleaning_left_go_without_a_new_boundary() -> None:
    store, clock = FullStore(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    for _ in range(5):
        state = append(log, state, (0, 1))
    checkpoint_writer.write_checkpoint(log, state)
    append(log, state, (0, 1))
    assert commit_expiration.list_expired_versions(log) == []
    commits = {
        log.paths.commit(version): store.files[log.paths.commit(version)] for version in (3, 4, 5)
    }
    clock.now_ms += DAY_MS
    assert commit_expiration.expire_log(log, 0) == 5
    store.requests.clear()
    assert commit_expiration.list_expired_versions(log) == []
    assert store.requests == {"list": 1, "read": 1}  # The commit is not there.
    store.files |= commits
    assert commit_expiration.list_expired_versions(log) == [3, 4, 5]
    store.fill()
    assert commit_expiration.delete_expired_commits(log) == 3
    assert not store.files.keys() & commits.keys()
    assert log.load().log_end == (6, 0)


def test_commits_are_kept_where_no_checkpoint_stands_for_them() -> None:
    """They may be all that there is to restore the topic from."""
    store = CountingStore()
    log = topic_log(store)
    state = append(log, created(log), (0, 1))
    checkpoint_writer.write_checkpoint(log, state)
    store.files[log.paths.expiration(1)] = b""
    assert commit_expiration.list_expired_versions(log) == [0, 1]
    (checkpoint,) = (path for path in store.files if path.startswith(log.paths.checkpoints))
    store.files[checkpoint] = b"damaged"
    assert commit_expiration.list_expired_versions(log) == []


def test_a_directory_with_the_name_of_a_segment_is_none() -> None:
    store, clock = CountingStore(), Clock()
    log, files = littered(store, clock)
    inside = log.paths.data(files["orphan"]) + "/x"
    store.files[inside] = store.files.pop(log.paths.data(files["orphan"]))
    assert files["orphan"] not in topic_vacuum.vacuum(log, attempt("vacuum"), DAY_MS).uncommitted
    assert inside in store.files
