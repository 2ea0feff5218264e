"""`from-delta`: each change of a table is in the topic once, and its last values are the rows."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type

import klog
from klog.connector.options.write_options import parse_write_options
from klog.errors import DataLossError, KlogError, OptionError
from klog.jobs import from_delta, to_delta
from klog.jobs.commands.from_delta_command import COMMAND
from klog.jobs.copying_from_delta.copy_table import CopyOptions, TableCopy
from klog.jobs.copying_from_delta.encoded_rows import make_row_format
from klog.jobs.copying_from_delta.table_log import TableLog
from klog.jobs.copying_from_delta.topic_position import (
    Position,
    TopicPosition,
    transactional_id,
)
from klog.jobs.shared.common_options import add_root_option
from klog.jobs.shared.delta.delta_target import DeltaTarget
from klog.jobs.shared.job_command import add_options
from klog.logformat.batches.record_headers import HEADERS_TYPE
from klog.values import decode
from klog.values.avro_derived_schema import derived_avro_schema
from tests.delta.changed_table import FEED, ChangedTable
from tests.delta.copied_rows import TOPIC

pytestmark = pytest.mark.delta


@pytest.fixture
def table(delta_spark: SparkSession, tmp_path: Path) -> ChangedTable:
    return ChangedTable(delta_spark, str(tmp_path / "table"), str(tmp_path / "root"))


def test_inserts_updates_and_deletes(table: ChangedTable) -> None:
    """A snapshot first, then one commit for each version that changed rows, and none for others."""
    table.create()
    table.sql("insert into {t} values (1, 'a'), (2, 'b')")
    report = table.copy()
    assert table.versions(report) == [(1, 2, 0)]
    assert report.start_version is None
    assert report.end_version == 1
    table.sql("update {t} set name = 'bb' where id = 2")
    table.sql("delete from {t} where id = 1")
    table.sql("insert into {t} values (3, null)")
    table.sql("optimize {t}")
    table.sql("update {t} set id = 4 where id = 3")
    table.sql("alter table {t} set tblproperties ('a' = 'b')")
    assert [v.operation for v in table.copy(dry_run=True).versions] == [
        "UPDATE",
        "DELETE",
        "WRITE",
        "UPDATE",
    ]
    report = table.copy()
    assert table.versions(report) == [(2, 1, 0), (3, 1, 1), (4, 1, 0), (6, 2, 1)]
    assert report.versions_without_changes == 2
    assert (report.start_version, report.end_version) == (1, 7)
    assert table.records() == [
        ("1", {"id": 1, "name": "a"}),
        ("1", None),
        ("2", {"id": 2, "name": "b"}),
        ("2", {"id": 2, "name": "bb"}),
        ("3", {"id": 3, "name": None}),
        ("3", None),
        ("4", {"id": 4, "name": None}),
    ]
    assert table.last_values() == table.rows()
    log = klog.open(table.root)
    commits = len(log.history(TOPIC))
    assert table.copy().versions == ()
    assert len(log.history(TOPIC)) == commits


def test_raw_round_trip(table: ChangedTable, tmp_path: Path) -> None:
    """What `to-delta` has copied comes back: key, value, headers, timestamp, and the order."""
    source = str(tmp_path / "source")
    log = klog.open(source)
    log.create_topic(TOPIC, partitions=2)
    rows = pa.table(
        {
            "key": ["a", "b", None, "a", "c", "a"],
            "value": ["1", None, "3", "4", "", "6"],
            "headers": pa.array(
                [None, [], [{"key": "h", "value": b"x"}], None, None, None], HEADERS_TYPE
            ),
            "timestamp": pa.array([1000, 2000, 3000, 4000, 5000, 6000], pa.timestamp("ms")),
        }
    )
    log.append(TOPIC, rows)
    to_delta.run(table.spark, source, TOPIC, table.path)
    log.append(TOPIC, rows.slice(4))
    to_delta.run(table.spark, source, TOPIC, table.path)
    report = table.copy(
        key=(), value_format="raw", starting_version="earliest", options={"numPartitions": "2"}
    )
    assert [version.records for version in report.versions] == [6, 2]
    columns = ["partition", "key", "value", "headers", "timestamp"]
    copies = [
        klog.open(root).scan(TOPIC, columns=["offset", *columns]).read_all()
        for root in (source, table.root)
    ]
    first, second = (
        [
            row
            for row in copy.sort_by([("partition", "ascending"), ("offset", "ascending")])
            .select(columns)
            .to_pylist()
            if row["key"] is not None  # The partition of a record without a key is any.
        ]
        for copy in copies
    )
    assert first == second
    assert len(first) == 7


def test_two_runs_and_a_writer_at_once(table: ChangedTable) -> None:
    """Each version is one commit, whichever run writes it, and a run ends where it began to end."""
    table.create().sql("insert into {t} values (0, 'v')")
    stop = threading.Event()
    errors: list[Exception] = []

    def write() -> None:
        for number in range(1, 4):
            table.sql(f"insert into {{t}} values ({number}, 'v')")
            table.sql(f"update {{t}} set name = concat(name, '{number}') where id < {number}")
        stop.set()

    def copy() -> None:
        # This makes the session the thread's active one: otherwise Spark finds no Python format.
        table.spark.createDataFrame([(0,)], "nothing int")
        try:
            while not stop.is_set():
                table.copy()
        except Exception as exc:  # noqa: BLE001 - the test raises it
            errors.append(exc)

    threads = [threading.Thread(target=target) for target in (write, copy, copy)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    table.copy()
    assert table.last_values() == table.rows()
    commits = klog.open(table.root).history(TOPIC)
    written = [
        commit.actions.writer_transaction.batch_id
        for commit in commits
        if commit.actions.add and commit.actions.writer_transaction is not None
    ]
    first, last = min(written), max(written)
    assert written == list(range(last, first - 1, -1))
    assert last == 7


def test_a_topic_that_is_created_again_starts_over(table: ChangedTable) -> None:
    table.create().sql("insert into {t} values (1, 'a')")
    table.copy()
    log = klog.open(table.root)
    log.delete_topic(TOPIC)
    log.create_topic(TOPIC)
    log.append(TOPIC, pa.table({"key": ["9"], "value": ["{}"]}))
    table.sql("insert into {t} values (2, 'b')")
    report = table.copy(options={})
    assert table.versions(report) == [(2, 2, 0)]
    # A first snapshot leaves the records of others alone.
    assert table.last_values() == {**table.rows(), "9": {}}


@pytest.mark.full
def test_values_in_avro(table: ChangedTable) -> None:
    """The schema follows from the columns; a tombstone has no value."""
    table.create("id bigint, d decimal(20, 2), t timestamp, x array<struct<y: string>>")
    table.sql(
        "insert into {t} values (1, 12345678901234567.89, timestamp'2024-05-06 07:08:09.123456', "
        "array(struct('z'), null)), (2, null, null, null)"
    )
    table.sql("delete from {t} where id = 2")
    rows = table.spark.table(table.name).collect()
    table.copy(value_format="avro", starting_version="earliest")
    topic = table.spark.read.format("klog").option("subscribe", TOPIC).load(table.root)
    row_type = to_arrow_type(table.spark.table(table.name).schema, timezone="UTC")
    schema = derived_avro_schema(row_type)
    values = decode(topic, value="avro", value_schema=schema).orderBy("key", "offset").collect()
    assert [row["value"] for row in values][:1] == [rows[0]]
    assert [row["value"] is None for row in values] == [False, False, True]
    with pytest.raises(OptionError, match="--value-format protobuf: needs --value-schema"):
        table.copy(value_format="protobuf")
    with pytest.raises(OptionError, match="need --value-format avro or protobuf"):
        table.copy(registry="http://localhost:1")


class Interrupted(TopicPosition):
    """A position that runs something else at one of its loads, or after a snapshot is fixed."""

    at_load: int = 0
    after_fix: Callable[[], object] | None = None
    after_advance: Callable[[], object] | None = None
    work: Callable[[], object]
    loads = 0

    def load(self) -> Position:
        self.loads += 1
        if self.loads == self.at_load:
            self.work()
        return super().load()

    def fix_snapshot(self, version: int, seen: Position) -> Position:
        position = super().fix_snapshot(version, seen)
        if self.after_fix is not None:
            self.after_fix()
        return position

    def advance(self, version: int, seen: Position) -> Position:
        position = super().advance(version, seen)
        if self.after_advance is not None and position.version == version:
            self.after_advance()
        return position


def copy_with(table: ChangedTable, position: Interrupted, start: str = "earliest") -> TableCopy:
    row_format = make_row_format(["id"], None, "json", [], [])
    return TableCopy(
        table.spark,
        TableLog(table.spark, DeltaTarget(table.spark, table.path)),
        CopyOptions(table.root, TOPIC, row_format, {}, start),
        lambda _: position,
    )


def position_of(table: ChangedTable) -> Interrupted:
    written = parse_write_options({"path": table.root, "topic": TOPIC})
    return Interrupted(written, DeltaTarget(table.spark, table.path).snapshot().table_id)


@pytest.mark.parametrize("load", [4, 6])
@pytest.mark.parametrize("is_created_again", [False, True])
@pytest.mark.full
def test_a_topic_that_is_deleted_during_a_run(
    table: ChangedTable, load: int, is_created_again: bool
) -> None:
    """Neither the next version nor the last position begins a topic without earlier versions."""
    table.create().sql("insert into {t} values (1, 'a')")
    table.sql("insert into {t} values (2, 'b')")
    table.sql("alter table {t} set tblproperties ('a' = 'b')")
    position = position_of(table)

    def delete() -> None:
        log = klog.open(table.root)
        log.delete_topic(TOPIC)
        if is_created_again:
            log.create_topic(TOPIC)

    position.at_load, position.work = load, delete
    with pytest.raises(DataLossError, match="was deleted or created again while"):
        copy_with(table, position).copy()
    table.copy(options={})
    assert table.last_values() == table.rows()


@pytest.mark.full
def test_a_run_that_writes_while_another_starts_again(table: ChangedTable) -> None:
    """Its last version is there before the keys are read, or not at all."""
    table.create().sql("insert into {t} values (1, 'a')")
    table.copy(options={})
    for _ in range(3):
        table.sql("insert into {t} values (2, 'b')")
        table.sql("delete from {t} where id = 2")
    position = position_of(table)

    def write(version: int, key: str) -> None:
        klog.open(table.root).append(
            TOPIC,
            pa.table({"key": [key], "value": ["{}"]}),
            transactional_id=transactional_id(position.table_id),
            transaction_version=version,
        )

    position.after_fix = lambda: write(2, "3")
    position.after_advance = lambda: write(4, "4")
    copy_with(table, position).copy("snapshot")
    assert table.last_values() == table.rows()
    assert [value for key, value in table.records() if key in "34"] == [{}, None]


@pytest.mark.full
def test_rounds_after_a_start_again(table: ChangedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first round starts again; a pause comes after one that had nothing to copy."""
    table.create().sql("insert into {t} values (1, 'a')")
    table.copy()
    table.sql("insert into {t} values (2, 'b')")
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise InterruptedError
        table.sql("insert into {t} values (3, 'c')")

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=sleep)
    monkeypatch.setattr("klog.jobs.from_delta.time", clock)
    with pytest.raises(InterruptedError):
        table.copy(restart_at="snapshot", continuous=True, interval_seconds=7)
    assert pauses == [7, 7]
    assert table.last_values() == table.rows()


