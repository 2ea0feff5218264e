"""docs/troubleshooting.md is true: Spark says the headings."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.support.orders_root import make_orders
from tests.support.plain_session import PlainSession
from tests.support.project import PROJECT

pytestmark = pytest.mark.spark

PAGE = (PROJECT / "docs" / "troubleshooting.md").read_text()


@pytest.fixture
def root(tmp_path: Path) -> str:
    return make_orders(tmp_path / "root")


def load(spark: SparkSession, root: str) -> DataFrame:
    return spark.read.format("klog").option("subscribe", "orders").load(root)


def save(mode: str) -> Callable[[SparkSession, str], object]:
    return lambda spark, root: (
        load(spark, root).write.format("klog").mode(mode).option("topic", "orders").save(root)
    )


def stream(spark: SparkSession, root: str) -> DataFrame:
    reader = spark.readStream.format("klog").option("startingOffsets", "earliest")
    return reader.option("subscribe", "orders").load(root)


def update(_: SparkSession, root: str) -> None:
    """Write in update mode without klog's jar."""
    rows = f"spark.readStream.format('klog').option('subscribe', 'orders').load({root!r})"
    counts = f"{rows}.groupBy('topic').count().selectExpr('topic AS value')"
    writer = f"{counts}.writeStream.format('klog').option('topic', 'orders').outputMode('update')"
    with PlainSession(Path(f"{root}-plain")) as session:
        query = f"{writer}.option('checkpointLocation', {root + '-update'!r}).start({root!r})"
        session.run(f"{query}.awaitTermination(60)")


PROVOKED: dict[str, Callable[[SparkSession, str], object]] = {
    'The data source "klog" cannot be written in the "ErrorIfExists" mode': save("error"),
    'The data source "klog" cannot be written in the "Ignore" mode': save("ignore"),
    "klog does not support Update mode": update,
    "This output mode is not supported for streaming aggregations without watermark": (
        lambda spark, root: (
            stream(spark, root)
            .groupBy("topic")
            .count()
            .writeStream.format("klog")
            .option("checkpointLocation", f"{root}-append")
            .start(root)
        )
    ),
    "checkpointLocation must be specified": lambda spark, root: (
        stream(spark, root).writeStream.format("klog").option("topic", "orders").start(root)
    ),
    "Data source klog does not support continuous processing": lambda spark, root: (
        stream(spark, root)
        .writeStream.format("noop")
        .trigger(continuous="1 second")
        .option("checkpointLocation", f"{root}-continuous")
        .start()
    ),
    "Unsupported data source type for direct query on files: klog": lambda spark, root: spark.sql(
        f"SELECT * FROM klog.`{root}`"
    ),
    "There is a 'path' or 'paths' option set and load() is called with path parameters": (
        lambda spark, root: spark.read.format("klog").option("path", root).load(root)
    ),
    "Failed to find the data source: klog": lambda spark, root: spark.read.format(
        "klog-that-is-not-there"
    ).load(root),
}


def test_each_heading_has_a_case() -> None:
    assert re.findall(r"^## (.*)$", PAGE, re.MULTILINE) == list(PROVOKED)


@pytest.mark.parametrize(("heading", "provoke"), PROVOKED.items(), ids=PROVOKED)
def test_heading_is_what_spark_says(
    spark: SparkSession, root: str, heading: str, provoke: Callable[[SparkSession, str], object]
) -> None:
    with pytest.raises((PySparkException, Py4JJavaError, ValueError)) as caught:
        provoke(spark, root)
    message = " ".join(str(caught.value).split())
    assert heading in message
    assert "klog.errors" not in message
