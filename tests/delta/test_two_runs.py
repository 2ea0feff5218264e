"""Two runs of to-delta at once, and other writers of the table: nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from klog.connector.commit_log.commit_info import random_uuid
from klog.connector.options.spark_paths import log_directories
from klog.errors import CommitConflictError, KlogError
from klog.jobs.copying_to_delta.batch_writer import MODES, BatchWriter
from klog.jobs.copying_to_delta.commit_note import CommitNote
from klog.jobs.copying_to_delta.copied_topics import DeltaTransaction
from klog.jobs.copying_to_delta.copy_topic import MAX_CONFLICTS, TableOptions, TopicCopy
from klog.jobs.copying_to_delta.table_rows import TableRows
from klog.jobs.shared.delta.delta_target import DeltaTarget
from klog.jobs.shared.topic_batches import TopicReader
from klog.jobs.to_delta import run
from tests.delta.copied_rows import (
    TOPIC,
    append,
    new_log,
    numbered,
    rows_of_table,
    rows_of_topic,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.delta


class Between:
    """Does something else after a batch was planned and before it is written."""

    def __init__(
        self,
        spark: SparkSession,
        root: str,
        table: str,
        mode: str,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.options = options or {}
        self.spark, self.root, self.table, self.mode = spark, root, table, mode
        self.writer = BatchWriter(table, mode, merge_schema=False)
        self.steps: list[str] = []
        self.number = 0

    def copy(self, *steps: str) -> int:
        """Copy, with a step for each batch; return the rows that this run has inserted."""
        self.steps = list(steps)
        target = DeltaTarget(self.spark, self.table)
        copy = TopicCopy(
            self.spark,
            TOPIC,
            TopicReader(log_directories({"path": self.root}), self.options, ""),
            target,
            TableRows(self.root, self.options),
            self.writer,
            None,
            self._make_id,
        )
        return copy.copy(TableOptions({})).rows.inserted

    def _make_id(self) -> str:
        step = self.steps.pop(0) if self.steps else ""
        if step == "run":
            run(self.spark, self.root, TOPIC, self.table, mode=self.mode)
        elif step:
            self.number += 1
            for statement in step.split(";"):
                self.spark.sql(statement.format(table=f"delta.`{self.table}`", number=self.number))
        return random_uuid()


@pytest.mark.parametrize("mode", MODES)
def test_another_run_is_first(delta_spark: SparkSession, tmp_path: Path, mode: str) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root)
    between = Between(delta_spark, root, table, mode)
    append(log, [(f"k{number}", f"v{number}") for number in range(50)])
    assert between.copy("run") == 0
    append(log, [(f"l{number}", f"v{number}") for number in range(50)])
    assert between.copy("run") == 0
    assert rows_of_table(delta_spark, table) == rows_of_topic(log)


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
def test_another_run_is_first_and_delta_forgets_its_transaction(
    delta_spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    """The rows are there twice; this run and each later one says so, and how to go back."""
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root)
    between = Between(delta_spark, root, table, mode)
    append(log, [(f"k{number}", f"v{number}") for number in range(50)])
    run(
        delta_spark,
        root,
        TOPIC,
        table,
        mode=mode,
        table_properties={
            "delta.setTransactionRetentionDuration": "interval 0 seconds",
            "delta.checkpointInterval": "1",
        },
    )
    append(log, [(f"l{number}", f"v{number}") for number in range(50)])
    with pytest.raises(KlogError, match=r"forgotten the transaction .* TO VERSION AS OF 2, which"):
        between.copy("run")
    with pytest.raises(KlogError, match=r"forgotten the transaction"):
        run(delta_spark, root, TOPIC, table, mode=mode)
    delta_spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 2")
    assert run(delta_spark, root, TOPIC, table, mode=mode).rows.inserted == 0
    assert rows_of_table(delta_spark, table) == rows_of_topic(log)


@pytest.mark.full
def test_two_upserts_of_one_session(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Two threads copy two topics: the note of a MERGE is that of its own topic."""
    root = str(tmp_path / "root")
    log = new_log(root, 1, "a")
    log.create_topic("b")
    for topic in ("a", "b"):
        append(log, [(f"{topic}{number}", "v") for number in range(20)], topic)

    def copy(topic: str) -> int:
        limits = {"maxOffsetsPerTrigger": "5"}
        table = str(tmp_path / topic)
        return run(delta_spark, root, topic, table, mode="upsert", options=limits).rows.inserted

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(copy, ["a", "b"])) == [20, 20]
    for topic in ("a", "b"):
        assert rows_of_table(delta_spark, str(tmp_path / topic)) == rows_of_topic(log, topic)


