"""A stream and batches of Spark across a restore of the topic that they read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import klog

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("engine")]

TOPIC = "t"


def run_stream(spark: SparkSession, folder: Path, **options: str) -> list[str]:
    """Run the stream until it has read all that is there; return what its checkpoint's sink has."""
    query = (
        spark.readStream.format("klog")
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .options(**options)
        .load(str(folder / "root"))
        .selectExpr("CAST(value AS STRING) AS value")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    return sorted(row["value"] for row in spark.read.parquet(str(folder / "out")).collect())


def test_a_stream_across_a_restore_and_a_batch_after(spark: SparkSession, tmp_path: Path) -> None:
    log = klog.open(tmp_path / "root")
    log.create_topic(TOPIC, 1)

    def append(value: str) -> None:
        log.append(TOPIC, pa.table({"value": [value]}))

    for number in range(4):
        append(str(number))
    assert run_stream(spark, tmp_path) == ["0", "1", "2", "3"]
    log.restore(TOPIC, version=2)
    append("after")
    batch = spark.read.format("klog").option("subscribe", TOPIC).load(str(tmp_path / "root"))
    rows = batch.selectExpr("offset", "CAST(value AS STRING) AS value").orderBy("offset").collect()
    assert [tuple(row) for row in rows] == [(0, "0"), (1, "1"), (4, "after")]
    with pytest.raises(StreamingQueryException, match="From offset 2 on the log is not what the"):
        run_stream(spark, tmp_path)
    read = ["0", "1", "2", "3", "after"]
    assert run_stream(spark, tmp_path, failOnDataLoss="false") == read
    append("later")
    assert run_stream(spark, tmp_path) == sorted([*read, "later"])
