"""The Python processes that plan streams: with the jar, forks that end with a stream."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import klog
from tests.support.waiting import TIMEOUT_SECONDS, wait_until

pytestmark = pytest.mark.spark

MODULE = b"pyspark.sql.streaming.python_streaming_source_runner"
FORKING_THREAD = "klog-stream-process"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    log = klog.open(tmp_path / "root")
    log.create_topic("t", 1)
    log.append("t", pa.table({"value": [b"v"]}))
    return tmp_path / "root"


@pytest.fixture(autouse=True)
def _without_forks(spark: SparkSession) -> Iterator[None]:
    """Begin and end without a fork: Spark keeps one that no stream has taken for a minute."""
    kill_forks(spark)
    yield
    kill_forks(spark)


def kill_forks(spark: SparkSession) -> None:
    for pid in forks(spark):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not forks(spark), "the forks to end")


def load(spark: SparkSession, root: Path, engine: str = "jvm") -> DataFrame:
    """Load the topic as a stream, and wait until there is one fork more, which is free."""
    before = forks(spark)
    reader = spark.readStream.format("klog").option("startingOffsets", "earliest")
    frame = reader.option("subscribe", "t").option("engine", engine).load(str(root))
    wait_until(lambda: forks(spark) - before, "a fork for the stream")
    wait_until(lambda: not is_forking(spark), "the fork to be free")
    return frame


def start(frame: DataFrame, checkpoint: Path) -> StreamingQuery:
    """Start a stream that has read what there is when this returns."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.start()
    query.processAllAvailable()
    return query


def forks(spark: SparkSession) -> set[int]:
    """Return the processes of this session that plan streams, or wait for one."""
    session: Any = spark
    java: int = session._jvm.java.lang.ProcessHandle.current().pid()
    parents = planners()
    return {pid for pid, parent in parents.items() if parents.get(parent) == java}


def is_forking(spark: SparkSession) -> bool:
    """Return whether the jar waits for a fork."""
    session: Any = spark
    threads = session._jvm.java.lang.Thread.getAllStackTraces().keySet()
    return any(thread.getName() == FORKING_THREAD for thread in threads)


def planners() -> dict[int, int]:
    """Return the processes that plan streams, their daemons among them, with their parents."""
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


@pytest.mark.parametrize("engine", ["jvm", "python"])
def test_a_stream_takes_the_fork_of_its_load_and_ends_it(
    spark: SparkSession, root: Path, tmp_path: Path, engine: str
) -> None:
    queries, expected = [], set()
    for name in "ab":
        frame = load(spark, root, engine)
        expected = forks(spark)
        queries.append(start(frame, tmp_path / name))
        assert forks(spark) == expected
    assert len(expected) == len(queries)
    for query in queries:
        query.stop()
    wait_until(lambda: not forks(spark), "the processes of both streams to end")


def test_a_stream_that_is_stopped_while_it_starts_leaves_the_others_alone(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    """The daemon is stopped meanwhile, so that it is at the fork that the stream is interrupted."""
    running = start(load(spark, root), tmp_path / "running")
    used = forks(spark)
    frame = load(spark, root)
    for pid in forks(spark) - used:
        os.kill(pid, signal.SIGKILL)
    (daemon,) = {planners()[pid] for pid in used}
    os.kill(daemon, signal.SIGSTOP)
    try:
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
        query = writer.start()
        wait_until(lambda: is_forking(spark), "the stream to be at its fork")
        query.stop()
    finally:
        os.kill(daemon, signal.SIGCONT)
    wait_until(lambda: forks(spark) == used, "the late fork to end")
    klog.open(root).append("t", pa.table({"value": [b"w"]}))
    running.processAllAvailable()
    assert sum(row["numInputRows"] for row in running.recentProgress) == 2
    running.stop()


def test_a_stream_whose_process_is_killed_fails_and_goes_on_at_a_restart(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    query = start(load(spark, root), tmp_path / "c")
    (pid,) = forks(spark)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(TIMEOUT_SECONDS)
    klog.open(root).append("t", pa.table({"value": [b"w"]}))
    restarted = start(load(spark, root), tmp_path / "c")
    assert [row["numInputRows"] for row in restarted.recentProgress if row["numInputRows"]] == [1]
    restarted.stop()
