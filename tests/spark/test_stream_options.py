"""Options of streams as Spark asks for them: which trigger has which limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.connector.log_dirs import many, write_log

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("engine")]


def batch_sizes(
    spark: SparkSession, root: Path, checkpoint: Path, trigger: dict[str, Any], **options: Any
) -> list[int]:
    """Run a stream until it ends, and return the rows of each micro-batch."""
    sizes: list[int] = []
    stream = spark.readStream.format("klog").options(subscribe="t", **options)
    query = (
        stream.load(str(root))
        .writeStream.foreachBatch(lambda batch, _: sizes.append(batch.count()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(**trigger)
        .start()
    )
    assert query.awaitTermination(120)
    return sizes


def test_available_now_shares_the_maximum_and_once_has_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    for partition, count in enumerate((50, 30, 2)):
        write_log(tmp_path / "log", {0: many(count)}, f"t-{partition}")
    options = {
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 30,
        "minOffsetsPerTrigger": 25,
        "maxRecordsPerPartition": 7,
    }
    now, once = {"availableNow": True}, {"once": True}
    assert batch_sizes(spark, tmp_path / "log", tmp_path / "a", now, **options) == [29, 30, 23]
    assert batch_sizes(spark, tmp_path / "log", tmp_path / "b", once, **options) == [82]
    options = {"startingOffsets": "-20", "maxBytesPerTrigger": "1k"}
    sizes = batch_sizes(spark, tmp_path / "log", tmp_path / "c", now, **options)
    assert sum(sizes) == 42
    assert len(sizes) > 3
