"""The commit of a restore: what becomes that of the version, what stays, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from klog.connector.commit_log import (
    append_commit,
    checkpoint_writer,
    commit_builders,
    restore_commit,
    rewrite_commit,
    topic_vacuum,
)
from klog.connector.commit_log.commit import Hole
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.past_restores import PastRestore
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_restore import restore_log
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import CommitConflictError, OptionError, ProducerFencedError, RestoreRefusedError
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    TOPIC,
    Clock,
    CountingStore,
    attempt,
    created,
    same,
    staged,
    topic_log,
)
from tests.support.segment_entry import entry_of

Writer = append_commit.Writer


class RestoredLog:
    """A topic's log in memory, with files of seven bytes for its segments."""

    def __init__(self) -> None:
        """Create the topic with two partitions."""
        self.store, self.clock = CountingStore(), Clock()
        self.log: CommitLog = topic_log(self.store, self.clock)
        created(self.log)

    @property
    def state(self) -> TopicState:
        """Load the state from the commits alone, and check that an incremental load is the same."""
        return self.log.load()

    def append(self, *counts: tuple[int, int], writer: Writer | None = None) -> TopicState:
        """Append segments, as (partition, records)."""
        build = append_commit.append(self.staged(*counts), writer)
        return self.log.commit(self.state, build, attempt("append"))

    def staged(self, *counts: tuple[int, int]) -> append_commit.StagedSegments:
        """Stage segments with the size that their files have."""
        write = staged(self.state, *counts, store=self.store)
        segments = [{**entry, "size_bytes": 7} for entry in write.segments]
        return append_commit.StagedSegments(write.topic_id, write.base_version, segments)

    def merge(self, state: TopicState, partition: int) -> commit_builders.CommitBuilder:
        """Write one segment for those of a partition; return the builder of its commit."""
        rows = [row for row in state.segments.to_pylist() if row["partition"] == partition]
        output = self._output(state, rows)
        inputs = [row["file"] for row in rows]
        return rewrite_commit.replace_segments(
            state.topic_id, state.version, inputs, [output], {partition: rows[-1]["next_offset"]}
        )

    def _output(self, state: TopicState, rows: list[SegmentEntry]) -> SegmentEntry:
        first, last = rows[0], rows[-1]
        file = f"{TOPIC}-{first['partition']}/{first['base_offset']:020d}-{state.version:010d}-"
        file += f"{state.version:08x}.log"
        self.store.files[self.log.paths.data(file)] = b"records"
        return entry_of(
            file, first["partition"], first["base_offset"], last["next_offset"], "merge",
            size_bytes=7,
        )  # fmt: skip

    def commit(self, build: commit_builders.CommitBuilder, operation: str) -> TopicState:
        """Commit on top of the last commit."""
        return self.log.commit(self.state, build, attempt(operation))

    def delete_records(self, log_start: Mapping[int, int]) -> TopicState:
        """Raise log starts."""
        return self.commit(commit_builders.delete_records("an id", log_start), "delete-records")

    def restore(self, version: int) -> TopicState:
        """Restore a version, and check that all ways to load the result agree."""
        before = self.state
        restore_log(self.log, before, version)
        state = self.state
        commits = [self.log.read(number) for number in range(state.version + 1)]
        assert same(replay(TopicState(), [commit for commit in commits if commit]), state)
        assert same(self.log.load(before), state)
        return state


@pytest.fixture
def restored_log() -> RestoredLog:
    return RestoredLog()


def files(state: TopicState) -> set[str]:
    return set(state.segments["file"].to_pylist())


def test_what_becomes_that_of_the_version_and_what_stays(restored_log: RestoredLog) -> None:
    restored_log.append((0, 3), (1, 2))
    restored_log.append((0, 3))
    before = restored_log.append((1, 5))
    restored_log.commit(restored_log.merge(restored_log.state, 0), "merge")
    restored_log.delete_records({1: 3})
    config = commit_builders.alter_config("an id", before.config, {"retention.ms": "7"})
    restored_log.commit(config, "alter-config")
    restored_log.commit(commit_builders.add_partitions("an id", 3), "add-partitions")
    after = restored_log.append((0, 4), (2, 1), writer=Writer("w", 7, "q", "r"))
    state = restored_log.restore(before.version)
    assert files(state) == files(before)
    assert state.log_start == (0, 0, 0)
    assert (state.log_end, state.partitions) == (after.log_end, 3)
    assert state.holes == (Hole(0, 6, 10), Hole(2, 0, 1))
    assert dict(state.cleaned_to) == {0: 0}
    assert state.config["retention.ms"] == "7"
    assert state.writer_transactions == after.writer_transactions
    assert state.restores == (PastRestore(state.version, before.version, {0: 6, 2: 0}),)
    # What was removed and is live again is not removed any more; what was live is.
    assert set(state.removed["file"].to_pylist()) == files(after) - files(before)
    assert restored_log.append((0, 1)).log_end == (11, 7, 1)


