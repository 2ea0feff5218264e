"""to-delta in append mode: each record once, wherever a run begins or ends."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from klog.connector.system_clock import now_ms
from klog.errors import DataLossError, OptionError
from klog.jobs.to_delta import run
from tests.delta.copied_rows import (
    TOPIC,
    append,
    new_log,
    numbered,
    rows_of_table,
    rows_of_topic,
)
from tests.support.project import PROJECT

pytestmark = pytest.mark.delta

CORPUS = PROJECT / "tests/corpus/broker-4.2.0"


@pytest.mark.parametrize("engine", ["python", "jvm"])
def test_runs_go_on_where_the_table_is(
    delta_spark: SparkSession, tmp_path: Path, engine: str
) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root)
    append(log, numbered(0, 100))
    options = {"engine": engine}
    first = run(delta_spark, root, TOPIC, table, options=options)
    assert (first.rows.batches, first.rows.inserted) == (1, 100)
    again = run(delta_spark, root, TOPIC, table, options=options)
    assert (again.rows.batches, again.rows.inserted) == (0, 0)
    append(log, numbered(100, 150))
    limited = run(
        delta_spark, root, TOPIC, table, options={**options, "maxOffsetsPerTrigger": "20"}
    )
    assert limited.rows.batches >= 3
    assert limited.rows.inserted == 50
    assert rows_of_table(delta_spark, table) == rows_of_topic(log)
    latest = log.offsets(TOPIC)
    assert {part.partition: part.end_offset for part in limited.partitions} == latest


@pytest.mark.parametrize("option", ["startingTimestamp", "startingOffsetsByTimestamp"])
@pytest.mark.full
def test_a_start_by_time_counts_for_the_first_batch_alone(
    delta_spark: SparkSession, tmp_path: Path, option: str
) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    append(log, numbered(0, 5))
    time.sleep(0.01)
    start_ms = now_ms()
    append(log, numbered(5, 30))
    start = (
        str(start_ms) if option == "startingTimestamp" else f'{{"{TOPIC}": {{"0": {start_ms}}}}}'
    )
    options = {option: start, "maxOffsetsPerTrigger": "10"}
    for end in (30, 40):
        run(delta_spark, root, TOPIC, table, options=options)
        offsets = [row["offset"] for row in rows_of_table(delta_spark, table)]
        assert offsets == [*range(5, end)]
        append(log, numbered(30, 40))


@pytest.mark.full
def test_a_start_at_the_end_is_kept(delta_spark: SparkSession, tmp_path: Path) -> None:
    """The first run commits where it starts, although it has nothing to copy."""
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 2)
    append(log, numbered(0, 10))
    options = {"startingOffsets": "latest"}
    assert run(delta_spark, root, TOPIC, table, options=options).rows.inserted == 0
    append(log, numbered(10, 30))
    for _ in range(2):
        run(delta_spark, root, TOPIC, table, options=options)
        assert len(rows_of_table(delta_spark, table)) == 20


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_topic_without_records(delta_spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """Its retention deletes records between two runs: that they are gone is noticed."""
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    run(delta_spark, root, TOPIC, table, mode=mode)
    append(log, numbered(0, 20))
    _delete_records(root, 10)
    with pytest.raises(DataLossError, match=r"orders-0: offsets 0 to 9 were deleted"):
        run(delta_spark, root, TOPIC, table, mode=mode)


def test_a_table_of_another_mode(delta_spark: SparkSession, tmp_path: Path) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    append(new_log(root, 1), numbered(0, 10))
    run(delta_spark, root, TOPIC, table, mode="upsert")
    with pytest.raises(OptionError, match=r"--mode append: table .* was filled by --mode upsert"):
        run(delta_spark, root, TOPIC, table)


def test_a_dry_run_says_what_would_be_copied(delta_spark: SparkSession, tmp_path: Path) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    append(log, numbered(0, 30))
    limits = {"maxOffsetsPerTrigger": "10"}
    report = run(delta_spark, root, TOPIC, table, options=limits, dry_run=True)
    assert [(part.start_offset, part.end_offset) for part in report.partitions] == [(0, 30)]
    assert not Path(table).exists()
    assert "WouldCopyOffsets: 30" in "\n".join(report.lines())


def test_topics_of_a_brokers_directory(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Headers, timestamps, aborted transactions: as a reader of klog's sees them."""
    import klog

    root = str(CORPUS / "transactions" / "log")
    table = str(tmp_path / "table")
    report = run(delta_spark, root, None, table, topic_pattern="^txn")
    topics = sorted({part.topic for part in report.partitions})
    assert len(topics) > 1
    expected = [row for topic in topics for row in rows_of_topic(klog.open(root), topic)]
    assert rows_of_table(delta_spark, table) == expected
    again = run(delta_spark, root, None, table, topic_pattern="^txn")
    assert (again.rows.batches, again.partitions[0].table) == (0, table)


