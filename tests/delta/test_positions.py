"""Where a copy goes on after its table was restored, cloned, cleaned up or changed by others."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from klog.connector.embedded import Log
from klog.errors import KlogError
from klog.jobs.copying_to_delta.copied_topics import find_copied_topics
from klog.jobs.shared.delta.delta_target import DeltaTarget
from klog.jobs.to_delta import run
from tests.delta.copied_rows import (
    TOPIC,
    append,
    new_log,
    numbered,
    rows_of_table,
    rows_of_topic,
)
from tests.delta.expired_commits import expire_commits

pytestmark = pytest.mark.delta


class Copy:
    """A topic that grows and its copy."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.root, self.table = spark, str(folder / "root"), str(folder / "table")
        self.log: Log = new_log(self.root)
        self.count = 0

    def grow(self, records: int = 30) -> None:
        """Append to the topic and copy it."""
        append(self.log, numbered(self.count, self.count + records))
        self.count += records
        run(self.spark, self.root, TOPIC, self.table)

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.format(table=f"delta.`{self.table}`"))

    def version(self) -> int:
        return DeltaTarget(self.spark, self.table).snapshot().version

    def inserted(self) -> int:
        return run(self.spark, self.root, TOPIC, self.table).rows.inserted

    def overwrite(self, condition: str, files: int) -> None:
        """Replace the rows of the table by some of them."""
        rows = self.spark.read.format("delta").load(self.table).where(condition).localCheckpoint()
        rows.coalesce(files).write.format("delta").mode("overwrite").save(self.table)

    def check(self) -> None:
        """Check that the table has each record of the topic once."""
        assert rows_of_table(self.spark, self.table) == rows_of_topic(self.log)


@pytest.fixture
def copy(delta_spark: SparkSession, tmp_path: Path) -> Copy:
    copy = Copy(delta_spark, tmp_path)
    for _ in range(3):
        copy.grow()
    return copy


def test_a_restored_table_goes_on_where_it_was(copy: Copy) -> None:
    copy.sql("RESTORE TABLE {table} TO VERSION AS OF 1")
    assert copy.inserted() == 60
    copy.check()
    assert copy.inserted() == 0


@pytest.mark.full  # Other tests restore once.
def test_a_restore_of_a_restore(copy: Copy) -> None:
    last = copy.version()
    copy.sql("RESTORE TABLE {table} TO VERSION AS OF 1")
    copy.sql(f"RESTORE TABLE {{table}} TO VERSION AS OF {last}")
    assert copy.inserted() == 0
    copy.sql(f"RESTORE TABLE {{table}} TO VERSION AS OF {last + 1}")
    assert copy.inserted() == 60
    copy.check()


@pytest.mark.full
def test_a_restore_to_a_time(copy: Copy) -> None:
    rows = copy.spark.sql(f"DESCRIBE HISTORY delta.`{copy.table}`").collect()
    times = {row["version"]: row["timestamp"] for row in rows}
    copy.sql(f"RESTORE TABLE {{table}} TO TIMESTAMP AS OF '{times[2]}'")
    assert copy.inserted() == 30
    copy.check()


@pytest.mark.full
def test_a_restore_to_before_the_first_batch(copy: Copy) -> None:
    copy.sql("RESTORE TABLE {table} TO VERSION AS OF 0")
    assert copy.inserted() == 90
    copy.check()


