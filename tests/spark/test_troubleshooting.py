"""docs/troubleshooting.md is true: Spark says the headings."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import klog
from klog.cli.command_line import run as run_command
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.jobs import verify
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
    "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: klog": (
        lambda spark, root: spark.read.format("klog-that-is-not-there").load(root)
    ),
}


def load_with(**options: str) -> Callable[[SparkSession, str], object]:
    return lambda spark, root: spark.read.format("klog").options(**options).load(root)


def run_stream(spark: SparkSession, root: str) -> None:
    query = stream(spark, root).writeStream.format("noop").trigger(availableNow=True)
    query.option("checkpointLocation", f"{root}-checkpoint").start().awaitTermination()


def lose_records(spark: SparkSession, root: str) -> None:
    run_stream(spark, root)
    log = klog.open(root)
    log.append("orders", pa.table({"value": ["y", "z"]}))
    arguments = ["--topic", "orders", "--partition", "0", "--offset", "2", "--root", root]
    assert run_command(["delete-records", *arguments]) == 0
    run_stream(spark, root)


def create_again(spark: SparkSession, root: str) -> None:
    run_stream(spark, root)
    log = klog.open(root)
    log.delete_topic("orders")
    log.create_topic("orders")
    run_stream(spark, root)


def never_listed() -> None:
    raise FileNotFoundError("00000000000000000000.log")


def lose_format_file(_: SparkSession, root: str) -> None:
    Path(root, "_klog/format.json").unlink()
    verify.run(None, root)


OF_KLOG: dict[str, Callable[[SparkSession, str], object]] = {
    "unknown read option": load_with(subscribe="orders", startingofsets="earliest"),
    "must set exactly one, got none": load_with(),
    "there is no topic": load_with(subscribe="ordrs"),
    "is not a klog root": lambda spark, root: verify.run(None, str(Path(root).parent)),
    "this file is lost": lose_format_file,
    "is out of range": lambda spark, root: (
        spark.read.format("klog")
        .options(subscribe="orders", startingOffsets='{"orders": {"0": 0}}')
        .options(endingOffsets='{"orders": {"0": 9}}')
        .load(root)
        .count()
    ),
    "that the stream has not read": lose_records,
    "the topic was deleted and created again": create_again,
    "files vanish as fast as they are listed": lambda spark, root: retry_stale_listing(
        never_listed, wait=lambda tries: None
    ),
}
"""What klog says."""
NOT_PROVOKED = {
    "ModuleNotFoundError: No module named 'klog'",
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version",
    "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number",
    "Python worker failed to connect back",
    "a broker runs on it",
    "the first micro-batch was not finished",
    "Multiple streaming jobs detected",
    "A stream starts but reads nothing",
    "The first plan is slow",
    "The JVM engine is not used",
    "S3 refuses the credentials",
    "hdfs:// needs a client that is not installed",
    "No space left on device",
    "A command ends with exit code 1 or 2",
}
"""They need another environment, or are no text of an error."""


def test_each_heading_has_a_case() -> None:
    headings = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert set(headings) == {*PROVOKED, *OF_KLOG, *NOT_PROVOKED}


@pytest.mark.parametrize(("heading", "provoke"), PROVOKED.items(), ids=PROVOKED)
def test_heading_is_what_spark_says(
    spark: SparkSession, root: str, heading: str, provoke: Callable[[SparkSession, str], object]
) -> None:
    with pytest.raises((PySparkException, Py4JJavaError, ValueError)) as caught:
        provoke(spark, root)
    message = " ".join(str(caught.value).split())
    assert heading in message
    assert "klog.errors" not in message


@pytest.mark.parametrize(("heading", "provoke"), OF_KLOG.items(), ids=OF_KLOG)
def test_heading_is_what_klog_says(
    spark: SparkSession, root: str, heading: str, provoke: Callable[[SparkSession, str], object]
) -> None:
    with pytest.raises((PySparkException, Py4JJavaError, klog.KlogError)) as caught:
        provoke(spark, root)
    assert heading in " ".join(str(caught.value).split())
    assert klog.error_class_of(caught.value) is not None