@pytest.mark.full
def test_raw_rows_are_in_the_order_of_their_offsets(table: ChangedTable) -> None:
    """However the files of the table are; a deleted row without a key has no tombstone."""
    table.create("partition int, offset bigint, key string, value string")
    for offsets in ("5, 3, 1", "4, 2, 0"):
        table.sql(
            "insert into {t} select 0, offset, nullif(concat('k', offset % 2), 'k1'), "
            f"string(offset) from (select explode(array({offsets})) offset)"
        )
    table.sql("optimize {t}")
    table.sql("delete from {t} where offset in (1, 2)")
    table.copy(key=(), value_format="raw", options={"numPartitions": "1"})
    rows = klog.open(table.root).scan(TOPIC).read_all().to_pylist()
    assert [row["value"].decode() for row in rows] == ["0", "3", "4", "5"]
    table.sql("delete from {t} where offset in (0, 3)")
    table.copy(key=(), value_format="raw", options={})
    rows = klog.open(table.root).scan(TOPIC).read_all().to_pylist()[4:]
    assert [(row["key"], row["value"]) for row in rows] == [(b"k0", None)]


@pytest.mark.full
def test_a_table_by_its_name(table: ChangedTable, delta_spark: SparkSession) -> None:
    """A snapshot of a table in the catalog, and a table that was dropped and created again."""
    name, properties = "default.named", f"tblproperties ('{FEED}' = 'true')"
    for value, restart in (("a", None), ("b", "snapshot")):
        delta_spark.sql(
            f"create table {name} using delta {properties} as select 1L id, '{value}' v"
        )
        if restart:
            with pytest.raises(KlogError, match="dropped or replaced and created again"):
                from_delta.run(delta_spark, table.root, TOPIC, name, key="id")
        from_delta.run(delta_spark, table.root, TOPIC, name, key="id", restart_at=restart)
        delta_spark.sql(f"delete from {name}")
        from_delta.run(delta_spark, table.root, TOPIC, name, key="id")
        delta_spark.sql(f"drop table {name}")
    assert [value and value["v"] for _, value in table.records()] == ["a", None, "b", None]


