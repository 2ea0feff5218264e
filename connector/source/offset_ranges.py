"""Offset ranges of a batch read: options to `[start_offset, end_offset)` for each partition.

The rules are those of Spark's Kafka connector, as observed (docs/migrating.md): JSON
names every partition of the read and no other, an end is exclusive, and what lies outside the log
is an error unless `failOnDataLoss` is false.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from klog.connector.options.offset_range_limit import (
    EarliestOffset,
    LatestOffset,
    LimitsByPartition,
    OffsetForTime,
    OffsetRangeLimit,
    PartitionLimit,
)
from klog.connector.options.read_options import ReadOptions
from klog.connector.snapshot import PartitionSnapshot
from klog.errors import OffsetOutOfRangeError, OptionError
from klog.logformat.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Bound:
    """The options of a start or an end, as errors name them."""

    offsets: str
    timestamp: str


_START = _Bound("startingOffsets", "startingTimestamp")
_END = _Bound("endingOffsets", "endingTimestamp")


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of one partition, read from `log`.

    Attributes:
        log: The partition as of the plan.
        start_offset: The first offset.
        end_offset: The offset after the last one. A range of committed records ends at the last
            stable offset.
        committed_only: Whether records of aborted transactions are left out.
    """

    log: PartitionSnapshot
    start_offset: int
    end_offset: int
    committed_only: bool

    def resolved(self) -> ResolvedRange:
        """Return the range without its partition's bounds and files."""
        return ResolvedRange(self.log.name, self.log.topic_id, self.start_offset, self.end_offset)


@dataclass(frozen=True, slots=True)
class ResolvedRange:
    """Offsets of one partition: what is kept of a `load()`.

    Attributes:
        name: The partition.
        topic_id: The id of its topic when the offsets were resolved, empty if it has none.
        start_offset: The first offset.
        end_offset: The offset after the last one.
    """

    name: TopicPartition
    topic_id: str
    start_offset: int
    end_offset: int


def batch_ranges(
    logs: Mapping[TopicPartition, PartitionSnapshot], options: ReadOptions
) -> list[OffsetRange]:
    """Return the ranges of a batch, without empty ones.

    Args:
        logs: The partitions of the read.
        options: The options of the read.

    Raises:
        OptionError: The options name other partitions than the read's.
        OffsetOutOfRangeError: The log does not have the offsets.
    """
    latest = latest_offsets(logs, options)
    end_offsets = _end_offsets(logs, latest, options)
    start_offsets = starting_offsets(logs, latest, options)
    ranges = []
    for name, log in logs.items():
        start_offset, end_offset = start_offsets[name], min(end_offsets[name], latest[name])
        if start_offset > end_offset:
            if not options.fail_on_data_loss and end_offsets[name] >= start_offset:
                continue
            raise OffsetOutOfRangeError(
                f"{name}: startingOffsets {start_offset} is after the end of the read at "
                f"{end_offset}; the log has offsets {log.log_start} to {log.log_end}. Give an "
                "earlier start or a later end"
            )
        if start_offset < end_offset:
            ranges.append(OffsetRange(log, start_offset, end_offset, options.committed_only))
    return ranges


def latest_offsets(
    logs: Mapping[TopicPartition, PartitionSnapshot], options: ReadOptions
) -> dict[TopicPartition, int]:
    """Return the last stable offset of each partition, or its log end for `read_uncommitted`.

    Args:
        logs: The partitions of the read.
        options: The options of the read.
    """
    if not options.committed_only:
        return {name: log.log_end for name, log in logs.items()}
    return {name: log.last_stable_offset() for name, log in logs.items()}


def starting_offsets(
    logs: Mapping[TopicPartition, PartitionSnapshot],
    latest: Mapping[TopicPartition, int],
    options: ReadOptions,
) -> dict[TopicPartition, int]:
    """Return where each partition starts.

    If `failOnDataLoss` is false, a start after the log end stays: the caller decides about it.

    Args:
        logs: The partitions of the read.
        latest: What `latest_offsets` returned for them.
        options: The options of the read.

    Raises:
        OptionError: The options name other partitions than the read's.
        OffsetOutOfRangeError: The log does not have the offsets.
    """
    return {
        name: _resolve(_START, limit, logs[name], latest[name], logs[name].log_end, options)
        for name, limit in _limits_by_partition(_START, options.starting, logs).items()
    }


def _end_offsets(
    logs: Mapping[TopicPartition, PartitionSnapshot],
    latest: Mapping[TopicPartition, int],
    options: ReadOptions,
) -> dict[TopicPartition, int]:
    return {
        name: _resolve(_END, limit, logs[name], latest[name], latest[name], options)
        for name, limit in _limits_by_partition(_END, options.ending, logs).items()
    }


def _limits_by_partition(
    bound: _Bound, limit: OffsetRangeLimit, logs: Mapping[TopicPartition, PartitionSnapshot]
) -> Mapping[TopicPartition, PartitionLimit]:
    if not isinstance(limit, LimitsByPartition):
        return dict.fromkeys(logs, limit)
    missing = [str(name) for name in logs if name not in limit.limits]
    unknown = [str(name) for name in limit.limits if name not in logs]
    if missing or unknown:
        raise OptionError(
            f"{bound.offsets}: the JSON must name every partition of the read and no other"
            + (f". Add {', '.join(missing)}" if missing else "")
            + (f". Remove {', '.join(unknown)}" if unknown else "")
        )
    return limit.limits


def _resolve(
    bound: _Bound,
    limit: PartitionLimit,
    log: PartitionSnapshot,
    latest: int,
    max_offset: int,
    options: ReadOptions,
) -> int:
    """Return the offset of a limit.

    A specific offset that is out of range is an error. If `failOnDataLoss` is false, it is the log
    start instead, and an offset after the log end stays: the range is cut later.
    """
    if isinstance(limit, EarliestOffset):
        return log.log_start
    if isinstance(limit, LatestOffset):
        return latest
    if isinstance(limit, OffsetForTime):
        return _offset_for_time(bound, limit, log, latest)
    is_after_end = limit.offset > max_offset and options.fail_on_data_loss
    if log.log_start <= limit.offset and not is_after_end:
        return limit.offset
    text = (
        f"{log.name}: {bound.offsets} {limit.offset} is out of range, the log has offsets "
        f"{log.log_start} to {max_offset}"
    )
    if max_offset < log.log_end:
        text += " that are stable (an open transaction holds back the others)"
    if options.fail_on_data_loss:
        raise OffsetOutOfRangeError(
            f"{text}; give offsets in that range, earliest or latest, or failOnDataLoss=false to "
            "read what the log has"
        )
    _log.warning("%s; failOnDataLoss=false, so the read goes on with what the log has", text)
    return log.log_start


def _offset_for_time(
    bound: _Bound, limit: OffsetForTime, log: PartitionSnapshot, latest: int
) -> int:
    offset = log.offset_for_time(limit.timestamp_ms, latest)
    if offset is not None:
        return offset
    if limit.latest_if_no_match:
        return latest
    raise OffsetOutOfRangeError(
        f"{log.name}: {bound.timestamp} {limit.timestamp_ms} is later than every record; give an "
        "earlier time, or startingOffsetsByTimestampStrategy=latest"
    )
