"""Tables whose files have deletion vectors: the rows that are left become records."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession

import klog
from klog.jobs import from_delta
from tests.delta.copied_rows import TOPIC

pytestmark = [pytest.mark.delta, pytest.mark.full]


def has_deletion_vectors(table: Path) -> bool:
    return any(table.glob("deletion_vector_*.bin"))


@pytest.mark.parametrize("engine", ["python", "jvm"])
def test_a_snapshot_and_the_changes_after_it(
    delta_spark: SparkSession, tmp_path: Path, engine: str
) -> None:
    root, table = str(tmp_path / "root"), tmp_path / "table"
    properties = "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true'"
    delta_spark.sql(
        f"CREATE TABLE delta.`{table}` (id bigint) USING delta TBLPROPERTIES ({properties})"
    )
    rows = delta_spark.range(0, 10, 1, numPartitions=1)
    rows.write.format("delta").mode("append").save(str(table))
    delta_spark.sql(f"DELETE FROM delta.`{table}` WHERE id >= 6")
    assert has_deletion_vectors(table)

    def copy() -> dict[int, int]:
        from_delta.run(delta_spark, root, TOPIC, str(table), key="id", options={"engine": engine})
        return klog.open(root).count(TOPIC)

    assert copy() == {0: 6}
    delta_spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 3")
    assert copy() == {0: 7}
    last = klog.open(root).scan(TOPIC).read_all().to_pylist()[-1]
    assert (last["key"], last["value"]) == (b"3", None)


def test_a_write_of_the_user_needs_rows_with_a_plan_of_their_own(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """docs/limits.md names both ways round."""
    root, table = str(tmp_path / "root"), tmp_path / "table"
    delta_spark.sql(
        f"CREATE TABLE delta.`{table}` (value string) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    rows = delta_spark.sql("SELECT string(id) value FROM range(0, 10, 1, 1)")
    rows.write.format("delta").mode("append").save(str(table))
    delta_spark.sql(f"DELETE FROM delta.`{table}` WHERE value >= '6'")
    assert has_deletion_vectors(table)

    def write(rows: DataFrame) -> dict[int, int]:
        rows.write.format("klog").option("topic", TOPIC).mode("append").save(root)
        return klog.open(root).count(TOPIC)

    left = delta_spark.read.format("delta").load(str(table))
    with pytest.raises(IllegalArgumentException, match="Cannot work with a non-pinned table"):
        write(left)
    assert write(left.localCheckpoint()) == {0: 6}
    delta_spark.sql(f"REORG TABLE delta.`{table}` APPLY (PURGE)")
    assert write(delta_spark.read.format("delta").load(str(table))) == {0: 12}
