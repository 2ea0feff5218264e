"""A write of several tasks is in the log once, whatever others do meanwhile."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.commit_log import commit_builders
from klog.connector.commit_log.append_commit import Writer
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.options.write_options import WriteOptions
from klog.connector.sink import write_commit
from klog.connector.sink.task_writer import write_task
from klog.connector.sink.write_plan import WritePlan, load_write_plan
from klog.connector.store.local_store import LocalStore
from klog.connector.store.writable_store import PutResult
from klog.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    KlogError,
    OptionError,
)
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


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_topics(monkeypatch)


def test_segments_are_ordered_by_partition_and_task(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t", numPartitions=2)
    first, second = rows(1, 2, partition=[1, 0]), rows(3, 4, partition=[0, 1])
    messages = stage(load_write_plan(options), first, second)
    write_commit.commit(options, messages[::-1])
    assert values(tmp_path) == ["2", "3", "1", "4"]
    table = klog.open(tmp_path).scan("t", columns=["offset"]).read_all()
    assert table["offset"].to_pylist() == [0, 1, 0, 1]
    assert versions(tmp_path) == 1  # The same commit created the topic.
    (commit,) = klog.open(tmp_path).history("t")
    assert [entry["partition"] for entry in commit.actions.add] == [0, 0, 1, 1]


def test_staged_rows_are_invisible_before_the_commit(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    stage(load_write_plan(options), rows(1))
    assert klog.open(tmp_path).topics() == []


def test_task_refuses_a_store_that_cannot_be_written() -> None:
    """The driver may find a root there, and plan."""
    plan = WritePlan(WriteOptions("http://host/root", topic="t"), "a write", 1, {}, {})
    with pytest.raises(OptionError, match="klog cannot write to http://"):
        write_task(plan, None, 0, 0, iter([rows(1)]))


def test_empty_write_without_a_transactional_id_commits_nothing(tmp_path: Path) -> None:
    write(write_options(tmp_path, topic="t"), rows().slice(0, 0))
    assert klog.open(tmp_path).topics() == []


def test_write_to_several_topics_is_completed_by_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = write_options(tmp_path)
    batch = rows(1, 2, 3, topic=["c", "a", "b"])
    messages = stage(load_write_plan(options), batch, by=writer(0))
    put = LocalStore.put_if_absent

    def failing_put(self: LocalStore, path: str, data: bytes) -> Any:
        if path.endswith("b/log/00000000000000000000.json"):
            raise KlogError("the disk is gone")
        return put(self, path, data)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "put_if_absent", failing_put)
        with pytest.raises(KlogError) as caught:
            write_commit.commit(options, messages)
    assert f"topic b of {tmp_path}: the disk is gone. Written before: a; " in str(caught.value)
    assert "the same write again completes it" in str(caught.value)
    assert klog.open(tmp_path).topics() == ["a"]
    write(options, batch, by=writer(0, run="again"))
    assert [values(tmp_path, topic) for topic in "abc"] == [["2"], ["3"], ["1"]]
    assert [versions(tmp_path, topic) for topic in "abc"] == [1, 1, 1]


@pytest.mark.parametrize("by", [None, writer(0)], ids=["no writer", "writer"])
def test_repeated_commit_of_the_same_messages_changes_nothing(
    tmp_path: Path, by: Writer | None
) -> None:
    """Its write id is in the log."""
    options = write_options(tmp_path)
    messages = stage(load_write_plan(options), rows(1, 2, topic=["a", "b"]), by=by)
    for _ in range(2):
        write_commit.commit(options, messages)
        assert [(values(tmp_path, topic), versions(tmp_path, topic)) for topic in "ab"] == [
            (["1"], 1),
            (["2"], 1),
        ]


def test_commit_with_a_lost_answer_is_not_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = write_options(tmp_path, topic="t")
    messages = stage(load_write_plan(options), rows(1), by=writer(0))
    put, read = LocalStore.put_if_absent, LocalStore.read

    def failing_read(self: LocalStore, path: str, max_bytes: int | None = None) -> bytes:
        raise KlogError("the store is gone")

    def put_with_lost_answer(self: LocalStore, path: str, data: bytes) -> PutResult:
        result = put(self, path, data)
        if "/log/" not in path:
            return result
        monkeypatch.setattr(LocalStore, "read", failing_read)
        return PutResult.UNKNOWN

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "put_if_absent", put_with_lost_answer)
        with pytest.raises(CommitStateUnknownError, match="topic t of"):
            write_commit.commit(options, messages)
    monkeypatch.setattr(LocalStore, "read", read)
    assert values(tmp_path) == ["1"]
    write(options, rows(1), by=writer(0, run="again"))
    assert values(tmp_path) == ["1"]


def test_tasks_of_two_writes_are_refused(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    messages = stage(load_write_plan(options), rows(1)) + stage(load_write_plan(options), rows(2))
    with pytest.raises(KlogError, match="tasks of several writes"):
        write_commit.commit(options, messages)


def test_dead_letters_are_written_exactly_once(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t", deadLetterTopic="dead")
    batch = rows(1, 2, partition=[0, 5])
    for run in ("one", "two"):
        write(options, batch, by=writer(0, run=run))
    assert (values(tmp_path), values(tmp_path, "dead")) == (["1"], ["2"])


def test_dead_letters_are_committed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = write_options(tmp_path, topic="a", deadLetterTopic="dead")
    messages = stage(load_write_plan(options), rows(1, 2, partition=[0, 5]), by=writer(0))
    put = LocalStore.put_if_absent

    def failing_put(self: LocalStore, path: str, data: bytes) -> Any:
        if "topics/a/log" in path:
            raise KlogError("the disk is gone")
        return put(self, path, data)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "put_if_absent", failing_put)
        with pytest.raises(KlogError, match="Written before: dead"):
            write_commit.commit(options, messages)
    write(options, rows(1, 2, partition=[0, 5]), by=writer(0))
    assert (values(tmp_path, "a"), values(tmp_path, "dead")) == (["1"], ["2"])


def test_many_files_in_a_partition_are_a_warning(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t")
    with pytest.warns(UserWarning, match=r"t: this write left 5 files in one partition"):
        write(options, *[rows(n) for n in range(5)])


@pytest.mark.filterwarnings("error")
def test_few_files_in_each_partition_are_no_warning(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t", numPartitions=2)
    write(options, *[rows(n, n, partition=[0, 1]) for n in range(4)])
    assert len(values(tmp_path)) == 8


def test_base_version_of_a_write_is_the_lowest_of_its_tasks(tmp_path: Path) -> None:
    """Vacuum may have removed the files of the first task, but not those of a later one."""
    options, log = write_options(tmp_path), klog.open(tmp_path)
    log.create_topic("t")
    plan = load_write_plan(options)
    first = stage(plan, rows(1, topic=["t"]))
    log.append("t", pa.table({"value": ["between"]}))
    second = stage(plan, rows(2, topic=["t"]), first_task=1)
    root = find_root(str(tmp_path))
    assert root is not None
    commits = root.log("t")
    vacuum = CommitInfo("a vacuum", "vacuum", "test")
    commits.commit(commits.load(), commit_builders.set_vacuum_version(1, ()), vacuum)
    with pytest.raises(CommitConflictError, match="this write began at version 0, and vacuum"):
        write_commit.commit(options, [*first, *second])
    assert values(tmp_path) == ["between"]


def test_record_too_large_for_its_topic_is_a_dead_letter(tmp_path: Path) -> None:
    options = write_options(tmp_path, topic="t", deadLetterTopic="dead")
    noise = Random(1).randbytes(2_000_000)
    write(options, pa.RecordBatch.from_pydict({"value": [noise, b"small"]}), by=writer(0))
    assert klog.open(tmp_path).scan("dead").read_all()["value"].to_pylist() == [noise]
    assert values(tmp_path) == ["small"]