def test_a_named_writers_batch_stays_committed(restored_log: RestoredLog) -> None:
    before = restored_log.append((0, 3))
    restored_log.append((0, 1), writer=Writer("w", 7, "q", "r"))
    state = restored_log.restore(before.version)
    again = restored_log.append((0, 1), writer=Writer("w", 7, "q", "r"))
    assert again.version == state.version
    with pytest.raises(ProducerFencedError):
        restored_log.append((0, 1), writer=Writer("w", 7, "another", "r2"))


def test_a_restore_is_undone_by_a_restore(restored_log: RestoredLog) -> None:
    first = restored_log.append((0, 3))
    restored_log.append((0, 3))
    before = restored_log.delete_records({0: 3})
    undone = restored_log.restore(first.version)
    assert (files(undone), undone.log_start) == (files(first), (0, 0))
    restored_log.append((0, 2))
    state = restored_log.restore(before.version)
    assert files(state) == files(before)
    assert (state.log_start, state.log_end) == ((3, 0), (8, 0))
    assert state.holes == (Hole(0, 6, 8),)
    again = restored_log.restore(undone.version)
    assert (files(again), again.log_start) == (files(undone), (0, 0))
    assert again.holes == (Hole(0, 3, 8),)
    assert len(again.restores) == 3


def test_a_version_that_is_there_makes_no_commit(restored_log: RestoredLog) -> None:
    before = restored_log.append((0, 3))
    restored_log.append((0, 3))
    state = restored_log.restore(before.version)
    assert restored_log.restore(before.version).version == state.version
    assert restored_log.restore(state.version).version == state.version
    report = restore_log(restored_log.log, state, before.version)
    assert (report.has_changes, report.commit_version) == (False, None)


def test_a_checkpoint_has_the_restores(restored_log: RestoredLog) -> None:
    before = restored_log.append((0, 3))
    restored_log.append((0, 3), (1, 2))
    state = restored_log.restore(before.version)
    checkpoint_writer.write_checkpoint(restored_log.log, state)
    loaded = restored_log.log.load()
    assert loaded.checkpoint is not None
    assert same(loaded, state)
    assert loaded.restores == state.restores != ()


@pytest.mark.parametrize("kind", ["merge", "delete-records"])
def test_what_was_planned_before_a_restore_is_refused(restored_log: RestoredLog, kind: str) -> None:
    """Its inputs may be live, but not the records that it counted on."""
    before = restored_log.append((0, 3))
    restored_log.append((0, 3))
    planned = restored_log.append((1, 5))
    build = restored_log.merge(before, 0)
    if kind == "delete-records":
        build = commit_builders.delete_records("an id", {0: 3}, planned.version)
    state = restored_log.restore(before.version)
    with pytest.raises(CommitConflictError, match=f"commit {state.version} has restored"):
        restored_log.commit(build, kind)
    # An append only needs the log end.
    assert restored_log.append((0, 1)).log_end == (7, 5)


def test_a_restore_takes_back_what_came_meanwhile(restored_log: RestoredLog) -> None:
    before = restored_log.append((0, 3))
    old = restored_log.append((0, 3))
    restored_log.append((1, 5))
    restored_log.commit(restored_log.merge(restored_log.state, 0), "merge")
    restore_log(restored_log.log, old, before.version)  # It finds the others' commits.
    state = restored_log.state
    assert files(state) == files(before)
    assert state.holes == (Hole(0, 3, 6), Hole(1, 0, 5))


def test_a_version_of_another_topic_is_refused(restored_log: RestoredLog) -> None:
    before = restored_log.append((0, 3))
    deleted = restored_log.commit(commit_builders.delete_topic("an id"), "delete-topic")
    with pytest.raises(RestoreRefusedError, match=r"topic orders: the topic was deleted after"):
        restored_log.restore(before.version)
    created(restored_log.log, topic_id="a new id")
    for version in (before.version, deleted.version, 99):
        with pytest.raises(OptionError):
            restored_log.restore(version)


