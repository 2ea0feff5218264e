"""A stream decodes only the columns that its query uses, with both engines."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

import klog

pytestmark = pytest.mark.spark

FIRST_MS = 1_700_000_000_000
ENGINES = pytest.mark.parametrize("engine", ["jvm", "python"])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root with a topic of two partitions, 50 records each, 1 ms apart."""
    folder = tmp_path_factory.mktemp("columns") / "root"
    log = klog.open(folder)
    log.create_topic("a", 2)
    rows = {
        "value": [b"%d" % number for number in range(100)],
        "partition": pa.array([number % 2 for number in range(100)], pa.int32()),
        "timestamp": pa.array(range(FIRST_MS, FIRST_MS + 100), pa.timestamp("ms", "UTC")),
    }
    log.append("a", pa.table(rows))
    return folder


def streamed(spark: SparkSession, root: Path, engine: str) -> DataFrame:
    reader = spark.readStream.format("klog").option("startingOffsets", "earliest")
    return reader.option("subscribe", "a").option("engine", engine).load(str(root))


def plan_of(frame: DataFrame, name: str) -> str:
    """Run a stream to what there is, into a table; return the plan of its last micro-batch."""
    spark = frame.sparkSession
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    writer = frame.writeStream.format("memory").queryName(name)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    spark.conf.unset("spark.sql.streaming.noDataMicroBatches.enabled")
    plan: str = query._jsq.explainInternal(False)
    return plan


@ENGINES
def test_a_watermark_uses_its_column_alone(spark: SparkSession, root: Path, engine: str) -> None:
    watermarked = streamed(spark, root, engine).withWatermark("timestamp", "1 minute")
    counts = watermarked.groupBy(functions.window("timestamp", "1 minute")).count()
    assert "MicroBatchScan[timestamp#" in plan_of(counts, "watermarked")


@ENGINES
def test_a_node_that_drops_duplicates_uses_its_keys(
    spark: SparkSession, root: Path, engine: str
) -> None:
    frame = streamed(spark, root, engine)
    plan = plan_of(frame.dropDuplicates(["partition"]).select("offset"), "distinct")
    assert "MicroBatchScan[partition#" in plan
    assert "value#" not in plan
    assert spark.table("distinct").count() == 2
    within = frame.withWatermark("timestamp", "1 minute").dropDuplicatesWithinWatermark(["value"])
    plan = plan_of(within.select("offset"), "within")
    assert "MicroBatchScan[value#" in plan
    assert "key#" not in plan
    assert spark.table("within").count() == 100


@ENGINES
def test_a_stream_decodes_only_what_is_used(spark: SparkSession, root: Path, engine: str) -> None:
    frame = streamed(spark, root, engine)
    used = frame.where("offset >= 48").selectExpr("CAST(value AS STRING) AS value")
    plan = plan_of(used, "used")
    assert sorted(row["value"] for row in spark.table("used").collect()) == ["96", "97", "98", "99"]
    assert "MicroBatchScan[value#" in plan
    assert "timestampType" not in plan
    counted = frame.groupBy().count().writeStream.format("memory").queryName("counted")
    counted.outputMode("complete").trigger(availableNow=True).start().awaitTermination()
    assert spark.table("counted").first() == (100,)


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_a_stream_that_is_read_twice_stays_one_source(
    spark: SparkSession, root: Path, engine: str
) -> None:
    """Its columns are those that both places use, so it goes on without the jar."""
    frame = streamed(spark, root, engine)
    left = frame.where("partition = 0").selectExpr("offset AS number")
    right = frame.where("partition = 1").selectExpr("CAST(CAST(value AS STRING) AS BIGINT) number")
    writer = left.union(right).writeStream.format("memory").queryName("twice")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    plan: str = query._jsq.explainInternal(False)
    assert plan.count("MicroBatchScan[value#") == 2
    assert "timestampType" not in plan
    numbers = sorted(row["number"] for row in spark.table("twice").collect())
    assert numbers == sorted([*range(50), *range(1, 100, 2)])
    sources = {source["description"] for source in query.recentProgress[0]["sources"]}
    assert len(sources) == 1
