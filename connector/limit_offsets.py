"""The offset that a limit of a read means in a partition.

The rule: one place resolves all kinds of limits, for Spark's options, `klog.open` and
`klog consume`. What an offset that the log does not have means is the caller's to say.
"""

from __future__ import annotations

from collections.abc import Iterable

from klog.connector.options.offset_range_limit import (
    EarliestOffset,
    LastOffsets,
    LatestOffset,
    MaxTimestampOffset,
    OffsetForAge,
    PartitionLimit,
    SpecificOffset,
)
from klog.connector.snapshot import PartitionSnapshot, Snapshot
from klog.logformat.topic_partition import TopicPartition


def find_limit_offset(
    limit: PartitionLimit, log: PartitionSnapshot, latest: int, now_ms: int
) -> int | None:
    """Return the offset that a limit means; None if no record is late enough, and it says so.

    Args:
        limit: The limit.
        log: The partition.
        latest: What `LatestOffset` means: where the reader's isolation level stops.
        now_ms: The time from which an age counts, in ms since the epoch.

    Returns:
        The offset. A `SpecificOffset` may be outside the log.
    """
    timestamp_ms: int | None
    match limit:
        case EarliestOffset():
            return log.log_start
        case LatestOffset():
            return latest
        case SpecificOffset():
            return limit.offset
        case LastOffsets(count):
            return max(log.log_start, latest - count)
        case OffsetForAge(age_ms):
            offset_of_age = log.offset_for_time(now_ms - age_ms, latest)
            return latest if offset_of_age is None else offset_of_age
        case MaxTimestampOffset():
            timestamp_ms = log.max_timestamp_ms()
        case _:
            timestamp_ms = limit.timestamp_ms
    offset = None if timestamp_ms is None else log.offset_for_time(timestamp_ms, latest)
    return latest if offset is None and limit.latest_if_no_match else offset


def list_offsets(
    snapshot: Snapshot, names: Iterable[TopicPartition], limit: PartitionLimit, now_ms: int
) -> dict[TopicPartition, int | None]:
    """Return the offset that a limit means in each partition, as kafka-get-offsets does.

    Open transactions hold nothing back: the latest offset is the log end.

    Args:
        snapshot: The root.
        names: The partitions.
        limit: The limit.
        now_ms: The time from which an age counts, in ms since the epoch.

    Returns:
        By partition its offset; None if it has no record at or after a time.
    """
    return {
        name: find_limit_offset(limit, log, log.log_end, now_ms)
        for name, log in snapshot.open(names).items()
    }
