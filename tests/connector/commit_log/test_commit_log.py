"""Load and commit: who wins a number, how many requests it takes, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from klog.connector.commit_log import (
    append_commit,
    commit_builders,
    rewrite_commit,
    segment_entries,
)
from klog.connector.commit_log.commit import Actions, Amount, Commit, Topic
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import (
    AlreadyCommittedError,
    CommitConflictError,
    KlogError,
    LostCommitError,
    ProducerFencedError,
)
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    Clock,
    CountingStore,
    append,
    attempt,
    created,
    same,
    staged,
    topic_log,
)


def rows(state: TopicState, partition: int) -> list[tuple[int, int, int]]:
    segments = segment_entries.rows_of_partition(state.segments, partition).to_pylist()
    return [(row["base_offset"], row["next_offset"], row["offset_shift"]) for row in segments]


def test_a_topic_that_is_not_there_has_version_minus_one() -> None:
    assert topic_log(CountingStore()).load().version == -1


def test_appends_follow_each_other() -> None:
    log = topic_log(CountingStore())
    state = append(log, append(log, created(log), (0, 3), (1, 2)), (0, 4))
    assert (state.version, state.log_end) == (2, (7, 2))
    assert rows(state, 0) == [(0, 3, 0), (3, 7, 0)]
    assert same(log.load(), state)


def test_an_append_that_lost_the_race_is_shifted() -> None:
    log = topic_log(CountingStore())
    before = created(log)
    append(log, before, (0, 3))
    state = append(log, before, (0, 2), (0, 1), (1, 5))
    assert rows(state, 0) == [(0, 3, 0), (3, 5, 3), (5, 6, 3)]
    assert rows(state, 1) == [(0, 5, 0)]


def test_times_rise_though_clocks_fall() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    state = created(log)
    clock.now_ms -= DAY_MS
    assert append(log, state, (0, 1)).timestamp_ms == state.timestamp_ms + 1


def test_what_a_load_and_a_commit_cost() -> None:
    store = CountingStore()
    log = topic_log(store)
    state = append(log, created(log), (0, 1))
    store.requests.clear()
    assert log.load(state) is state
    assert store.requests == {"read": 1, "list": 1}  # An idle poll.
    store.requests.clear()
    append(log, state, (0, 1))
    assert store.requests == {"read": 1, "create": 1, "list": 1}  # The number above its own first.
    store.requests.clear()
    log.load()
    # Cold: each commit, and the one that is not; the checkpoints, the commits and the expirations.
    assert store.requests == {"read": 4, "list": 3}


def test_a_named_batch_lands_once() -> None:
    log = topic_log(CountingStore())
    first, second = (append_commit.Writer("w", batch, "query", "run") for batch in (0, 1))
    state = append(log, created(log), (0, 3), writer=first)
    assert append(log, state, (0, 3), writer=first) is state
    assert append(log, state, (0, 3), writer=second).log_end == (6, 0)


def test_a_run_that_was_superseded_is_fenced() -> None:
    log = topic_log(CountingStore())
    state = append(log, created(log), (0, 1), writer=append_commit.Writer("w", 0, "query", "old"))
    state = append(log, state, (0, 1), writer=append_commit.Writer("w", 1, "query", "new"))
    with pytest.raises(ProducerFencedError, match="run new has taken over from run old"):
        append(log, state, (0, 1), writer=append_commit.Writer("w", 2, "query", "old"))
    assert append(log, state, (0, 1), writer=append_commit.Writer("w", 1, "query", "old")) is state


def test_another_query_is_never_skipped_in_silence() -> None:
    log = topic_log(CountingStore())
    state = append(log, created(log), (0, 1), writer=append_commit.Writer("w", 5, "query", "run"))
    with pytest.raises(ProducerFencedError, match="query other comes with batch 0"):
        append(log, state, (0, 1), writer=append_commit.Writer("w", 0, "other", "run 2"))


def test_a_topic_created_again_continues_in_the_same_log() -> None:
    log = topic_log(CountingStore())
    old = append(log, created(log), (0, 3))
    deleted = log.commit(old, commit_builders.delete_topic("an id"), attempt("delete-topic"))
    assert (deleted.topic_id, deleted.partitions, len(deleted.segments)) == ("", 0, 0)
    with pytest.raises(CommitConflictError, match="the topic was deleted"):
        append(log, old, (0, 1))
    build = commit_builders.create_topic(Topic("another id", 1), {})
    again = log.commit(deleted, build, attempt("create-topic"))
    assert (again.version, again.log_end, again.removed.num_rows) == (3, (0,), 1)
    with pytest.raises(CommitConflictError, match="its id is another id, not an id"):
        append(log, old, (0, 1))


def test_a_topic_created_again_knows_no_writers() -> None:
    log = topic_log(CountingStore())
    first = append_commit.Writer("load", 1, "query", "run")
    old = append(log, created(log), (0, 3), writer=first)
    again = log.commit(old, commit_builders.delete_topic("an id"), attempt("delete-topic"))
    assert dict(again.writer_transactions) == {}
    build = commit_builders.create_topic(Topic("another id", 1), {})
    again = log.commit(again, build, attempt("create-topic"))
    with pytest.raises(CommitConflictError, match="its id is another id, not an id"):
        log.commit(again, append_commit.append(staged(old, (0, 3)), first), attempt("append"))
    written = append(log, again, (0, 3), writer=append_commit.Writer("load", 1, "query", "run 2"))
    assert written.log_end == (3,)
    assert same(log.load(), written)


def test_what_is_in_the_log_is_not_put_there_again() -> None:
    log = topic_log(CountingStore())
    state = created(log)
    build = append_commit.append(staged(state, (0, 3)))
    state = log.commit(state, build, attempt("append"))
    words = "1 of 1 segments of this write are in the log already"
    with pytest.raises(AlreadyCommittedError, match=words):
        log.commit(state, build, attempt("append"))
    build_delete = commit_builders.delete_records("an id", {0: 3})
    state = log.commit(state, build_delete, attempt("delete-records"))
    with pytest.raises(AlreadyCommittedError, match=words):  # Vacuum takes it one day.
        log.commit(state, build, attempt("append"))
    assert same(log.load(), state)


@pytest.mark.parametrize("whole", [False, True])
def test_a_replay_from_any_version_refuses_what_is_added_twice(whole: bool) -> None:
    log = topic_log(CountingStore())
    state = append(log, created(log), (0, 3))
    (row,) = state.segments.to_pylist()
    again = Commit(
        state.version + 1, "w", state.timestamp_ms + 1, "append", "klog",
        Actions(add=({**row, "base_offset": 3, "next_offset": 6},)),
    )  # fmt: skip
    commits = [commit for version in range(2) if (commit := log.read(version)) is not None]
    with pytest.raises(KlogError, match="is added twice"):
        replay(TopicState(), [*commits, again]) if whole else replay(state, [again])


def test_no_file_is_younger_than_its_commit() -> None:
    log = topic_log(CountingStore())
    state = created(log)
    young = staged(replace(state, version=1), (0, 3))
    with pytest.raises(LostCommitError, match="began at version 1, and the log ends at version 0"):
        log.commit(state, append_commit.append(young), attempt("append"))
    actions = Actions(add=tuple(young.segments))
    commit = Commit(1, "w", state.timestamp_ms + 1, "append", "klog", actions)
    with pytest.raises(KlogError, match="is younger than the commit that adds it"):
        replay(state, [commit])


def test_a_write_older_than_the_horizon_is_refused() -> None:
    log = topic_log(CountingStore())
    old = created(log)
    slow = staged(old, (0, 1))
    state = append(log, old, (0, 1))
    state = log.commit(state, commit_builders.set_vacuum_version(1, ()), attempt("vacuum"))
    with pytest.raises(CommitConflictError, match="vacuum has deleted"):
        log.commit(state, append_commit.append(slow), attempt("append"))


def test_inputs_of_a_rewrite_must_be_there() -> None:
    log = topic_log(CountingStore())
    state = append(log, append(log, created(log), (0, 1)), (0, 1))
    files = state.segments["file"].to_pylist()
    outputs = [{**staged(state, (0, 2)).segments[0], "base_offset": 0, "next_offset": 2}]
    outputs[0]["origin"] = "merge"
    build = rewrite_commit.replace_segments("an id", state.version, files, outputs, {})
    merged = log.commit(state, build, attempt("merge"))
    assert rows(merged, 0) == [(0, 2, 0)]
    assert merged.removed["file"].to_pylist() == files
    with pytest.raises(CommitConflictError, match="2 of 2 segments to rewrite were replaced"):
        log.commit(merged, build, attempt("merge"))


@pytest.mark.parametrize(
    ("inputs", "places", "words"),
    [
        ([0, 2], [(0, 30)], "of offsets 0 to 30 does not lie within"),
        ([0, 2], [(0, 11)], "of offsets 0 to 11 does not lie within"),
        ([0, 2], [(0, 10), (19, 30)], "of offsets 19 to 30 does not lie within"),
        ([0, 2], [(10, 20)], "of offsets 10 to 20 does not lie within"),
        ([0, 1], [(0, 25)], "of offsets 0 to 25 does not lie within"),
        ([1, 2], [(9, 30)], "of offsets 9 to 30 does not lie within"),
        ([0, 1], [(0, 15), (14, 20)], "of offsets 14 to 20 does not lie within"),
        ([0, 2], [(0, 10), (20, 30)], None),
        ([0, 2], [(1, 3), (4, 9), (25, 30)], None),
        ([0, 1], [(0, 15), (15, 20)], None),
        ([2, 0, 1], [(0, 30)], None),
    ],
)
def test_a_rewrite_lies_where_its_inputs_lay(
    inputs: list[int], places: list[tuple[int, int]], words: str | None
) -> None:
    log = topic_log(CountingStore())
    state = created(log)
    for _ in range(3):
        state = append(log, state, (0, 10))
    files = state.segments["file"].to_pylist()
    outputs = [
        {
            **staged(state, (0, 1)).segments[0],
            "base_offset": base_offset,
            "next_offset": next_offset,
        }
        | {"origin": "merge"}
        for base_offset, next_offset in places
    ]
    build = rewrite_commit.replace_segments(
        "an id", state.version, [files[number] for number in inputs], outputs, {}
    )
    if words is None:
        assert log.commit(state, build, attempt("merge")).log_end == (30, 0)
    else:
        with pytest.raises(ValueError, match=words):
            log.commit(state, build, attempt("merge"))


def test_delete_records_takes_out_what_lies_wholly_below() -> None:
    log = topic_log(CountingStore())
    state = append(log, append(log, created(log), (0, 3)), (0, 3))
    state = log.commit(
        state, commit_builders.delete_records("an id", {0: 4}), attempt("delete-records")
    )
    assert (state.log_start, rows(state, 0)) == ((4, 0), [(3, 6, 0)])
    nothing = commit_builders.delete_records("an id", {0: 2})
    assert log.commit(state, nothing, attempt("delete-records")) is state
    emptied = commit_builders.delete_records("an id", {0: 99})
    state = log.commit(state, emptied, attempt("delete-records"))
    assert (state.log_start, state.log_end, rows(state, 0)) == ((6, 0), (6, 0), [])


def test_a_commit_says_how_much_it_took_out() -> None:
    log = topic_log(CountingStore())
    state = created(log)
    write = staged(state, (0, 3), (0, 4), (1, 5))
    sized = [
        {**entry, "record_count": 10 + n, "size_bytes": 100 + n}
        for n, entry in enumerate(write.segments)
    ]
    build = append_commit.append(append_commit.StagedSegments(state.topic_id, 0, sized))
    state = log.commit(state, build, attempt("append"))
    build = commit_builders.delete_records("an id", {0: 3})
    state = log.commit(state, build, attempt("delete-records"))
    state = log.commit(
        state, commit_builders.delete_records("an id", {0: 4}), attempt("delete-records")
    )
    log.commit(state, commit_builders.delete_topic("an id"), attempt("delete-topic"))
    commits = [log.read(version) for version in range(5)]
    assert [commit.actions.removed for commit in commits if commit is not None] == [
        None,
        None,
        Amount(10, 100),
        None,
        Amount(23, 203),
    ]
