"""The session of the demo: Spark in this process, on two cores; it finds the format by itself."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


def session() -> SparkSession:
    """Start Spark."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    return (
        SparkSession.builder.master("local[2]").appName("demo").config(map=settings).getOrCreate()
    )
