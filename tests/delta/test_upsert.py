"""to-delta in upsert mode: the table has the last value of each key."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from klog.connector.embedded import Log
from klog.errors import OptionError
from klog.jobs.to_delta import run
from tests.delta.copied_rows import TOPIC, append, new_log, rows_of_topic

pytestmark = pytest.mark.delta


def last_values(log: Log) -> dict[bytes, bytes]:
    """Return the last value of each key whose last record is not a tombstone."""
    values: dict[bytes, bytes | None] = {}
    for row in rows_of_topic(log):
        values[row["key"]] = row["value"]
    return {key: value for key, value in values.items() if value is not None}


def values_of_table(spark: SparkSession, table: str) -> dict[bytes, bytes]:
    rows = spark.read.format("delta").load(table).select("key", "value").collect()
    values = {bytes(row["key"]): bytes(row["value"]) for row in rows}
    assert len(values) == len(rows)
    return values


def changes(seed: int, count: int) -> list[tuple[str, str | None]]:
    """Return random changes of forty keys, a fifth of them deletions."""
    numbers = random.Random(seed)
    return [
        (f"k{numbers.randrange(40)}", None if numbers.random() < 0.2 else f"v{seed}-{number}")
        for number in range(count)
    ]


@pytest.mark.parametrize("options", [{}, {"delta.enableDeletionVectors": "true"}])
def test_the_last_value_of_each_key(
    delta_spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root)
    for seed in range(4):
        append(log, changes(seed, 100))
        limits = {"maxOffsetsPerTrigger": "60"} if seed % 2 else {}
        run(
            delta_spark,
            root,
            TOPIC,
            table,
            mode="upsert",
            options=limits,
            table_properties=options,
        )
        assert values_of_table(delta_spark, table) == last_values(log), f"seed {seed}"


def test_a_batch_that_is_merged_again_changes_nothing(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """A clone knows its position by its rows: records after the last row are merged again."""
    root, table, clone = (str(tmp_path / name) for name in ("root", "table", "clone"))
    log = new_log(root)
    append(log, changes(0, 200))
    append(log, [(f"k{number}", None) for number in range(5)])
    run(delta_spark, root, TOPIC, table, mode="upsert")
    delta_spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{table}`")
    for target in (clone, table):
        report = run(delta_spark, root, TOPIC, target, mode="upsert")
        assert (report.rows.inserted, report.rows.updated, report.rows.deleted) == (0, 0, 0)
        assert values_of_table(delta_spark, target) == last_values(log)


def test_a_restored_table_catches_up(delta_spark: SparkSession, tmp_path: Path) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root)
    for seed in range(3):
        append(log, changes(seed, 60))
        run(delta_spark, root, TOPIC, table, mode="upsert")
    delta_spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 1")
    run(delta_spark, root, TOPIC, table, mode="upsert")
    assert values_of_table(delta_spark, table) == last_values(log)


@pytest.mark.full
def test_a_key_that_moved_to_another_partition(delta_spark: SparkSession, tmp_path: Path) -> None:
    """More partitions move keys: the record with the newest timestamp counts, not the offset."""
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 2)

    def write(partition: int, values: Sequence[str | None], first_ms: int) -> None:
        columns = {
            "key": ["k"] * len(values),
            "value": pa.array(values, pa.string()),
            "partition": pa.array([partition] * len(values), pa.int32()),
            "timestamp": pa.array(
                [first_ms + number for number in range(len(values))], pa.timestamp("ms", "UTC")
            ),
        }
        log.append(TOPIC, pa.table(columns))

    write(1, ["old"] * 5 + ["older"], 1_000)
    run(delta_spark, root, TOPIC, table, mode="upsert")
    assert values_of_table(delta_spark, table) == {b"k": b"older"}
    write(0, ["new"], 2_000)
    run(delta_spark, root, TOPIC, table, mode="upsert")
    assert values_of_table(delta_spark, table) == {b"k": b"new"}
    write(0, [None], 3_000)
    write(1, ["late"], 1_500)
    run(delta_spark, root, TOPIC, table, mode="upsert")
    assert values_of_table(delta_spark, table) == {}


@pytest.mark.full
def test_records_without_a_key(delta_spark: SparkSession, tmp_path: Path) -> None:
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    log = new_log(root, 1)
    append(log, [("a", "1"), (None, "2")])
    with pytest.raises(OptionError, match=r"orders-0, offset 1: the record has no key\b.*topic$"):
        run(delta_spark, root, TOPIC, table, mode="upsert")


@pytest.mark.full
def test_settings_of_the_session_are_left(delta_spark: SparkSession, tmp_path: Path) -> None:
    name = "spark.databricks.delta.commitInfo.userMetadata"
    root, table = str(tmp_path / "root"), str(tmp_path / "table")
    append(new_log(root, 1), [("a", "1")])
    delta_spark.conf.set(name, "mine")
    run(delta_spark, root, TOPIC, table, mode="upsert")
    assert delta_spark.conf.get(name) == "mine"
    delta_spark.conf.unset(name)
    assert "spark.databricks.delta.write.txnVersion" not in delta_spark.conf.getAll
