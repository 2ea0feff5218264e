"""The scene of docs/questions.md: records of known times, a compacted topic, a late stream."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import klog
from klog.jobs import compact
from tests.pages.page_scene import Scene
from tests.support.project import PROJECT

NOON = datetime(2026, 11, 1, 12, tzinfo=timezone.utc)
BROKER = PROJECT / "tests/corpus/broker-4.2.0/transactions/log"


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Make the root; the stream reads the first thousand orders."""
    root = str(folder / "data/klog")
    log = klog.open(root)
    log.create_topic("orders", partitions=2)
    _append_orders(log, range(1000))
    _copy_orders(spark, root, folder / "data/checkpoints/orders-copy")
    _append_orders(log, range(1000, 1300))
    log.create_topic("customers", config={"cleanup.policy": "compact"})
    for version in range(3):
        customers = {"key": ["ann", "bob"], "value": [f"v{version}"] * 2}
        log.append("customers", pa.table(customers))
    compact.run(None, root, "customers", min_dirty_ratio=0)
    return Scene({"klog": klog}, {"/data/broker": str(BROKER)})


def _append_orders(log: klog.Log, numbers: range) -> None:
    orders = {
        "key": [f"customer-{number % 10}" for number in numbers],
        "value": [f"order {number}" for number in numbers],
        "timestamp": [NOON + timedelta(seconds=number) for number in numbers],
    }
    log.append("orders", pa.table(orders))


def _copy_orders(spark: SparkSession, root: str, checkpoint: Path) -> None:
    rows = spark.readStream.format("klog").option("subscribe", "orders")
    rows = rows.option("startingOffsets", "earliest")
    query = (
        rows.load(root)
        .selectExpr("key", "value", "'orders-copy' topic")
        .writeStream.format("klog")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(root)
    )
    query.awaitTermination()
