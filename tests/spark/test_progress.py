"""A stream's progress says what its lag is, without code of the user."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import klog
from klog.connector.progress_listener import log_progress
from tests.support.waiting import TIMEOUT_SECONDS, wait_until

pytestmark = pytest.mark.spark

LOGGER = "klog.progress"
NAMES = [
    "minOffsetsBehindLatest",
    "maxOffsetsBehindLatest",
    "avgOffsetsBehindLatest",
    "estimatedTotalBytesBehindLatest",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    log = klog.open(tmp_path / "root")
    log.create_topic("orders", 2)
    rows = {"value": [b"x" * 100] * 50, "partition": pa.array([0, 1] * 25, pa.int32())}
    log.append("orders", pa.table(rows))
    return tmp_path / "root"


def orders(spark: SparkSession, root: Path) -> DataFrame:
    options = {"subscribe": "orders", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "20"}
    return spark.readStream.format("klog").options(**options).load(str(root))


def run(frame: DataFrame, checkpoint: Path, name: str) -> list[dict[str, Any]]:
    """Run a query over what there is; return the progress of its micro-batches."""
    writer = frame.writeStream.format("noop").queryName(name).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    assert query.awaitTermination(TIMEOUT_SECONDS)
    return [json.loads(progress.json) for progress in query.recentProgress]


def wait(condition: Callable[[], bool]) -> None:
    """Wait for Spark's listener bus, which is asynchronous."""
    wait_until(condition, "an event of Spark's listener bus")


@pytest.mark.usefixtures("engine")
def test_each_micro_batch_logs_its_lag(
    spark: SparkSession, root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    klog.register(spark)
    klog.register(spark)
    with caplog.at_level(logging.INFO, LOGGER):
        progress = run(orders(spark, root), tmp_path / "checkpoint", "lagging")
        wait(lambda: "query lagging, batch 2" in caplog.text)
    metrics = [batch["sources"][0]["latestOffset"]["#metrics"] for batch in progress]
    assert [list(values) for values in metrics] == [NAMES] * 3
    assert [values["maxOffsetsBehindLatest"] for values in metrics] == ["15", "5", "0"]
    assert [values["avgOffsetsBehindLatest"] for values in metrics] == ["15.0", "5.0", "0.0"]
    size_bytes = [int(values["estimatedTotalBytesBehindLatest"]) for values in metrics]
    assert size_bytes[0] > size_bytes[1] > size_bytes[2] == 0
    lines = [record.getMessage() for record in caplog.records if record.name == LOGGER]
    values = ", ".join(f"{name}={metrics[0][name]}" for name in NAMES)
    assert lines[0] == f"query lagging, batch 0, orders: {values}"
    assert len(lines) == 3, "a session listens once"


def test_other_queries_are_left_alone(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    klog.register(spark)
    with caplog.at_level(logging.DEBUG, LOGGER):
        frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
        writer = frame.writeStream.format("noop").queryName("rate")
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        wait(lambda: len(query.recentProgress) > 1)
        query.stop()
    assert not [record for record in caplog.records if record.name == LOGGER]


def test_a_progress_that_klog_does_not_know_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        for text in ("#metrics", '{"#metrics": 1}', '{"id": "x", "sources": [{"#metrics": 2}]}'):
            log_progress(text)
    assert not caplog.records


def test_a_listener_does_not_keep_the_driver_alive(root: Path) -> None:
    """The script ends without `spark.stop()`, as notebooks and short scripts do."""
    script = """
import logging, sys, klog
from pyspark.sql import SparkSession
logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
klog.register(spark)
rows = spark.readStream.format("klog").option("subscribe", "orders").load(sys.argv[1])
query = rows.writeStream.format("noop").trigger(availableNow=True).start()
query.awaitTermination(60)
import time
time.sleep(1)
"""
    command = [sys.executable, "-c", script, str(root)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "klog.progress query" in done.stderr
