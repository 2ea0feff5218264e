"""What docs/jobs.md supposes: topics that have something for each job to do."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import klog
from tests.pages.page_scene import Scene, default_scene

_DAY_MS = 24 * 3600 * 1000


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Add a compacted topic, one with expired records, and one with many small segments."""
    scene = default_scene(folder, spark)
    log = klog.open(folder / "data/klog")
    log.create_topic("users", config={"cleanup.policy": "compact"})
    log.create_topic("logs", config={"retention.ms": str(_DAY_MS)})
    for number in range(20):
        keys = [f"user{number % 4}", f"user{number % 5}"]
        log.append("users", pa.table({"key": keys, "value": [f"v{number}", f"w{number}"]}))
    last_week = pa.array([time.time_ns() // 1_000_000 - 7 * _DAY_MS] * 10, pa.timestamp("ms"))
    log.append("logs", pa.table({"value": ["old"] * 10, "timestamp": last_week}))
    log.append("logs", pa.table({"value": ["new"] * 10}))
    return scene
