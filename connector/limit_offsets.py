"""The offsets that limits of a read mean in partitions.

The rule: one place resolves all kinds of limits, for Spark's options, `klog.open` and
`klog consume`, for all partitions at once and with one clock. What an offset that the log does not
have means is the caller's to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from klog.connector.options.offset_range_limit import (
    EarliestOffset,
    LastOffsets,
    LatestOffset,
    MaxTimestampOffset,
    OffsetForAge,
    OffsetForTime,
    PartitionLimit,
    SpecificOffset,
)
from klog.connector.snapshot import Logs, Snapshot
from klog.logformat.topic_partition import TopicPartition


def find_limit_offsets(
    limits: Mapping[TopicPartition, PartitionLimit],
    logs: Logs,
    latest: Mapping[TopicPartition, int],
    now_ms: int,
) -> dict[TopicPartition, int | None]:
    """Return the offset that a limit means in each partition.

    Args:
        limits: The limit of each partition.
        logs: The partitions; there may be more.
        latest: What `LatestOffset` means in each: where the reader's isolation level stops.
        now_ms: The time from which an age counts, in ms since the epoch.

    Returns:
        The offsets, in the order of the limits. That of a `SpecificOffset` may be outside the log.
        It is None if no record is late enough, and the limit does not say `latest_if_no_match`.
    """
    # It knows both kinds of root: a stream's reader that Spark only pickles does not need them.
    from klog.connector.time_offsets import TimeLookup, first_offsets_at_times

    times = _times(limits, logs, now_ms)
    lookups = [TimeLookup(logs[name], time_ms, latest[name]) for name, time_ms in times.items()]
    offsets = dict(zip(times, first_offsets_at_times(lookups), strict=True))
    return {
        name: _offset(limit, logs[name].log_start, latest[name], offsets.get(name))
        for name, limit in limits.items()
    }


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
    return list_log_offsets(snapshot.open(names), limit, now_ms)


def list_log_offsets(
    logs: Logs, limit: PartitionLimit, now_ms: int
) -> dict[TopicPartition, int | None]:
    """Return what `list_offsets` does, for partitions that are open.

    Args:
        logs: The partitions.
        limit: The limit.
        now_ms: The time from which an age counts, in ms since the epoch.
    """
    ends = {name: log.log_end for name, log in logs.items()}
    return find_limit_offsets(dict.fromkeys(logs, limit), logs, ends, now_ms)


def _times(
    limits: Mapping[TopicPartition, PartitionLimit], logs: Logs, now_ms: int
) -> dict[TopicPartition, int]:
    """Return the time that has to be looked up in each partition whose limit means one."""
    from klog.connector.time_offsets import max_timestamps

    newest = [name for name, limit in limits.items() if isinstance(limit, MaxTimestampOffset)]
    max_times = max_timestamps([logs[name] for name in newest])
    times = {
        name: time_ms
        for name, time_ms in zip(newest, max_times, strict=True)
        if time_ms is not None
    }
    for name, limit in limits.items():
        if isinstance(limit, OffsetForTime):
            times[name] = limit.timestamp_ms
        elif isinstance(limit, OffsetForAge):
            times[name] = now_ms - limit.age_ms
    return times


def _offset(
    limit: PartitionLimit, log_start: int, latest: int, time_offset: int | None
) -> int | None:
    """Return the offset that a limit means; `time_offset` is that of its time, if it has one."""
    match limit:
        case EarliestOffset():
            return log_start
        case LatestOffset():
            return latest
        case SpecificOffset():
            return limit.offset
        case LastOffsets(count):
            return max(log_start, latest - count)
        case OffsetForAge():
            return latest if time_offset is None else time_offset
        case _:
            return latest if time_offset is None and limit.latest_if_no_match else time_offset