@pytest.mark.full
def test_a_table_for_each_topic(delta_spark: SparkSession, tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    log = new_log(root, 1, "a")
    log.create_topic("b")
    for topic in ("a", "b"):
        append(log, numbered(0, 10), topic)
    report = run(delta_spark, root, ["a", "b"], str(tmp_path / "{topic}"))
    assert report.rows.inserted == 20
    for topic in ("a", "b"):
        assert rows_of_table(delta_spark, str(tmp_path / topic)) == rows_of_topic(log, topic)


@pytest.mark.full
def test_topics_of_one_table_go_on_apart(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Each commit is of one topic, and carries where the table is in the others."""
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1, "a")
    log.create_topic("b")
    for topic in ("a", "b", "b", "b", "a"):
        append(log, numbered(0, 10), topic)
        run(delta_spark, root, topic, table)
    run(delta_spark, root, ["a", "b"], table)
    expected = rows_of_topic(log, "a") + rows_of_topic(log, "b")
    assert rows_of_table(delta_spark, table) == expected


@pytest.mark.full
def test_a_new_partition_is_copied_from_its_start(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    append(log, numbered(0, 20))
    run(delta_spark, root, TOPIC, table)
    log.add_partitions(TOPIC, 3)
    append(log, numbered(20, 80))
    run(delta_spark, root, TOPIC, table)
    assert rows_of_table(delta_spark, table) == rows_of_topic(log)


@pytest.mark.full
def test_a_name_in_the_catalog(delta_spark: SparkSession, tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    log = new_log(root, 1)
    append(log, numbered(0, 20))
    delta_spark.sql("CREATE DATABASE IF NOT EXISTS lake")
    run(
        delta_spark,
        root,
        TOPIC,
        "lake.orders",
        table_properties={"delta.appendOnly": "true"},
        cluster_by=["topic"],
    )
    append(log, numbered(20, 30))
    assert run(delta_spark, root, TOPIC, "lake.orders").rows.inserted == 10
    assert delta_spark.table("lake.orders").count() == 30
    detail = delta_spark.sql("DESCRIBE DETAIL lake.orders").first()
    assert detail is not None
    assert detail["properties"]["delta.appendOnly"] == "true"
    assert detail["clusteringColumns"] == ["topic"]
    delta_spark.sql("DROP TABLE lake.orders")


def test_retention_that_overtook_the_table(delta_spark: SparkSession, tmp_path: Path) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    append(log, numbered(0, 10))
    run(delta_spark, root, TOPIC, table)
    append(log, numbered(10, 30))
    _delete_records(root, 20)
    with pytest.raises(DataLossError, match=r"orders-0: offsets 10 to 19 were deleted: 10 ") as exc:
        run(delta_spark, root, TOPIC, table)
    assert "failOnDataLoss=false" in str(exc.value)
    run(delta_spark, root, TOPIC, table, options={"failOnDataLoss": "false"})
    offsets = [row["offset"] for row in rows_of_table(delta_spark, table)]
    assert offsets == [*range(10), *range(20, 30)]


def test_a_topic_that_was_created_again(delta_spark: SparkSession, tmp_path: Path) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    append(log, numbered(0, 10))
    run(delta_spark, root, TOPIC, table)
    log.delete_topic(TOPIC)
    log.create_topic(TOPIC)
    append(log, numbered(0, 30))
    with pytest.raises(DataLossError, match="deleted and created again"):
        run(delta_spark, root, TOPIC, table)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "replace"}, "--mode: must be one of append, upsert, got 'replace'"),
        ({"topic": None}, "must give exactly one"),
        ({"topic": "order"}, "orders"),
        ({"topic_pattern": "*", "topic": None}, "--topic-pattern: not a regular expression"),
        ({"options": {"startingOfsets": "latest"}}, "startingOffsets"),
        ({"options": {"minOffsetsPerTrigger": "5"}}, "minoffsetspertrigger: a copy waits"),
    ],
)
def test_wrong_arguments(
    delta_spark: SparkSession, tmp_path: Path, arguments: dict[str, object], message: str
) -> None:
    root = str(tmp_path / "root")
    new_log(root, 1)
    with pytest.raises(OptionError) as exc:
        run(delta_spark, root, **{"topic": TOPIC, "table": str(tmp_path), **arguments})  # type: ignore[arg-type]
    assert message in str(exc.value)


def test_the_note_of_a_commit_is_a_contract(delta_spark: SparkSession, tmp_path: Path) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 2)
    append(log, numbered(0, 10))
    run(delta_spark, root, TOPIC, table)
    rows = delta_spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()
    note = json.loads(rows[0]["userMetadata"])["klog"]
    names = ("format", "job", "mode", "topic", "baseVersion")
    assert [note[name] for name in names] == [1, "to-delta", "append", TOPIC, 0]
    detail = delta_spark.sql(f"DESCRIBE DETAIL delta.`{table}`").first()
    assert detail is not None
    assert note["tableId"] == detail["id"]
    latest = {str(partition): offset for partition, offset in log.offsets(TOPIC).items()}
    assert note["topics"][TOPIC][TOPIC] == latest
    assert note["topics"][TOPIC]["#ids"] == {TOPIC: log.describe(TOPIC).topic_id}


def _delete_records(root: str, before: int) -> None:
    from klog.cli.command_line import run as klog_command

    words = f"delete-records --topic {TOPIC} --partition 0 --offset {before} --root"
    assert klog_command([*words.split(), root]) == 0
