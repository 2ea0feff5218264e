"""A commit whose put had no answer: it lands once, or the error says that nobody knows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from klog.connector.commit_log import topic_state as state_module
from klog.connector.store.writable_store import PutResult
from klog.errors import (
    CommitStateUnknownError,
    UnsupportedFormatError,
)
from tests.connector.commit_log.memory_logs import (
    DAY_MS,
    Clock,
    CountingStore,
    append,
    checkpoint_and_expire,
    created,
    same,
    topic_log,
)


class LosesAnswers(CountingStore):
    """The first puts land, or not, and nobody is told."""

    def __init__(self, *lands: bool) -> None:
        super().__init__()
        self.lands = list(lands)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        if self.lands:
            if self.lands.pop(0):
                super().put_if_absent(path, data)
            return PutResult.UNKNOWN
        return super().put_if_absent(path, data)


@pytest.mark.parametrize("lands", [[True], [False], [False, True], [False, False, False]])
def test_a_lost_answer_makes_no_second_copy(lands: list[bool]) -> None:
    store = LosesAnswers()
    log = topic_log(store)
    state = created(log)
    store.lands = list(lands)
    state = append(log, state, (0, 3))
    assert state.log_end == (3, 0)
    assert same(log.load(), state)


def test_answers_that_are_lost_to_the_end_are_an_error_of_its_own() -> None:
    store = LosesAnswers()
    log = topic_log(store)
    state = created(log)
    store.lands = [False] * 50
    with pytest.raises(CommitStateUnknownError, match=r"klog history.*delete nothing"):
        append(log, state, (0, 3))


def test_a_number_below_the_boundary_is_no_win() -> None:
    """A writer with an old state finds a number free that was another's and was cleaned."""
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    old = created(log)
    state = old
    for _ in range(5):
        clock.now_ms += 1000
        state = append(log, state, (0, 1))
    assert checkpoint_and_expire(log) == state.version - 1
    assert store.files.get(log.paths.commit(old.version + 1)) is None
    after = append(log, old, (0, 2))
    assert (after.version, after.log_end) == (state.version + 1, (7, 0))
    assert same(log.load(), after)


class Stops(CountingStore):
    """Answers the next put of a commit after `interrupt` has run; `answer` is the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.interrupt: Callable[[], None] | None = None
        self.answer: PutResult | None = None

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        result = super().put_if_absent(path, data)
        if "/log/" in path and self.interrupt is not None:
            interrupt, self.interrupt = self.interrupt, None
            interrupt()
            return self.answer or result
        return result


@pytest.mark.parametrize("later_commits", [3, 9])
def test_a_commit_that_is_not_remembered_has_an_unknown_state(
    later_commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit landed, and its writer stopped until it was cleaned."""
    monkeypatch.setattr(state_module, "MAX_REMEMBERED_WRITES", 5)
    store, clock = Stops(), Clock()
    log = topic_log(store, clock)
    before = created(log)

    def commit_and_expire() -> None:
        state = log.load()
        for _ in range(later_commits):
            state = append(log, state, (1, 1))
        clock.now_ms += DAY_MS
        assert checkpoint_and_expire(log) > before.version + 1

    store.interrupt = commit_and_expire
    if later_commits < 5:
        assert append(log, before, (0, 3)).log_end == (3, later_commits)
    else:
        with pytest.raises(CommitStateUnknownError, match="too many commits came after it"):
            append(log, before, (0, 3))
    assert log.load().log_end == (3, later_commits)


@pytest.mark.parametrize("says", [PutResult.EXISTS, PutResult.UNKNOWN])
def test_a_number_that_another_has_now_may_have_been_mine(says: PutResult) -> None:
    store = Stops()
    log = topic_log(store)
    before = created(log)
    path = log.paths.commit(before.version + 1)

    def replace_commit() -> None:
        store.delete(path)
        append(log, before, (0, 1))
        store.files[log.paths.commit(2)] = b"{}"  # So that nothing can be loaded.

    store.interrupt, store.answer = replace_commit, says
    error = UnsupportedFormatError if says is PutResult.EXISTS else CommitStateUnknownError
    with pytest.raises(error):
        append(log, before, (0, 3))