@pytest.mark.parametrize("is_vacuumed", [False, True], ids=["decided", "deleted"])
def test_a_vacuumed_file_is_refused_and_named(
    restored_log: RestoredLog, *, is_vacuumed: bool
) -> None:
    before = restored_log.append((0, 3))
    (file,) = before.segments["file"].to_pylist()
    removal = restored_log.delete_records({0: 3})
    restored_log.append((0, 1))
    if is_vacuumed:
        restored_log.clock.now_ms += 2 * DAY_MS
        topic_vacuum.vacuum(restored_log.log, attempt("vacuum"), DAY_MS)
        assert restored_log.log.paths.data(file) not in restored_log.store.files
    else:
        vacuum = commit_builders.set_vacuum_version(removal.version, ())
        restored_log.commit(vacuum, "vacuum")
    with pytest.raises(RestoreRefusedError, match=rf"{file} is of version 1, and vacuum has del"):
        restored_log.restore(before.version)


def test_a_vacuum_before_the_removal_does_not_matter(restored_log: RestoredLog) -> None:
    before = restored_log.append((0, 3))
    removal = restored_log.delete_records({0: 3})
    restored_log.commit(commit_builders.set_vacuum_version(removal.version - 1, ()), "vacuum")
    assert files(restored_log.restore(before.version)) == files(before)


def test_a_vacuum_that_decided_before_a_restore_leaves_what_is_live_again(
    restored_log: RestoredLog,
) -> None:
    """Its first round deletes only what a committed vacuum version allows."""
    before = restored_log.append((0, 3))
    restored_log.delete_records({0: 3})
    restored_log.clock.now_ms += 2 * DAY_MS
    vacuum = topic_vacuum.Vacuum(restored_log.log, DAY_MS)
    plan = vacuum.free()
    restored_log.restore(before.version)
    vacuum.finish(plan, attempt("vacuum"))
    assert vacuum.deleted.files == {}
    assert all(
        restored_log.log.paths.data(file) in restored_log.store.files for file in files(before)
    )


@pytest.mark.parametrize("damage", ["missing", "short", "index"])
def test_a_file_that_is_not_complete_is_refused(restored_log: RestoredLog, damage: str) -> None:
    write = restored_log.staged((0, 3))
    entry = {**write.segments[0], "index_bytes": 8}
    write = append_commit.StagedSegments(write.topic_id, write.base_version, [entry])
    path = restored_log.log.paths.data(entry["file"])
    index = path.replace(".log", ".index")
    restored_log.store.files[index] = b"an index"
    before = restored_log.commit(append_commit.append(write), "append")
    restored_log.delete_records({0: 3})
    data = restored_log.store.files.pop(index if damage == "index" else path)
    if damage == "short":
        restored_log.store.files[path] = data[:-1]
    with pytest.raises(RestoreRefusedError, match=rf"{entry['file']} is of version .* incomplete"):
        restored_log.restore(before.version)
    restored_log.store.files[index if damage == "index" else path] = data
    assert files(restored_log.restore(before.version)) == files(before)


def test_a_log_that_lost_the_version_is_refused(restored_log: RestoredLog) -> None:
    restored_log.append((0, 3))
    target = restored_log.append((0, 3))
    current = restored_log.append((0, 3))
    build = restore_commit.restore(target, files(target))
    shorter = restored_log.log.load()
    commits = [restored_log.log.read(number) for number in range(2)]
    shorter = replay(TopicState(), [commit for commit in commits if commit])
    assert build(current) is not None
    with pytest.raises(RestoreRefusedError, match="the commit of version 2 is no longer"):
        build(shorter)


def test_appended_states_agree_with_a_merge_over_the_hole(restored_log: RestoredLog) -> None:
    before = restored_log.append((0, 3))
    restored_log.append((0, 3))
    restored_log.restore(before.version)
    restored_log.append((0, 2))
    merged = restored_log.commit(restored_log.merge(restored_log.state, 0), "merge")
    assert merged.segments.to_pylist()[0]["next_offset"] == 8
    # To a version before the merge: the hole is back, and grows by what was after it.
    state = restored_log.restore(before.version)
    assert state.holes == (Hole(0, 3, 8),)


def test_a_dry_run_says_the_same_and_writes_nothing(restored_log: RestoredLog) -> None:
    before = restored_log.append((0, 3))
    state = restored_log.append((0, 3))
    stored = dict(restored_log.store.files)
    plan = restore_log(restored_log.log, state, before.version, dry_run=True)
    assert restored_log.store.files == stored
    report = restore_log(restored_log.log, state, before.version)
    assert (plan.partitions, plan.removed) == (report.partitions, report.removed)
    assert (plan.commit_version, report.commit_version) == (None, state.version + 1)
