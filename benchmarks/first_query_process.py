"""Run the first stream of a fresh Spark session, and print where its seconds go, as JSON.

    python -m benchmarks.first_query_process klog ROOT
    python -m benchmarks.first_query_process ready_stream

The rule: the JVM has run a query of SQL before, but no Python worker. `load` and `whole` are wall
times of the driver, in seconds; the others are Spark's own account of the first micro-batch.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time

from pyspark.sql import DataFrame, SparkSession

from benchmarks import ready_stream
from benchmarks.logs import TOPIC

LOAD, WHOLE = "load()", "whole query"
REST = "the rest: start() with the planner's process, the end of the query"
PHASES = {
    "latestOffset": "latestOffset",
    "queryPlanning": "queryPlanning",
    "addBatch": "addBatch, with the start of the tasks' workers",
    "walCommit": "walCommit",
    "commitOffsets": "commitOffsets",
}


def main(source: str, path: str = "") -> None:
    """Run the stream and print the seconds of each step."""
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(ready_stream.ReadyStream)
    spark.range(1).write.format("noop").mode("append").save()
    with tempfile.TemporaryDirectory(prefix="klog-benchmark-") as checkpoint:
        begin = time.perf_counter()
        frame = _load(spark, source, path)
        loaded = time.perf_counter()
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        end = time.perf_counter()
    phases = query.recentProgress[0]["durationMs"]
    seconds = {name: phases[phase] / 1000 for phase, name in PHASES.items()}
    rest = end - loaded - sum(seconds.values())
    print(json.dumps({LOAD: loaded - begin, **seconds, REST: rest, WHOLE: end - begin}))
    spark.stop()


def _load(spark: SparkSession, source: str, path: str) -> DataFrame:
    reader = spark.readStream.format(source)
    if source == ready_stream.NAME:
        return reader.option("batches", "1").load()
    return reader.options(subscribe=TOPIC, startingOffsets="earliest").load(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