@pytest.mark.full  # CI has the same with tests/delta/test_two_runs.py.
def test_a_restore_while_a_batch_is_on_its_way(copy: Copy) -> None:
    """Rows that were planned on what was taken back are found, and the error says what to do."""
    target = DeltaTarget(copy.spark, copy.table)
    copied = find_copied_topics(target, [TOPIC], "append")
    from klog.jobs.copying_to_delta.commit_note import CommitNote

    topics = {topic: known.offsets for topic, known in copied.topics.items()}
    note = CommitNote(
        "late", "append", copied.snapshot.table_id, TOPIC, copied.snapshot.version, topics
    )
    copy.sql("RESTORE TABLE {table} TO VERSION AS OF 1")
    rows = copy.spark.read.format("delta").load(copy.table).limit(1)
    target.append(rows.write.option("userMetadata", note.to_text()))
    with pytest.raises(KlogError, match=r"RESTORE TABLE \.\.\. TO VERSION AS OF 4") as exc:
        run(copy.spark, copy.root, TOPIC, copy.table)
    assert "version 4 is a RESTORE" in str(exc.value)
    copy.sql("RESTORE TABLE {table} TO VERSION AS OF 4")
    assert copy.inserted() == 60
    copy.check()


def test_expired_transactions(copy: Copy) -> None:
    copy.sql(
        "ALTER TABLE {table} SET TBLPROPERTIES "
        "('delta.setTransactionRetentionDuration' = 'interval 0 seconds')"
    )
    time.sleep(0.1)
    for _ in range(2):
        copy.grow()
    copy.check()


@pytest.mark.full
def test_expired_commits(copy: Copy) -> None:
    """Delta cleans its log up, and the notes are gone: the rows say where the copy is."""
    expire_commits(copy.spark, copy.table)
    assert copy.inserted() == 0
    copy.grow()
    copy.check()


@pytest.mark.full  # CI finds the place by rows in other tests of this file.
def test_a_shallow_clone_goes_on_by_itself(copy: Copy) -> None:
    source, clone = copy.table, f"{copy.table}-clone"
    copy.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE {{table}}")
    append(copy.log, numbered(500, 540))
    for table in (source, clone):
        copy.table = table
        assert copy.inserted() == 40
        assert copy.inserted() == 0
        copy.check()


def test_rows_that_were_deleted_do_not_come_back(copy: Copy) -> None:
    """A job that keeps the table small, or removes a customer, deletes the newest rows as well."""
    copy.sql("DELETE FROM {table} WHERE partition = 1")
    assert copy.inserted() == 0
    copy.sql("DELETE FROM {table}")
    append(copy.log, numbered(90, 100))
    assert copy.inserted() == 10


def test_a_rewritten_table_is_where_its_rows_are(copy: Copy) -> None:
    copy.overwrite("offset < 5", files=2)
    assert copy.inserted() == 75
    copy.check()


@pytest.mark.full
def test_other_writers_of_the_table(copy: Copy) -> None:
    copy.sql("OPTIMIZE {table}")
    copy.sql("INSERT INTO {table} (topic, partition, offset) VALUES ('of another job', 0, 7)")
    copy.sql("ALTER TABLE {table} ADD COLUMN note STRING")
    copy.grow()
    copy.sql("DELETE FROM {table} WHERE topic = 'of another job'")
    copy.check()


@pytest.mark.full
def test_column_mapping_and_long_names(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Statistics go by physical names, and have the first 32 characters of a text."""
    topic = "orders-of-the-european-subsidiaries-by-customer"
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 3, topic)
    append(log, numbered(0, 40), topic)
    run(
        delta_spark,
        root,
        topic,
        table,
        table_properties={"delta.columnMapping.mode": "name"},
    )
    clone = f"{table}-clone"
    delta_spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{table}`")
    append(log, numbered(40, 60), topic)
    assert run(delta_spark, root, topic, clone).rows.inserted == 20
    assert rows_of_table(delta_spark, clone) == rows_of_topic(log, topic)


@pytest.mark.parametrize("property_", ["delta.dataSkippingNumIndexedCols", ""])
@pytest.mark.full
def test_files_that_statistics_leave_open(copy: Copy, property_: str) -> None:
    """One file with several partitions, and files without statistics."""
    if property_:
        copy.sql(f"ALTER TABLE {{table}} SET TBLPROPERTIES ('{property_}' = '0')")
    copy.overwrite("true", files=1)
    assert copy.inserted() == 0
    copy.grow()
    copy.check()
