"""A writer with a transactional id: its batches are in the log once, in the order of its runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.commit_log import checkpoint_writer
from klog.connector.commit_log.append_commit import Writer
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.options.write_options import WriteOptions
from klog.connector.sink import task_writer, write_commit
from klog.connector.sink.write_plan import load_write_plan
from klog.connector.store.local_store import LocalStore
from klog.errors import (
    KlogError,
    LostCommitError,
    ProducerFencedError,
)
from tests.connector.commit_log.memory_logs import checkpoint_and_expire
from tests.connector.sink.multi_task_writes import (
    forget_topics,
    rows,
    stage,
    values,
    versions,
    write,
    write_options,
    writer,
)

BEFORE = {"message.timestamp.before.max.ms": "100000"}


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_topics(monkeypatch)


@pytest.mark.parametrize("is_cached", [True, False])
def test_repeated_batch_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cached: bool
) -> None:
    options = write_options(tmp_path, topic="t")
    write(options, rows(1), by=writer(0))
    before = sorted(tmp_path.glob("t-0/*"))
    if not is_cached:
        forget_topics(monkeypatch)
    write(options, rows(1), by=writer(0, run="another"))
    assert values(tmp_path) == ["1"]
    assert sorted(tmp_path.glob("t-0/*")) == before  # Nothing was staged again.
    write(options, rows(2), by=writer(1, run="another"))
    assert values(tmp_path) == ["1", "2"]


def test_batch_staged_twice_is_committed_once(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    first, again = load_write_plan(options), load_write_plan(options)
    write_commit.commit(options, stage(first, rows(1), by=writer(0)))
    write_commit.commit(options, stage(again, rows(1), by=writer(0)))
    assert values(tmp_path) == ["1"]
    assert versions(tmp_path) == 1


def test_older_run_is_fenced(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    write(options, rows(0), by=writer(0, run="old"))
    late = stage(load_write_plan(options), rows(1), by=writer(1, run="old"))
    write(options, rows(1), by=writer(1, run="new"))
    write_commit.commit(options, late)  # The same batch is there already.
    later = stage(load_write_plan(options), rows(2), by=writer(2, run="old"))
    with pytest.raises(ProducerFencedError, match="run new has taken over from run old"):
        write_commit.commit(options, later)
    assert values(tmp_path) == ["0", "1"]


def test_deleted_checkpoint_is_fenced(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    for batch in range(3):
        write(options, rows(batch), by=writer(batch))
    with pytest.raises(ProducerFencedError, match="it would be skipped"):
        write(options, rows("lost"), by=writer(0, query="another"))
    assert values(tmp_path) == ["0", "1", "2"]


def test_empty_batch_commits_its_number(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    empty = rows().slice(0, 0)
    write(options, empty, by=writer(0))
    write(options, rows(1), by=writer(1))
    assert klog.open(tmp_path).history("t")[1].actions.writer_transaction is not None
    with pytest.raises(ProducerFencedError):
        write(options, rows(9), by=writer(1, query="another"))


def test_missing_batches_of_a_stream_are_a_warning(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    write(options, rows(5), by=writer(5))
    with pytest.warns(UserWarning, match="writes batch 8, and its last batch there is 5"):
        write(options, rows(8), by=writer(8))
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
def test_batches_of_other_writers_are_not_missed(
    tmp_path: Path, named: dict[str, object], second: Writer
) -> None:
    write(write_options(tmp_path, topic="t"), rows(5), by=writer(5))
    write(write_options(tmp_path, topic="t", **named), rows(8), by=second)


def commit_only_dead_letters(
    options: WriteOptions, monkeypatch: pytest.MonkeyPatch, batch: pa.RecordBatch
) -> None:
    """Commit a batch, and fail between its two topics."""
    first = stage(load_write_plan(options), batch, by=writer(0))
    put = LocalStore.put_if_absent

    def failing_put(self: LocalStore, path: str, data: bytes) -> Any:
        if "topics/t/log" in path:
            raise KlogError("the disk is gone")
        return put(self, path, data)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "put_if_absent", failing_put)
        with pytest.raises(KlogError, match="Written before: dead"):
            write_commit.commit(options, first)


def late_and_dead(now_ms: int) -> pa.RecordBatch:
    """Return two rows; the second is too old for a topic of `BEFORE`."""
    return rows("late", "dead", timestamp=pa.array([now_ms, now_ms - 10**9], pa.timestamp("ms")))


def test_replay_with_other_dead_letters_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    klog.open(tmp_path).create_topic("t", 1, BEFORE)
    options = write_options(tmp_path, topic="t", deadLetterTopic="dead")
    now_ms = time.time_ns() // 1_000_000
    batch = late_and_dead(now_ms)
    commit_only_dead_letters(options, monkeypatch, batch)
    with monkeypatch.context() as patched:
        patched.setattr(task_writer, "now_ms", lambda: now_ms + 10**6)
        later = stage(load_write_plan(options), batch, by=writer(0))
    with pytest.raises(KlogError, match="has 1 dead letters there already, and 2 now"):
        write_commit.commit(options, later)
    write(options, batch, by=writer(0))
    assert (values(tmp_path), values(tmp_path, "dead")) == (["late"], ["dead"])


@pytest.mark.parametrize("is_expired", [True, False])
def test_replay_whose_dead_letters_are_lost_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_expired: bool
) -> None:
    """A checkpoint covers their missing commit: only log expiration may have removed it."""
    klog.open(tmp_path).create_topic("t", 1, BEFORE)
    options = write_options(tmp_path, topic="t", deadLetterTopic="dead")
    batch = late_and_dead(time.time_ns() // 1_000_000)
    commit_only_dead_letters(options, monkeypatch, batch)
    for number in range(2):
        klog.open(tmp_path).append("dead", rows(number))
    root = find_root(str(tmp_path))
    assert root is not None
    log = root.log("dead")
    if is_expired:
        assert checkpoint_and_expire(log) == 1
        write(options, batch, by=writer(0))
        assert values(tmp_path) == ["late"]
        return
    checkpoint_writer.write_checkpoint(log, log.load())
    (tmp_path / f"_klog/topics/dead/log/{0:020}.json").unlink()
    with pytest.raises(LostCommitError, match=r"dead/log/0+\.json: this commit is lost"):
        write(options, batch, by=writer(0))
    assert values(tmp_path) == []
