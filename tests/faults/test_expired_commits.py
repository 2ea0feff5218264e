"""Expired versions that are committed again, states older than the log, and wrong clocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from klog.connector.commit_log import (
    append_commit,
    topic_vacuum,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.writable_store import PutResult
from klog.errors import CommitConflictError
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    Clock,
    CountingStore,
    checkpoint_and_expire,
)
from tests.faults import signed_topic
from tests.faults.signed_topic import new, writer

ROOT = "/root"
APPENDS = 8
RECORDS = [[f"a{number}" for number in range(APPENDS)], []]


def history() -> tuple[CountingStore, Clock, CommitLog, list[TopicState]]:
    """Create a topic; return its state at each version."""
    store, clock = CountingStore(), Clock()
    log = signed_topic.log_on(store, ROOT, clock, lambda tries: None)
    states = [signed_topic.create(log)]
    for number in range(APPENDS):
        clock.now_ms += 1000
        states.append(signed_topic.append(log, states[-1], {0: [f"a{number}"]}, writer(number)))
    return store, clock, log, states


@pytest.mark.parametrize("named", [False, True])
def test_f08_an_expired_version_cannot_be_committed_again(named: bool) -> None:
    """The commit's name is free again after any version that the writer last saw."""
    for seen in range(APPENDS + 1):
        store, _, log, states = history()
        last_expired = checkpoint_and_expire(log)
        assert last_expired == APPENDS - 1
        by = writer(APPENDS) if named else None
        after = signed_topic.append(log, states[seen], {0: ["late"], 1: ["too"]}, by)
        assert after.version == APPENDS + 1
        assert signed_topic.records_of(log) == [[*RECORDS[0], "late"], ["too"]]
        # The file that it put at an expired version goes with the next log expiration.
        checkpoint_and_expire(log)
        assert min(path for path in store.files if "/log/" in path) == log.paths.commit(APPENDS + 1)
        assert signed_topic.records_of(log) == [[*RECORDS[0], "late"], ["too"]]


def test_f08_a_named_batch_whose_commit_expired_is_committed() -> None:
    """Its commit is gone and the name is free, but the state knows the batch."""
    for batch in range(APPENDS):
        _, _, log, states = history()
        checkpoint_and_expire(log)
        after = signed_topic.append(log, states[batch], {0: ["again"]}, writer(batch))
        assert after.version == APPENDS
        assert signed_topic.records_of(log) == RECORDS


class ExpiringStore(CountingStore):
    """Others commit, checkpoint and expire the log between a commit and its answer."""

    def __init__(self, log: CommitLog) -> None:
        super().__init__(log.store.files)  # type: ignore[attr-defined]
        self.log, self.answer, self.is_done = log, PutResult.CREATED, False

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        result = super().put_if_absent(path, data)
        if not self.is_done and "/log/" in path:
            self.is_done = True
            state = signed_topic.append(self.log, self.log.load(), {1: ["o0"]})
            state = signed_topic.append(self.log, state, {1: ["o1"]})
            checkpoint_and_expire(self.log, -DAY_MS)
            return self.answer
        return result


@pytest.mark.parametrize("answer", PutResult)
def test_f08_a_commit_that_expires_before_its_answer(answer: PutResult) -> None:
    """The commit succeeded and its file is gone, but the state has its write id."""
    _, clock, log, states = history()
    store = ExpiringStore(log)
    store.answer = answer
    slow = replace(log, store=store)
    clock.now_ms += 1000
    after = signed_topic.append(slow, states[-1], {0: ["mine"]})
    assert after.version == APPENDS + 3
    assert log.paths.commit(APPENDS + 1) not in store.files
    assert signed_topic.records_of(log) == [[*RECORDS[0], "mine"], ["o0", "o1"]]


def test_f09_a_state_older_than_the_expired_commits_is_loaded_again() -> None:
    for kept in range(APPENDS + 1):
        _, _, log, states = history()
        checkpoint_and_expire(log)
        assert log.load(states[kept]).version == APPENDS
        assert signed_topic.records_of(log, log.load(states[kept])) == RECORDS


def test_f09_readers_ignore_a_stale_commit_at_an_expired_version() -> None:
    """A reader with an older state finds a commit at the next version that is not the topic's."""
    store, _, log, states = history()
    checkpoint_and_expire(log)
    stale = store.files[log.paths.commit(APPENDS)]
    for kept in range(APPENDS - 1):
        store.files[log.paths.commit(kept + 1)] = stale.replace(
            b'"version": %d' % APPENDS, b'"version": %d' % (kept + 1)
        )
        assert signed_topic.records_of(log, log.load(states[kept])) == RECORDS


@pytest.mark.parametrize("skew_ms", [-DAY_MS, DAY_MS, -30 * DAY_MS])
def test_f24_clocks_a_day_apart_and_going_back(skew_ms: int) -> None:
    """Timestamps still rise; expiration and vacuum with a wrong clock delete nothing live."""
    _, clock, log, states = history()
    state = states[-1]
    for number in range(4):
        clock.now_ms += skew_ms if number % 2 == 0 else -skew_ms
        later = signed_topic.append(log, state, {1: [f"b{number}"]})
        assert later.timestamp_ms > state.timestamp_ms
        state = later
        checkpoint_and_expire(log)
        topic_vacuum.vacuum(log, new("vacuum"), DAY_MS)
        state = log.load()
        assert signed_topic.records_of(log) == [
            RECORDS[0],
            [f"b{value}" for value in range(number + 1)],
        ]


def test_f24_a_clock_far_ahead_refuses_slow_writers_and_loses_nothing() -> None:
    """The vacuum version is the newest: a commit of files staged before it is refused."""
    _, clock, log, states = history()
    staged = signed_topic.stage(log, states[-1], {0: ["slow"]})
    state = signed_topic.append(log, states[-1], {1: ["b0"]})
    clock.now_ms += 400 * DAY_MS
    topic_vacuum.vacuum(log, new("vacuum"), DAY_MS)
    with pytest.raises(CommitConflictError, match="vacuum has deleted what was not committed"):
        log.commit(state, append_commit.append(staged), new("append"))
    assert signed_topic.records_of(log) == [RECORDS[0], ["b0"]]
    signed_topic.append(log, log.load(), {0: ["slow"]})
    assert signed_topic.records_of(log) == [[*RECORDS[0], "slow"], ["b0"]]
