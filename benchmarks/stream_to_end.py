"""Streams that read a backlog to its end with `availableNow`, and what Spark says of them."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

WARM_UP_BATCHES = 10


def run_to_end(
    df: DataFrame, checkpoint: Path, sink: str = "noop", path: Path | None = None
) -> StreamingQuery:
    """Run a stream until it has read what is there.

    Args:
        checkpoint: A folder that is not there yet.
        sink: The format that is written.
        path: Where it is written, if the sink needs that.
    """
    writer = df.writeStream.format(sink).option("checkpointLocation", str(checkpoint))
    if path is not None:
        writer = writer.option("path", str(path))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def row_count(query: StreamingQuery) -> int:
    """Return how many rows a stream has read."""
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def micro_batch_ms(query: StreamingQuery) -> float:
    """Return the median time of a micro-batch in ms, the first ones left out."""
    seen = query.recentProgress[WARM_UP_BATCHES:]
    return float(median(progress["durationMs"]["triggerExecution"] for progress in seen))
