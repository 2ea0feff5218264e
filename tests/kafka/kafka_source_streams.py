"""A process with streams of Spark's Kafka source; a test kills it, and its JVM, in their batches.

The rule: what a batch reads goes to one file with the batch's id, so that a batch that runs again
replaces what it has written, and what is lost or doubled shows. A query ends by itself, or blocks
in a batch whose rows are written and which is not committed.

    python -m tests.kafka.kafka_source_streams BOOTSTRAP DIRECTORY QUERIES_JSON
"""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tools.jars import jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROWS, COUNTS = "rows", "counts"
BATCH_OFFSETS = 20


@dataclass(frozen=True, slots=True)
class Query:
    """A streaming query.

    Attributes:
        name: The name of its folder, with its checkpoint and what it writes.
        topic: What it reads.
        output: ROWS: what was read; COUNTS: the number of records of each key so far.
        blocks_in: The batch in which it blocks; None if it ends when it has read everything.
        starting: `startingOffsets`.
        conf: Settings of the Spark session for this query.
    """

    name: str
    topic: str
    output: str = ROWS
    blocks_in: int | None = None
    starting: str = "earliest"
    conf: dict[str, str] = field(default_factory=dict)


def start(
    stream: DataFrame, output: str, checkpoint: Path, out: Path, blocks_in: int | None = None
) -> StreamingQuery:
    """Start a query; one that does not block reads what is there."""
    out.mkdir(parents=True, exist_ok=True)

    def write(batch: DataFrame, batch_id: int) -> None:
        rows = sorted([*row] for row in batch.collect())
        (out / f"{batch_id}.json").write_text(json.dumps(rows))
        if batch_id == blocks_in:
            (out / "blocked").touch()
            threading.Event().wait()

    if output == COUNTS:
        selected = stream.groupBy(stream.key.cast("string").alias("key")).count()
    else:
        selected = stream.selectExpr("partition", "offset")
    writer = (
        selected.writeStream.outputMode("update" if output == COUNTS else "append")
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(write)
    )
    return (writer if blocks_in is not None else writer.trigger(availableNow=True)).start()


def main() -> None:
    """Run the queries, then wait to be killed."""
    bootstrap, directory = sys.argv[1], Path(sys.argv[2])
    queries = [Query(**values) for values in json.loads(sys.argv[3])]
    spark = _session()
    running = [_start(spark, bootstrap, directory, query) for query in queries]
    for query, streaming in zip(queries, running, strict=True):
        if query.blocks_in is None:
            streaming.awaitTermination()
            (directory / query.name / "out" / "ended").touch()
    threading.Event().wait()


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.jars", ",".join(str(jar) for jar in jars("spark-kafka").glob("*.jar")))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _start(spark: SparkSession, bootstrap: str, directory: Path, query: Query) -> StreamingQuery:
    for key, value in query.conf.items():
        spark.conf.set(key, value)
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", query.topic)
        .option("startingOffsets", query.starting)
        .option("maxOffsetsPerTrigger", BATCH_OFFSETS)
        .load()
    )
    folder = directory / query.name
    streaming = start(stream, query.output, folder / "checkpoint", folder / "out", query.blocks_in)
    for key in query.conf:
        spark.conf.unset(key)
    return streaming


if __name__ == "__main__":
    main()
