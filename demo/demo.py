"""The main jobs: a broker's directory read, a stream written exactly once, topics kept in order.

    make demo

No broker runs. The directory is `tests/corpus/broker-4.2.0/transactions/log`, written by a broker
4.2.0: four producers with committed, aborted and open transactions, interleaved over several
segments.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import exactly_once
import keeping
from pyspark.sql import SparkSession
from session import session

from klog.cli import main as klog

ROOT = Path(__file__).parents[1] / "tests/corpus/broker-4.2.0/transactions/log"
TOPIC = "txn.interleaved"
LAST_SEGMENTS = ("*000190.*", "*000215.*", "*000242.*")


def main() -> None:
    """Show topics, counts, a window of records, streams, and jobs."""
    title(f"klog topics describe --root {short(ROOT)}")
    klog(["topics", "describe", "--exclude-internal", "--root", str(ROOT)])
    spark = session()
    try:
        counts(spark)
        window(spark)
        stream(spark)
        title("A stream into a klog root: killed midway, started again, each row is there once")
        with TemporaryDirectory(prefix="klog-demo-") as folder:
            exactly_once.show(Path(folder))
        title("Topics kept in order: klog merge, klog compact, klog retain")
        with TemporaryDirectory(prefix="klog-demo-") as folder:
            keeping.show(spark, Path(folder))
    finally:
        spark.stop()


def counts(spark: SparkSession) -> None:
    """Count the records of each partition; Kafka's internal topics never match a pattern."""
    title("Committed records per partition (offsets also count markers and aborted records)")
    records = spark.read.format("klog").option("subscribePattern", ".*").load(str(ROOT))
    records.groupBy("topic", "partition").count().orderBy("topic", "partition").show()


def window(spark: SparkSession) -> None:
    """Show a window of records by offset; the end is exclusive."""
    title(f"{TOPIC}, partition 0, offsets 40 to 49: the gaps are aborted records and markers")
    (
        spark.read.format("klog")
        .option("assign", json.dumps({TOPIC: [0]}))
        .option("startingOffsets", json.dumps({TOPIC: {"0": 40}}))
        .option("endingOffsets", json.dumps({TOPIC: {"0": 50}}))
        .load(str(ROOT))
        .selectExpr("offset", "timestamp", "string(key) key", "substr(string(value), 1, 12) value")
        .show(truncate=False)
    )


def stream(spark: SparkSession) -> None:
    """Stream a copy of the directory into Parquet, add its last segments, and stream again."""
    title("A stream over a directory that grows")
    with TemporaryDirectory(prefix="klog-demo-") as folder:
        copy = Path(folder) / "log"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LAST_SEGMENTS))
        run(spark, copy, "without the last segments")
        shutil.copytree(ROOT, copy, dirs_exist_ok=True)
        run(spark, copy, "restarted, the last segments are there")
        run(spark, copy, "restarted, nothing is new")


def run(spark: SparkSession, root: Path, label: str) -> None:
    """Run the stream to the current end, and count the rows in its sink."""
    rows, checkpoint = str(root.with_name("rows")), str(root.with_name("checkpoint"))
    query = (
        spark.readStream.format("klog")
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .load(str(root))
        .writeStream.format("parquet")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(rows)
    )
    query.awaitTermination()
    progress = query.lastProgress
    end = f"endOffset {progress.sources[0].endOffset}" if progress else "no batch"
    print(f"{label}:\n  {spark.read.parquet(rows).count()} rows in the sink, {end}", flush=True)


def title(text: str) -> None:
    """Print a headline at once: the next lines may come from another writer."""
    print(f"\n== {text}", flush=True)


def short(path: Path) -> str:
    """Return a path relative to the working directory if that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)


if __name__ == "__main__":
    main()
