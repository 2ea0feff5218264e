"""What a process knows of a log is not forgotten because another one has committed since."""

from __future__ import annotations

import json

import pytest

from klog.connector.commit_log import (
    checkpoint_writer,
    commit_builders,
    topic_state,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_reader import LISTING_INTERVAL_MS
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import LostCommitError
from tests.connector.commit_log.memory_logs import (
    Clock,
    CountingStore,
    append,
    appended,
    attempt,
    checkpoint_and_expire,
    created,
    same,
    topic_log,
)


class Replaced:
    """A log whose commit 3 is lost and replaced; `known` is the state of who has loaded it."""

    def __init__(self, more: int = 0) -> None:
        """Let another process put commit 3 again, and some more."""
        self.store, self.clock = CountingStore(), Clock()
        self.log = topic_log(self.store, self.clock)
        before = appended(self.log, created(self.log), 2)
        self.known = append(self.log, before, (0, 1))
        self.path = self.log.paths.commit(3)
        self.lost = self.store.files.pop(self.path)
        self.others = appended(self.log, self.log.load(), 1 + more)

    def refuses(self, state: TopicState) -> None:
        """Expect that a load from a state tells what was lost, and what to do."""
        with pytest.raises(LostCommitError) as caught:
            self.log.load(state)
        text = str(caught.value)
        assert text.startswith(f"{self.path}: commit 3 is write {self.others_write_id()}, and this")
        assert f"it was write {self.known.last_write_id}: that commit was lost, and ano" in text
        assert "put the lost commit in its place from a copy" in text
        assert "start this process again" in text

    def others_write_id(self) -> str:
        """Return the write that is version 3 now."""
        return str(json.loads(self.store.files[self.path])["writeId"])


@pytest.mark.parametrize("more", [0, 1, 5])
def test_a_reader_tells_that_its_commit_was_replaced(more: int) -> None:
    replaced = Replaced(more)
    replaced.clock.now_ms += LISTING_INTERVAL_MS
    replaced.refuses(replaced.known)
    replaced.refuses(replaced.known)


def test_a_reader_that_told_of_the_loss_tells_it_once_more_when_it_was_replaced() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    known = appended(log, created(log), 3)
    del store.files[log.paths.commit(3)]
    clock.now_ms += LISTING_INTERVAL_MS
    with pytest.raises(LostCommitError, match=r"this process, which .* start this process again"):
        log.load(known)
    append(log, log.load(), (0, 1))
    with pytest.raises(LostCommitError, match="another was put in its place"):
        log.load(known)


def test_a_commit_on_top_of_another_than_its_own_tells_a_reader_at_once() -> None:
    replaced = Replaced(1)
    replaced.refuses(replaced.known)


def test_a_checkpoint_of_the_others_hides_nothing() -> None:
    replaced = Replaced(5)
    checkpoint_writer.write_checkpoint(replaced.log, replaced.others)
    replaced.clock.now_ms += LISTING_INTERVAL_MS
    replaced.refuses(replaced.known)
    replaced.clock.now_ms += 10**10
    assert checkpoint_and_expire(replaced.log) > 3
    with pytest.raises(LostCommitError, match=r"commit 3 is write .* and this process"):
        replaced.log.load(replaced.known)


def test_a_writer_whose_commit_was_replaced_puts_none_on_top() -> None:
    replaced = Replaced(1)
    replaced.clock.now_ms += LISTING_INTERVAL_MS
    before = dict(replaced.store.files)
    with pytest.raises(LostCommitError, match=r"003\.json: commit 3 is write"):
        append(replaced.log, replaced.known, (0, 1))
    assert replaced.store.files == before


def test_a_new_process_goes_on_without_the_lost_commit() -> None:
    replaced = Replaced(1)
    assert same(replaced.log.load(), replaced.others)


def test_what_is_no_longer_remembered_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_state, "MAX_REMEMBERED_WRITES", 5)
    replaced = Replaced(5)
    replaced.clock.now_ms += LISTING_INTERVAL_MS
    assert replaced.log.load(replaced.known).version == 8


def deleted(log: CommitLog, before: TopicState) -> TopicState:
    """Delete the topic."""
    return log.commit(
        before, commit_builders.delete_topic(before.topic_id), attempt("delete-topic")
    )


def test_a_topic_that_klog_made_again_is_in_the_same_log() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    known = appended(log, created(log), 3)
    deleted(log, known)
    again = appended(log, created(log, 3, "another id"), 2)
    clock.now_ms += LISTING_INTERVAL_MS
    assert same(log.load(known), again)
    assert append(log, again, (0, 1)).version == again.version + 1


def test_a_lost_commit_is_told_although_the_topic_was_made_again_since() -> None:
    replaced = Replaced()
    deleted(replaced.log, replaced.others)
    created(replaced.log, 3, "another id")
    replaced.clock.now_ms += LISTING_INTERVAL_MS
    replaced.refuses(replaced.known)


@pytest.mark.parametrize("commits", [1, 8, 9, 12])
@pytest.mark.parametrize("minutes", [0, 1])
def test_a_log_that_was_made_again_by_hand_is_another(commits: int, minutes: int) -> None:
    """Within the minute a reader sees it only if the new log is longer than the old one."""
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    known = appended(log, created(log), 8)
    store.files.clear()
    again = appended(log, created(log, 3, "another id"), commits)
    clock.now_ms += minutes * LISTING_INTERVAL_MS
    is_seen = minutes or commits > 8
    assert same(log.load(known), again if is_seen else known)


def test_a_log_that_was_made_again_by_hand_and_lost_a_commit_is_refused() -> None:
    store, clock = CountingStore(), Clock()
    log = topic_log(store, clock)
    known = appended(log, created(log), 8)
    store.files.clear()
    appended(log, created(log, 3, "another id"), 5)
    del store.files[log.paths.commit(2)]
    clock.now_ms += LISTING_INTERVAL_MS
    with pytest.raises(LostCommitError, match=r"002\.json: this commit is lost.*005\.json shows"):
        log.load(known)


def test_a_commit_on_top_of_one_in_the_checkpoints_place_names_the_wrong_one() -> None:
    """Commit 3 was replaced; the checkpoint has the lost one, and commit 4 the other below it."""
    replaced = Replaced(1)
    checkpoint = replaced.log.paths.checkpoint(
        checkpoint_writer.write_checkpoint(replaced.log, replaced.known)
    )
    with pytest.raises(LostCommitError) as caught:
        replaced.log.load()
    text = str(caught.value)
    assert text.startswith(f"{replaced.path}: commit 3 is write {replaced.others_write_id()}")
    assert f"{checkpoint} shows that it was write {replaced.known.last_write_id}" in text
    # With the lost one put back, the commit above is what no longer follows: its own is missing.
    other, replaced.store.files[replaced.path] = replaced.others_write_id(), replaced.lost
    with pytest.raises(LostCommitError) as caught:
        replaced.log.load()
    text = str(caught.value)
    assert text.startswith(f"{replaced.path}: commit 3 is write {replaced.known.last_write_id}")
    assert f"{replaced.log.paths.commit(4)} shows that it was write {other}" in text
    del replaced.store.files[replaced.path]
    with pytest.raises(LostCommitError, match=r"003\.json: this commit is lost.*004\.json shows"):
        replaced.log.load()
