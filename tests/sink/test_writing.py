"""A write of many tasks: planned once, in the log once, whatever others do meanwhile."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.log import operations
from klog.connector.log.root import find_root
from klog.connector.log.topic_log import Attempt
from klog.connector.sink import committing, writing
from klog.connector.sink.known import KnownTopics
from klog.connector.store.contract import Put
from klog.connector.store.local import LocalStore
from klog.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    KlogError,
)
from tests.sink.writes import options, rows, values, versions, work, write, writer


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin as a process that knows nothing."""
    for module in (writing, committing):  # Spark plans and commits in two processes.
        monkeypatch.setattr(module, "KNOWN", KnownTopics())


def test_tasks_are_in_the_log_in_their_order(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t", numPartitions=2)
    first, second = rows(1, 2, partition=[1, 0]), rows(3, 4, partition=[0, 1])
    done = work(writing.plan(given), first, second)
    committing.commit(given, done[::-1])
    assert values(tmp_path) == ["2", "3", "1", "4"]
    table = klog.open(tmp_path).scan("t", columns=["offset"]).read_all()
    assert table["offset"].to_pylist() == [0, 1, 0, 1]
    assert versions(tmp_path) == 1  # The topic was made by the commit that filled it.
    (commit,) = klog.open(tmp_path).history("t")
    assert [entry["partition"] for entry in commit.actions.add] == [0, 0, 1, 1]


def test_what_is_staged_is_not_there_before_the_commit(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    work(writing.plan(given), rows(1))
    assert klog.open(tmp_path).topics() == []


def test_an_empty_write_without_a_name_is_none(tmp_path: Path) -> None:
    write(options(tmp_path, topic="t"), rows().slice(0, 0))
    assert klog.open(tmp_path).topics() == []


def test_a_write_to_many_topics_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = options(tmp_path)
    batch = rows(1, 2, 3, topic=["c", "a", "b"])
    done = work(writing.plan(given), batch, by=writer(0))
    put = LocalStore.put_if_absent

    def broken(self: LocalStore, path: str, data: bytes) -> Any:
        if path.endswith("b/log/00000000000000000000.json"):
            raise KlogError("the disk is away")
        return put(self, path, data)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "put_if_absent", broken)
        with pytest.raises(KlogError) as caught:
            committing.commit(given, done)
    assert f"topic b of {tmp_path}: the disk is away. Written before: a; " in str(caught.value)
    assert "the same write again completes it" in str(caught.value)
    assert klog.open(tmp_path).topics() == ["a"]
    write(given, batch, by=writer(0, run="again"))
    assert [values(tmp_path, topic) for topic in "abc"] == [["2"], ["3"], ["1"]]
    assert [versions(tmp_path, topic) for topic in "abc"] == [1, 1, 1]


def test_an_answer_that_is_lost_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = options(tmp_path, topic="t")
    done = work(writing.plan(given), rows(1), by=writer(0))
    put, read = LocalStore.put_if_absent, LocalStore.read

    def away(self: LocalStore, path: str, most_bytes: int | None = None) -> bytes:
        raise KlogError("the store is away")

    def unknown(self: LocalStore, path: str, data: bytes) -> Put:
        found = put(self, path, data)
        if "/log/" not in path:
            return found
        monkeypatch.setattr(LocalStore, "read", away)
        return Put.UNKNOWN

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "put_if_absent", unknown)
        with pytest.raises(CommitStateUnknownError, match="topic t of"):
            committing.commit(given, done)
    monkeypatch.setattr(LocalStore, "read", read)
    assert values(tmp_path) == ["1"]
    write(given, rows(1), by=writer(0, run="again"))
    assert values(tmp_path) == ["1"]


def test_tasks_of_two_writes_are_not_committed_as_one(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    done = work(writing.plan(given), rows(1)) + work(writing.plan(given), rows(2))
    with pytest.raises(KlogError, match="tasks of several writes"):
        committing.commit(given, done)


def test_dead_letters_land_with_the_rest(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t", deadLetterTopic="dead")
    batch = rows(1, 2, partition=[0, 5])
    for run in ("one", "two"):
        write(given, batch, by=writer(0, run=run))
    assert (values(tmp_path), values(tmp_path, "dead")) == (["1"], ["2"])


def test_dead_letters_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = options(tmp_path, topic="a", deadLetterTopic="dead")
    done = work(writing.plan(given), rows(1, 2, partition=[0, 5]), by=writer(0))
    put = LocalStore.put_if_absent

    def broken(self: LocalStore, path: str, data: bytes) -> Any:
        if "topics/a/log" in path:
            raise KlogError("the disk is away")
        return put(self, path, data)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "put_if_absent", broken)
        with pytest.raises(KlogError, match="Written before: dead"):
            committing.commit(given, done)
    write(given, rows(1, 2, partition=[0, 5]), by=writer(0))
    assert (values(tmp_path, "a"), values(tmp_path, "dead")) == (["1"], ["2"])


def test_many_files_are_warned_of(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    with pytest.warns(UserWarning, match=r"t: this write left 5 files in one partition"):
        write(given, *[rows(n) for n in range(5)])


@pytest.mark.filterwarnings("error")
def test_few_files_in_each_partition_are_not_warned_of(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t", numPartitions=2)
    write(given, *[rows(n, n, partition=[0, 1]) for n in range(4)])
    assert len(values(tmp_path)) == 8


def test_a_write_is_as_old_as_the_first_of_its_tasks(tmp_path: Path) -> None:
    """Vacuum may have taken the files of one task, though not those of a later one."""
    given, log = options(tmp_path), klog.open(tmp_path)
    log.create_topic("t")
    planned = writing.plan(given)
    first = writing.stage(planned, None, 0, 0, iter([rows(1, topic=["t"])]))
    log.append("t", pa.table({"value": ["between"]}))
    second = writing.stage(planned, None, 1, 1, iter([rows(2, topic=["t"])]))
    root = find_root(str(tmp_path))
    assert root is not None
    commits = root.log("t")
    vacuum = Attempt("a vacuum", "vacuum", "test")
    commits.commit(commits.load(), operations.raise_horizon(1, ()), vacuum)
    with pytest.raises(CommitConflictError, match="this write began at version 0, and vacuum"):
        committing.commit(given, [first, second])
    assert values(tmp_path) == ["between"]


def test_a_record_too_large_for_its_topic_is_a_dead_letter(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t", deadLetterTopic="dead")
    noise = Random(1).randbytes(2_000_000)
    write(given, pa.RecordBatch.from_pydict({"value": [noise, b"small"]}), by=writer(0))
    assert klog.open(tmp_path).scan("dead").read_all()["value"].to_pylist() == [noise]
    assert values(tmp_path) == ["small"]
