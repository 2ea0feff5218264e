"""A write of many tasks: planned once, in the log once, whatever others do meanwhile."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.log import operations
from klog.connector.log.operations import Writer
from klog.connector.log.root import find_root
from klog.connector.log.topic_log import Attempt
from klog.connector.sink import committing, known, writing
from klog.connector.sink.known import KnownTopics
from klog.connector.sink.write_options import WriteOptions, write_options
from klog.connector.sink.writing import Planned, TaskWork
from klog.connector.store.contract import Put
from klog.connector.store.local import LocalStore
from klog.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    KlogError,
    OptionError,
    ProducerFencedError,
)


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin as a process that knows nothing."""
    for module in (writing, committing):  # Spark plans and commits in two processes.
        monkeypatch.setattr(module, "KNOWN", KnownTopics())


def options(root: Path, **given: Any) -> WriteOptions:
    return write_options({"path": str(root), **{name: str(v) for name, v in given.items()}})


def rows(*values: object, **columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": [str(value) for value in values], **columns})


def writer(batch: int, query: str = "q", run: str = "r", name: str = "etl") -> Writer:
    return Writer(name, batch, query, run)


def work(
    planned: Planned, *tasks: pa.RecordBatch, by: Writer | None = None, attempt: int = 0
) -> list[TaskWork]:
    """Stage a task for each batch."""
    return [
        writing.stage(planned, by, task, attempt + task, iter([batch]))
        for task, batch in enumerate(tasks)
    ]


def write(given: WriteOptions, *tasks: pa.RecordBatch, by: Writer | None = None) -> None:
    committing.commit(given, work(writing.plan(given, streaming=True), *tasks, by=by))


def values(root: Path, topic: str = "t") -> list[str]:
    """What a topic has, by partition and offset."""
    table = klog.open(root).scan(topic).read_all()
    return [value.decode() for value in table["value"].to_pylist()]


def versions(root: Path, topic: str = "t") -> int:
    return len(klog.open(root).history(topic))


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


def test_a_topic_made_anew_meanwhile_is_another(tmp_path: Path) -> None:
    log = klog.open(tmp_path)
    log.create_topic("t")
    given = options(tmp_path, topic="t")
    done = work(writing.plan(given), rows(1))
    log.delete_topic("t")
    log.create_topic("t")
    with pytest.raises(CommitConflictError, match="made anew meanwhile"):
        committing.commit(given, done)
    write(given, rows(2))
    assert values(tmp_path) == ["2"]


def test_a_root_made_anew_is_looked_at_anew(tmp_path: Path) -> None:
    given = options(tmp_path / "root", topic="t")
    for number in range(3):
        write(given, rows(number), by=writer(number))
    shutil.rmtree(tmp_path / "root")
    write(given, rows("new"), by=writer(0, query="new"))
    assert values(tmp_path / "root") == ["new"]
    assert versions(tmp_path / "root") == 1


def test_two_first_writes_share_the_topic_they_make(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    first, second = (work(writing.plan(given), rows(n)) for n in (1, 2))
    committing.commit(given, first)
    committing.commit(given, second)
    assert values(tmp_path) == ["1", "2"]


@pytest.mark.parametrize(
    ("partitions", "config", "said"),
    [
        (3, {}, "3 partitions now, rows were spread over 1"),
        (1, {"cleanup.policy": "compact"}, "with configs that this write did not go by"),
    ],
)
def test_a_topic_made_otherwise_meanwhile_is_told(
    tmp_path: Path, partitions: int, config: Mapping[str, str], said: str
) -> None:
    given = options(tmp_path, topic="t")
    done = work(writing.plan(given), rows(1))
    klog.open(tmp_path).create_topic("t", partitions, config)
    with pytest.raises(CommitConflictError, match=said):
        committing.commit(given, done)
    write(given, rows(1, key=["a"]))
    assert values(tmp_path) == ["1"]


def test_a_missing_topic_is_refused_where_none_may_be_made(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t", createTopic="false")
    with pytest.raises(OptionError, match="is no klog root, and createTopic=false"):
        writing.plan(given)
    klog.open(tmp_path).create_topic("other")
    with pytest.raises(OptionError, match="there is no topic t in"):
        writing.plan(given)
    by_column = options(tmp_path, createTopic="false")
    with pytest.raises(KlogError, match="row 1 of task 0: there is no topic t in"):
        work(writing.plan(by_column), rows(1, 2, topic=["other", "t"]))


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


def test_the_topic_that_was_seen_longest_ago_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "MOST_TOPICS", 2)
    given, topics = options(tmp_path), KnownTopics()
    for topic in "abc":
        klog.open(tmp_path).create_topic(topic)
    seen = {topic: topics.load(given, topic) for topic in ("a", "b", "a", "c")}
    states = {topic: (one.state.topic_id, one.state.version) for topic, one in seen.items()}
    for topic, is_kept in (("a", True), ("c", True), ("b", False)):
        assert (topics.last(given, topic, states[topic]) is seen[topic]) == is_kept, topic


def test_partitions_added_meanwhile_are_told(tmp_path: Path) -> None:
    log = klog.open(tmp_path)
    log.create_topic("t")
    given = options(tmp_path, topic="t")
    done = work(writing.plan(given), rows(1))
    log.add_partitions("t", 2)
    with pytest.raises(CommitConflictError, match="rows were spread over 1"):
        committing.commit(given, done)


def test_partitions_added_between_batches(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t")
    write(given, rows(0), by=writer(0))
    klog.open(tmp_path).add_partitions("t", 2)
    write(given, rows(1, partition=[1]), by=writer(1))
    assert values(tmp_path) == ["0", "1"]


def test_a_root_that_was_restored_meanwhile_is_loaded(tmp_path: Path) -> None:
    given, root = options(tmp_path / "root", topic="t"), tmp_path / "root"
    write(given, rows(0), by=writer(0))
    shutil.copytree(root, tmp_path / "backup")
    for number in (1, 2, 3):
        write(given, rows(number), by=writer(number))
    shutil.rmtree(root)
    shutil.copytree(tmp_path / "backup", root)
    write(given, rows("again"), by=writer(1))
    assert values(root) == ["0", "again"]
    assert versions(root) == 2


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


def test_new_topics_that_collide_are_refused_before_one_is_made(tmp_path: Path) -> None:
    given = options(tmp_path)
    done = work(writing.plan(given), rows(1, 2, 3, topic=["a", "x.y", "x_y"]))
    with pytest.raises(OptionError, match=r"topics x.y and x_y collide"):
        committing.commit(given, done)
    assert klog.open(tmp_path).topics() == []
    klog.open(tmp_path).create_topic("z_b")
    with pytest.raises(KlogError, match=r"row 0 of task 0: topic z.b collides with topic z_b"):
        work(writing.plan(given), rows(1, topic=["z.b"]))


def test_a_record_too_large_for_its_topic_is_a_dead_letter(tmp_path: Path) -> None:
    given = options(tmp_path, topic="t", deadLetterTopic="dead")
    noise = Random(1).randbytes(2_000_000)
    write(given, pa.RecordBatch.from_pydict({"value": [noise, b"small"]}), by=writer(0))
    assert klog.open(tmp_path).scan("dead").read_all()["value"].to_pylist() == [noise]
    assert values(tmp_path) == ["small"]


def test_a_replay_that_judges_otherwise_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    klog.open(tmp_path).create_topic("t", 1, {"message.timestamp.before.max.ms": "100000"})
    given = options(tmp_path, topic="t", deadLetterTopic="dead")
    now_ms = time.time_ns() // 1_000_000
    times = pa.array([now_ms, now_ms - 10**9], pa.timestamp("ms"))
    batch = rows("late", "dead", timestamp=times)
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
    with monkeypatch.context() as patched:
        patched.setattr(writing, "now_ms", lambda: now_ms + 10**6)
        later = work(writing.plan(given), batch, by=writer(0))
    with pytest.raises(CommitConflictError, match="has 1 dead letters there already, and 2 now"):
        committing.commit(given, later)
    write(given, batch, by=writer(0))
    assert (values(tmp_path), values(tmp_path, "dead")) == (["late"], ["dead"])


def test_a_topic_whose_rows_are_all_refused_is_not_made(tmp_path: Path) -> None:
    given = options(tmp_path, deadLetterTopic="dead")
    write(given, rows(1, topic=["typo"], partition=[7]), by=writer(0))
    assert klog.open(tmp_path).topics() == ["dead"]
