"""What a run of `availableNow` has fixed as its end, looked at again before a later micro-batch.

The rule is that of Spark's Kafka connector. The run fixes its end once. If a partition of it has
gone, is one of a topic created again, or ends before the micro-batch does, then the run cannot read
what it was started for, and that is an error whatever `failOnDataLoss` is. The next run fixes
another end, and goes on as `failOnDataLoss` says.
"""

from __future__ import annotations

from klog.connector.snapshot import Logs, PartitionSnapshot
from klog.connector.source.stream_log_ends import LogEnds
from klog.connector.source.stream_offsets import StreamOffsets
from klog.errors import DataLossError


def check_fixed_end(fixed: LogEnds, end: StreamOffsets, logs: Logs) -> None:
    """Raise an error if what the run has fixed as its end is not there any more.

    Args:
        fixed: Where the logs ended when the run fixed its end.
        end: Where the micro-batch ends.
        logs: The partitions of the micro-batch, as they are now.

    Raises:
        DataLossError: It is not.
    """
    for name, log in fixed.logs.items():
        offset = end.next_offsets.get(name)
        if offset is None:
            continue
        reason = _loss(log, logs.get(name), offset)
        if reason:
            raise DataLossError(
                f"{name}: {reason} after availableNow had fixed where this run ends, offset "
                f"{fixed.offsets.next_offsets[name]}; run the query again, with "
                "failOnDataLoss=false to go on with what is left"
            )


def _loss(then: PartitionSnapshot, now: PartitionSnapshot | None, offset: int) -> str:
    """Return what has happened to a partition; nothing if it can be read up to an offset."""
    if now is None:
        return "the partition was deleted"
    if now.topic_id != then.topic_id:
        return "the topic was deleted and created again"
    log_end = max(now.log_end, now.readable_end)
    if log_end < offset:
        return f"the log was cut off at offset {log_end}"
    return ""
