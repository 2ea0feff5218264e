"""The Python processes that plan streams: with the jar, forks that end with a stream."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import klog
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark

MODULE = b"pyspark.sql.streaming.python_streaming_source_runner"
TIMEOUT_S = 120
"""Spark keeps a fork that no stream has taken for a minute."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    log = klog.open(tmp_path / "root")
    log.create_topic("t", 1)
    log.append("t", pa.table({"value": [b"v"]}))
    return tmp_path / "root"


def started(spark: SparkSession, root: Path, checkpoint: Path) -> StreamingQuery:
    """Return a stream that has read what there is."""
    reader = spark.readStream.format("klog").option("startingOffsets", "earliest")
    frame = reader.option("subscribe", "t").option("engine", "jvm").load(str(root))
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.start()
    query.processAllAvailable()
    return query


def planners() -> dict[int, int]:
    """Return the processes that plan streams, each with its parent."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            status = (folder / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if MODULE in command:
            parents[int(folder.name)] = int(status.partition("PPid:")[2].split()[0])
    return parents


def forks() -> set[int]:
    """Return the processes whose parent is such a process, too: the daemon."""
    processes = planners()
    return {pid for pid, parent in processes.items() if parent in processes}


def test_streams_are_planned_by_forks_that_end_with_them(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    before = forks()
    queries = [started(spark, root, tmp_path / name) for name in "ab"]
    new = forks() - before
    parents = planners()
    assert len(new) >= 2
    assert len({parents[pid] for pid in new}) == 1
    for query in queries:
        query.stop()
    wait_until(lambda: not forks() & new, "the processes of both streams to end", TIMEOUT_S)


def test_a_stream_whose_process_is_killed_fails_and_goes_on_at_a_restart(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    before = forks()
    query = started(spark, root, tmp_path / "c")
    for pid in forks() - before:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(TIMEOUT_S)
    klog.open(root).append("t", pa.table({"value": [b"w"]}))
    again = started(spark, root, tmp_path / "c")
    assert [row["numInputRows"] for row in again.recentProgress if row["numInputRows"]] == [1]
    again.stop()