@pytest.mark.full  # CI has two runs of one topic.
def test_two_topics_of_one_table_at_once(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Each carries the offsets of the other, as they were when it was planned."""
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 2, "a")
    log.create_topic("b")
    topics = ("a", "b")
    for topic in topics:
        append(log, numbered(0, 10), topic)
    run(delta_spark, root, topics, table)

    def copy(topic: str) -> int:
        limits = {"maxOffsetsPerTrigger": "10"}
        return run(delta_spark, root, topic, table, options=limits).rows.inserted

    for topic in topics:
        append(log, numbered(10, 40), topic)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(copy, topics)) == [30, 30]
    assert [copy(topic) for topic in topics] == [0, 0]
    expected = [row for topic in topics for row in rows_of_topic(log, topic)]
    assert rows_of_table(delta_spark, table) == expected


@pytest.mark.full
def test_another_run_was_further_on(delta_spark: SparkSession, tmp_path: Path) -> None:
    """The other run has copied records that came after this one was planned."""
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    between = Between(delta_spark, root, table, "append")
    append(log, numbered(0, 10))
    run(delta_spark, root, TOPIC, table)
    append(log, numbered(10, 20))
    original = between._make_id

    def make_id() -> str:
        append(log, numbered(20, 30))
        return original()

    between._make_id = make_id  # type: ignore[method-assign]
    assert between.copy("run") == 0
    assert rows_of_table(delta_spark, table) == rows_of_topic(log)


@pytest.mark.full
def test_first_runs_with_other_starts(delta_spark: SparkSession, tmp_path: Path) -> None:
    """The table has nothing of the topic, and the other run begins at an earlier offset."""
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    append(log, numbered(0, 40))
    between = Between(delta_spark, root, table, "append", {"startingOffsets": "-10"})
    assert between.copy("run") == 0
    assert rows_of_table(delta_spark, table) == rows_of_topic(log)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "step",
    [
        "OPTIMIZE {table}",
        "INSERT INTO {table} (topic, partition, offset) VALUES ('another', 0, {number})",
        "ALTER TABLE {table} SET TBLPROPERTIES ('number' = '{number}')",
    ],
)
@pytest.mark.full
def test_other_writers_meanwhile(
    delta_spark: SparkSession, tmp_path: Path, step: str, mode: str
) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    between = Between(delta_spark, root, table, mode)
    for start in (0, 10):
        append(log, [(f"k{number}", "v") for number in range(start, start + 10)])
        assert between.copy(step, step) == 10
    delta_spark.sql(f"DELETE FROM delta.`{table}` WHERE topic = 'another'")
    assert rows_of_table(delta_spark, table) == rows_of_topic(log)


def test_a_restore_before_the_batch_is_written(delta_spark: SparkSession, tmp_path: Path) -> None:
    """The batch follows what was taken back: the run itself finds it, at its next look."""
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    for start in (0, 10, 20):
        append(log, numbered(start, start + 10))
        run(delta_spark, root, TOPIC, table)
    append(log, numbered(30, 40))
    between = Between(delta_spark, root, table, "append")
    with pytest.raises(KlogError, match=r"RESTORE TABLE .* TO VERSION AS OF 4"):
        between.copy("RESTORE TABLE {table} TO VERSION AS OF 1")
    delta_spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 4")
    run(delta_spark, root, TOPIC, table)
    assert rows_of_table(delta_spark, table) == rows_of_topic(log)


@pytest.mark.parametrize(
    "step",
    [
        "INSERT OVERWRITE {table} SELECT * FROM {table} WHERE offset < 5",
        "DELETE FROM {table}; CREATE OR REPLACE TABLE {table} SHALLOW CLONE delta.`EMPTY`",
    ],
)
@pytest.mark.full
def test_rows_are_replaced_before_the_batch_is_written(
    delta_spark: SparkSession, tmp_path: Path, step: str
) -> None:
    """The run itself finds that its rows follow others than those it was planned on."""
    root, table, empty = (str(tmp_path / name) for name in ("root", "table", "empty"))
    log = new_log(root, 1)
    append(log, numbered(0, 10))
    run(delta_spark, root, TOPIC, table)
    append(log, numbered(10, 20))
    DeltaTarget(delta_spark, empty).create(
        DeltaTarget(delta_spark, table).snapshot().schema, {}, ()
    )
    between = Between(delta_spark, root, table, "append")
    last = 2 + step.count(";")
    with pytest.raises(KlogError, match=f"has replaced rows while .* AS OF {last},"):
        between.copy(step.replace("EMPTY", empty))
    delta_spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {last}")
    run(delta_spark, root, TOPIC, table)
    assert rows_of_table(delta_spark, table) == rows_of_topic(log)


class ObstructedWriter(BatchWriter):
    """Another writer changes the table while Delta writes a batch: its tasks wait for that."""

    def __init__(self, table: str, folder: Path) -> None:
        super().__init__(table, "append", merge_schema=False)
        self._folder, self._name, self.writes = folder, table, 0

    def write(
        self,
        spark: SparkSession,
        rows: DataFrame,
        note: CommitNote,
        transaction: DeltaTransaction,
    ) -> None:
        """See `BatchWriter.write`."""
        self.writes += 1
        started, changed = (self._folder / f"{name}-{self.writes}" for name in ("begun", "changed"))
        paths = str(started), str(changed)

        def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            Path(paths[0]).touch()
            wait_until(Path(paths[1]).exists, "the table is changed")
            yield from batches

        def change() -> None:
            wait_until(started.exists, "a task has started")
            pair = f"'number' = '{self.writes}'"
            spark.sql(f"ALTER TABLE delta.`{self._name}` SET TBLPROPERTIES ({pair})")
            changed.touch()

        with ThreadPoolExecutor(1) as pool:
            changing = pool.submit(change)
            super().write(spark, rows.mapInArrow(wait, rows.schema), note, transaction)
            changing.result()


@pytest.mark.full
def test_writers_that_are_in_the_way_all_the_time(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    append(new_log(root, 1), numbered(0, 10))
    between = Between(delta_spark, root, table, "append")
    between.writer = writer = ObstructedWriter(table, tmp_path)
    with pytest.raises(CommitConflictError, match=f"{MAX_CONFLICTS} times in a row"):
        between.copy()
    assert writer.writes == MAX_CONFLICTS
    assert rows_of_table(delta_spark, table) == []
    assert run(delta_spark, root, TOPIC, table).rows.inserted == 10