def test_the_command(table: ChangedTable) -> None:
    """The options of the verb are those of `run`; a table that is missing is a plain error."""
    table.create().sql("insert into {t} values (1, 'a')")
    parser = argparse.ArgumentParser()
    add_root_option(parser, "", repeatable=False)
    add_options(parser, COMMAND)
    words = ["--root", table.root, "--topic", TOPIC, "--table", table.path, "--key", "id"]
    run_job = COMMAND.load()
    report = run_job(table.spark, parser.parse_args([*words, "-o", "numPartitions=2"]))
    assert report.as_json() == {
        "root": table.root,
        "topic": TOPIC,
        "table": table.path,
        "dryRun": False,
        "startVersion": None,
        "endVersion": 1,
        "versions": [{"version": 1, "operation": "SNAPSHOT", "records": 1, "tombstones": 0}],
        "copiedVersions": 1,
        "versionsWithoutChanges": 0,
        "records": 1,
        "tombstones": 0,
        "seconds": report.as_json()["seconds"],
    }
    first, last = report.lines()
    assert first == "Version: 1\tOperation: SNAPSHOT\tRecords: 1\tTombstones: 0"
    assert last.startswith(f"Topic: {TOPIC}\tTable: {table.path}\tEndVersion: 1\tVersions: 1\t")
    words[5] = f"{table.path}-missing"
    with pytest.raises(OptionError, match="there is no such Delta table"):
        run_job(table.spark, parser.parse_args(words))
    with pytest.raises(argparse.ArgumentError, match="must be one topic"):
        run_job(table.spark, parser.parse_args([*words, "--topic", "a,b"]))
    with pytest.raises(OptionError, match="transactionalId: this job sets it by itself"):
        run_job(table.spark, parser.parse_args([*words, "-o", "transactionalId=x"]))
