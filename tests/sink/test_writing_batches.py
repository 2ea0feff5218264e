"""A writer with a name: its batches are in the log once, in the order of its runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.log import cleaning
from klog.connector.log.operations import Writer
from klog.connector.log.root import find_root
from klog.connector.sink import committing, writing
from klog.connector.sink.known import KnownTopics
from klog.connector.sink.write_options import WriteOptions
from klog.connector.store.local import LocalStore
from klog.errors import (
    CommitConflictError,
    KlogError,
    LostCommitError,
    ProducerFencedError,
)
from tests.sink.writes import options, rows, values, versions, work, write, writer

BEFORE = {"message.timestamp.before.max.ms": "100000"}


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin as a process that knows nothing."""
    for module in (writing, committing):  # Spark plans and commits in two processes.
        monkeypatch.setattr(module, "KNOWN", KnownTopics())


@pytest.mark.parametrize("knows", [True, False])
def test_a_batch_that_comes_again_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knows: bool
) -> None:
    given = options(tmp_path, topic="t")
    write(given, rows(1), by=writer(0))
    before = sorted(tmp_path.glob("t-0/*"))
    if not knows:
        for module in (writing, committing):
            monkeypatch.setattr(module, "KNOWN", KnownTopics())
    write(given, rows(1), by=writer(0, run="another"))
    assert values(tmp_path) == ["1"]
    assert sorted(tmp_path.glob("t-0/*")) == before  # Nothing was staged for it.
    write(given, rows(2), by=writer(1, run="another"))
    assert values(tmp_path) == ["1", "2"]


def test_a_batch_that_was_staged_twice_is_there_once(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    planned, again = writing.plan(given), writing.plan(given)
    committing.commit(given, work(planned, rows(1), by=writer(0)))
    committing.commit(given, work(again, rows(1), by=writer(0)))
    assert values(tmp_path) == ["1"]
    assert versions(tmp_path) == 1


def test_an_older_run_is_fenced(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    write(given, rows(0), by=writer(0, run="old"))
    late = work(writing.plan(given), rows(1), by=writer(1, run="old"))
    write(given, rows(1), by=writer(1, run="new"))
    committing.commit(given, late)  # The same batch: it is there.
    later = work(writing.plan(given), rows(2), by=writer(2, run="old"))
    with pytest.raises(ProducerFencedError, match="run new has taken over from run old"):
        committing.commit(given, later)
    assert values(tmp_path) == ["0", "1"]


def test_a_checkpoint_that_was_deleted_is_told(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    for batch in range(3):
        write(given, rows(batch), by=writer(batch))
    with pytest.raises(ProducerFencedError, match="it would be skipped"):
        write(given, rows("lost"), by=writer(0, query="another"))
    assert values(tmp_path) == ["0", "1", "2"]


def test_an_empty_batch_counts(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    empty = rows().slice(0, 0)
    write(given, empty, by=writer(0))
    write(given, rows(1), by=writer(1))
    assert klog.open(tmp_path).history("t")[1].actions.progress is not None
    with pytest.raises(ProducerFencedError):
        write(given, rows(9), by=writer(1, query="another"))


def test_a_streams_missing_batches_are_warned_of(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    write(given, rows(5), by=writer(5))
    with pytest.warns(UserWarning, match="comes with batch 8, and its last batch there is 5"):
        write(given, rows(8), by=writer(8))
    assert values(tmp_path) == ["5", "8"]


@pytest.mark.parametrize(
    ("named", "second"),
    [
        ({}, writer(6)),
        ({}, writer(8, query="another")),
        ({"transactionalId": "etl", "transactionVersion": 8}, writer(8)),
    ],
)
@pytest.mark.filterwarnings("error")
def test_batches_that_need_not_be_there_are_not_missed(
    tmp_path: Path, named: dict[str, object], second: Writer
) -> None:
    write(options(tmp_path, topic="t"), rows(5), by=writer(5))
    write(options(tmp_path, topic="t", **named), rows(8), by=second)


def commit_only_dead_letters(
    given: WriteOptions, monkeypatch: pytest.MonkeyPatch, batch: pa.RecordBatch
) -> None:
    """Commit a batch whose process ends between its two topics."""
    first = work(writing.plan(given), batch, by=writer(0))
    put = LocalStore.put_if_absent

    def broken(self: LocalStore, path: str, data: bytes) -> Any:
        if "topics/t/log" in path:
            raise KlogError("the disk is away")
        return put(self, path, data)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "put_if_absent", broken)
        with pytest.raises(KlogError, match="Written before: dead"):
            committing.commit(given, first)


def late_and_dead(now_ms: int) -> pa.RecordBatch:
    """Return two rows, one of them too old for a topic of `BEFORE`."""
    return rows("late", "dead", timestamp=pa.array([now_ms, now_ms - 10**9], pa.timestamp("ms")))


def test_a_replay_that_judges_otherwise_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    klog.open(tmp_path).create_topic("t", 1, BEFORE)
    given = options(tmp_path, topic="t", deadLetterTopic="dead")
    now_ms = time.time_ns() // 1_000_000
    batch = late_and_dead(now_ms)
    commit_only_dead_letters(given, monkeypatch, batch)
    with monkeypatch.context() as patched:
        patched.setattr(writing, "now_ms", lambda: now_ms + 10**6)
        later = work(writing.plan(given), batch, by=writer(0))
    with pytest.raises(CommitConflictError, match="has 1 dead letters there already, and 2 now"):
        committing.commit(given, later)
    write(given, batch, by=writer(0))
    assert (values(tmp_path), values(tmp_path, "dead")) == (["late"], ["dead"])


@pytest.mark.parametrize("is_cleaned", [True, False])
def test_a_replay_whose_dead_letters_are_lost_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cleaned: bool
) -> None:
    """A checkpoint stands for their commit, which is absent: only cleaning may have taken it."""
    klog.open(tmp_path).create_topic("t", 1, BEFORE)
    given = options(tmp_path, topic="t", deadLetterTopic="dead")
    batch = late_and_dead(time.time_ns() // 1_000_000)
    commit_only_dead_letters(given, monkeypatch, batch)
    for number in range(2):
        klog.open(tmp_path).append("dead", rows(number))
    root = find_root(str(tmp_path))
    assert root is not None
    log = root.log("dead")
    cleaning.write_checkpoint(log, log.load())
    if is_cleaned:
        assert cleaning.clean_log(log, 0) == 1
        write(given, batch, by=writer(0))
        assert values(tmp_path) == ["late"]
        return
    (tmp_path / f"_klog/topics/dead/log/{0:020}.json").unlink()
    with pytest.raises(LostCommitError, match=r"dead/log/0+\.json: this commit is lost"):
        write(given, batch, by=writer(0))
    assert values(tmp_path) == []
