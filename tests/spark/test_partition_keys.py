"""Queries by partition: no shuffle, and of a join only the partitions that its other side has."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, count, expr
from pyspark.sql.functions import max as largest

import klog
from tests.support.explained_plan import explain

pytestmark = pytest.mark.spark

COMMITS, ROWS = 3, 40


@pytest.fixture(scope="module")
def partitions(spark: SparkSession) -> int:
    """Return the number of partitions: at least that of the cores."""
    return max(spark.sparkContext.defaultParallelism, 2)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, partitions: int) -> Path:
    """Return a root with two topics, all partitions with as many segments as there were commits."""
    folder = tmp_path_factory.mktemp("keys") / "root"
    log = klog.open(folder)
    for topic in ("a", "b", "narrow"):
        numbers = [number % (1 if topic == "narrow" else partitions) for number in range(ROWS)]
        log.create_topic(topic, partitions)
        for _ in range(COMMITS):
            rows = {"value": [b"v"] * ROWS, "partition": pa.array(numbers, pa.int32())}
            log.append(topic, pa.table(rows))
    return folder


def load(spark: SparkSession, root: Path, topic: str) -> DataFrame:
    options = {"subscribe": topic, "minPartitions": "100"}
    return spark.read.format("klog").options(**options).load(str(root))


def test_groups_and_windows_need_no_shuffle(
    spark: SparkSession, root: Path, partitions: int
) -> None:
    frame = load(spark, root, "a")
    grouped = frame.groupBy("partition").agg(count("*"), largest("offset"))
    ranked = frame.selectExpr(
        "partition", "row_number() over (partition by partition order by offset desc) n", "offset"
    ).where("n = 1")
    for query in (grouped, ranked):
        assert "Exchange" not in explain(query)
    python = spark.read.format("klog").option("subscribe", "a").option("engine", "python")
    rows = python.load(str(root)).groupBy("partition").agg(count("*"), largest("offset")).collect()
    assert len(rows) == partitions
    assert sorted(grouped.collect()) == sorted(rows)
    assert {(r.partition, r.offset) for r in ranked.collect()} == {(r[0], r[2]) for r in rows}


def test_a_join_by_partition_needs_no_shuffle(spark: SparkSession, root: Path) -> None:
    newest = [
        load(spark, root, topic).groupBy("partition").agg(largest("offset").alias(topic))
        for topic in ("a", "b")
    ]
    joined = newest[0].join(newest[1].hint("merge"), "partition")
    assert "Exchange" not in explain(joined)
    assert all(row.a == row.b for row in joined.collect())
    assert joined.count() == newest[0].count()


def test_a_scan_keeps_its_tasks(spark: SparkSession, root: Path, partitions: int) -> None:
    frame = load(spark, root, "a")
    count = frame.select("offset").rdd.getNumPartitions()
    assert frame.select("partition", "offset").rdd.getNumPartitions() == count > partitions


def test_few_partitions_are_not_read_by_few_tasks(spark: SparkSession, root: Path) -> None:
    grouped = load(spark, root, "narrow").groupBy("partition").count()
    assert "Exchange" in explain(grouped), "one task would read all of it"
    assert [tuple(row) for row in grouped.collect()] == [(0, COMMITS * ROWS)]


def test_a_join_reads_the_partitions_of_its_other_side(spark: SparkSession, root: Path) -> None:
    few = spark.createDataFrame([(0, "no"), (1, "yes")], "number int, is_read string")
    joined = load(spark, root, "a").join(
        broadcast(few.where("is_read = 'yes'")), expr("partition = number")
    )
    assert "dynamicpruning" in explain(joined)
    rows = joined.collect()
    assert {row.partition for row in rows} == {1}
    assert len(rows) == load(spark, root, "a").where("partition = 1").count()
    assert _records_read(joined) == len(rows)


def _records_read(frame: DataFrame) -> int:
    """Return the metric of the scan of a query that has run."""
    plan = frame._jdf.queryExecution().executedPlan()
    while not plan.metrics().contains("klogRecords"):
        if plan.nodeName() == "AdaptiveSparkPlan":
            plan = plan.executedPlan()
        elif plan.nodeName().endswith("QueryStage"):
            plan = plan.plan()
        else:
            plan = plan.children().head()
    return int(plan.metrics().apply("klogRecords").value())
