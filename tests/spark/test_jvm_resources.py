"""What the JVM engine holds on to: no file after its tasks, and little memory for large topics."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

import klog
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS, wait_until

pytestmark = pytest.mark.spark

HEAP = "512m"
RECORDS, VALUE_BYTES, LARGE_BYTES = 500_000, 1000, 8 << 20
"""A topic of 500 MB, and one whose batches are each a value of 8 MiB."""
MAX_BYTES = str(LARGE_BYTES + 1000)
READ_AND_WRITE = """
import sys
from pyspark.sql import SparkSession
import klog
root = sys.argv[1]
builder = klog.configure(SparkSession.builder).master("local[2]")
builder = builder.config("spark.driver.memory", sys.argv[2]).config("spark.ui.enabled", "false")
spark = builder.config("spark.klog.engine", "jvm").getOrCreate()
for topic in ("small", "large"):
    df = spark.read.format("klog").option("subscribe", topic).option("minPartitions", 8).load(root)
    klog.open(root).create_topic(topic + "-copy", 2, {"max.message.bytes": sys.argv[3]})
    writer = df.select("key", "value").write.format("klog").mode("append")
    writer.option("topic", topic + "-copy").option("engine", "jvm").save(root)
    copy = spark.read.format("klog").option("subscribe", topic + "-copy").load(root)
    print(topic, copy.count(), copy.selectExpr("sum(length(value))").first()[0])
print("heap", spark._jvm.java.lang.Runtime.getRuntime().maxMemory() >> 20)
"""
"""Reads topics of the root and writes them to others: rows, batches and the shuffle of batches."""


def append(root: Path, topic: str, count: int, value_bytes: int, times: int) -> None:
    """Append incompressible values of one size, with keys."""
    log = klog.open(root)
    log.create_topic(topic, 2, {"max.message.bytes": MAX_BYTES})
    source = np.random.default_rng(1)
    for _ in range(times):
        values = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(value_bytes), count, [None, pa.py_buffer(source.bytes(count * value_bytes))]
        )
        keys = pa.array([str(number).encode() for number in range(count)])
        log.append(topic, pa.table({"key": keys, "value": values.cast(pa.binary())}))


def open_files(spark: SparkSession, root: Path) -> list[str]:
    """Return the files below a root that the session's Java process has open."""
    session: Any = spark
    folder = Path(f"/proc/{session._jvm.java.lang.ProcessHandle.current().pid()}/fd")
    links = []
    for entry in folder.iterdir():
        try:
            links.append(str(entry.readlink()))
        except FileNotFoundError:  # Closed meanwhile.
            continue
    return [link for link in links if link.startswith(str(root))]


def test_a_query_that_is_cancelled_closes_its_files(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, "t", 400_000, 100, 1)
    slow = "sum(length(repeat(hex(sha2(value, 512)), 100)))"
    df = spark.read.format("klog").option("subscribe", "t").option("engine", "jvm")

    @inheritable_thread_target(spark)
    def run() -> None:
        spark.sparkContext.setJobGroup("slow", "takes seconds", interruptOnCancel=True)
        df.load(str(tmp_path)).selectExpr(slow).collect()

    with ThreadPoolExecutor(1) as pool:
        query = pool.submit(run)
        wait_until(lambda: open_files(spark, tmp_path), "a segment to be read")
        spark.sparkContext.cancelJobGroup("slow")
        assert "cancelled" in str(query.exception(TIMEOUT_SECONDS))
    wait_until(lambda: not open_files(spark, tmp_path), "the files to be closed")


@pytest.mark.full
@pytest.mark.slow
def test_a_small_heap_reads_and_writes_large_topics(tmp_path: Path) -> None:
    root = tmp_path / "root"
    append(root, "small", RECORDS // 5, VALUE_BYTES, 5)
    append(root, "large", 9, LARGE_BYTES, 4)
    script = tmp_path / "script.py"
    script.write_text(READ_AND_WRITE)
    command = [sys.executable, str(script), str(root), HEAP, MAX_BYTES]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, cwd=PROJECT,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    expected = [
        f"small {RECORDS} {RECORDS * VALUE_BYTES}",
        f"large 36 {36 * LARGE_BYTES}",
        "heap 512",
    ]
    assert done.stdout.splitlines() == expected
