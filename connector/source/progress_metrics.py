"""The lag of a stream, in the names of the metrics of Spark's Kafka source.

The rule: as `KafkaMicroBatchStream.metrics`, the smallest, the largest and the average number of
offsets that a partition has left after the micro-batch, as text. The bytes are those of the log, a
part of a segment as if all its records were of one size, and have the name that Databricks gives
them. Spark does not ask a Python source for metrics, so they travel in the latest offsets that
the source reports, under a key that no topic can have.
"""

from __future__ import annotations

from collections.abc import Mapping

from klog.connector.snapshot import PartitionSnapshot
from klog.logformat.topic_partition import TopicPartition

METRICS = "#metrics"


def lag_metrics(
    consumed: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    logs: Mapping[TopicPartition, PartitionSnapshot],
) -> dict[str, str]:
    """Return the metrics; nothing if there are no partitions, as Spark's Kafka source does.

    Args:
        consumed: Where the micro-batch ends.
        latest: The latest offsets.
        logs: The partitions, for their sizes.
    """
    counts = {name: max(end - consumed.get(name, 0), 0) for name, end in latest.items()}
    if not counts:
        return {}
    size_bytes = sum(
        logs[name].bytes_between(consumed.get(name, 0), latest[name])
        for name, count in counts.items()
        if count and name in logs
    )
    return {
        "minOffsetsBehindLatest": str(min(counts.values())),
        "maxOffsetsBehindLatest": str(max(counts.values())),
        "avgOffsetsBehindLatest": str(sum(counts.values()) / len(counts)),
        "estimatedTotalBytesBehindLatest": str(size_bytes),
    }
