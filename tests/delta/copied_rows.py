"""What a topic has, and what a Delta table has of it, in a form that a test compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import klog
from klog.connector.embedded import Log

COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
TOPIC = "orders"


def new_log(root: str, partitions: int = 3, topic: str = TOPIC) -> Log:
    """Return a new root with a topic."""
    log = klog.open(root)
    log.create_topic(topic, partitions=partitions)
    return log


def append(log: Log, records: Sequence[tuple[str | None, str | None]], topic: str = TOPIC) -> None:
    """Write keys and values."""
    table = pa.table(
        {
            "key": pa.array([key for key, _ in records], pa.string()),
            "value": pa.array([value for _, value in records], pa.string()),
        }
    )
    log.append(topic, table)


def numbered(start: int, end: int) -> list[tuple[str, str]]:
    """Return records with keys and values that have numbers."""
    return [(f"k{number % 7}", f"v{number}") for number in range(start, end)]


def rows_of_topic(log: Log, topic: str = TOPIC) -> list[dict[str, Any]]:
    """Return the records of a topic, sorted."""
    table = log.scan(topic, columns=COLUMNS).read_all()
    rows: list[dict[str, Any]] = table.to_pylist()
    return sorted(map(_plain, rows), key=_place)


def rows_of_table(spark: SparkSession, path: str) -> list[dict[str, Any]]:
    """Return the rows of a table, sorted."""
    table = spark.read.format("delta").load(path).select(*COLUMNS).toArrow()
    return sorted(map(_plain, table.to_pylist()), key=_place)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    headers = row["headers"]
    pairs = headers and [(header["key"], header["value"]) for header in headers]
    return {**row, "timestamp": row["timestamp"].timestamp(), "headers": pairs or None}


def _place(row: Mapping[str, Any]) -> tuple[str, int, int]:
    return row["topic"], row["partition"], row["offset"]
