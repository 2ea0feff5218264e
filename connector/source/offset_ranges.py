"""Offset ranges of a batch read: options to `[start_offset, end_offset)` for each partition.

The rules are those of Spark's Kafka connector, as observed (docs/migrating.md): JSON
names every partition of the read and no other, an end is exclusive, and what lies outside the log
is an error unless `failOnDataLoss` is false.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from klog.connector.limit_offsets import find_limit_offset
from klog.connector.options.offset_range_limit import (
    LimitsByPartition,
    OffsetRangeLimit,
    PartitionLimit,
    SpecificOffset,
)
from klog.connector.options.read_options import ReadOptions
from klog.connector.snapshot import PartitionSnapshot
from klog.connector.source.load_plan import ResolvedRange
from klog.connector.system_clock import now_ms
from klog.errors import OffsetOutOfRangeError, OptionError
from klog.logformat.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


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
        log = self.log
        return ResolvedRange(
            log.name, log.topic_id, self.start_offset, self.end_offset, log.last_restore
        )


def split_by_count(ranges: Iterable[OffsetRange], max_offsets: int) -> list[OffsetRange]:
    """Return ranges of at most so many offsets each: equal parts, as Spark's connector makes them.

    Args:
        ranges: The ranges.
        max_offsets: The largest number of offsets of a range.
    """
    parts = []
    for offset_range in ranges:
        count = offset_range.end_offset - offset_range.start_offset
        part_count = -(-count // max_offsets)
        bounds = [
            offset_range.start_offset + count * number // part_count
            for number in range(part_count + 1)
        ]
        parts += [
            replace(offset_range, start_offset=start, end_offset=end)
            for start, end in pairwise(bounds)
        ]
    return parts


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
    latest, now = latest_offsets(logs, options), now_ms()
    end_offsets = _end_offsets(logs, latest, options, now)
    start_offsets = starting_offsets(logs, latest, options, now)
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
    now: int,
) -> dict[TopicPartition, int]:
    """Return where each partition starts.

    If `failOnDataLoss` is false, a start after the log end stays: the caller decides about it.

    Args:
        logs: The partitions of the read.
        latest: What `latest_offsets` returned for them.
        options: The options of the read.
        now: The time from which an age counts, in ms since the epoch.

    Raises:
        OptionError: The options name other partitions than the read's.
        OffsetOutOfRangeError: The log does not have the offsets.
    """
    limits = _limits_by_partition(options.starting_option, options.starting, logs)
    return {
        name: _resolve(
            _Limit(options.starting_option, limit, latest[name], logs[name].log_end),
            logs[name],
            now,
            options.fail_on_data_loss,
        )
        for name, limit in limits.items()
    }


def _end_offsets(
    logs: Mapping[TopicPartition, PartitionSnapshot],
    latest: Mapping[TopicPartition, int],
    options: ReadOptions,
    now: int,
) -> dict[TopicPartition, int]:
    limits = _limits_by_partition(options.ending_option, options.ending, logs)
    return {
        name: _resolve(
            _Limit(options.ending_option, limit, latest[name], latest[name]),
            logs[name],
            now,
            options.fail_on_data_loss,
        )
        for name, limit in limits.items()
    }


def _limits_by_partition(
    option: str, limit: OffsetRangeLimit, logs: Mapping[TopicPartition, PartitionSnapshot]
) -> Mapping[TopicPartition, PartitionLimit]:
    if not isinstance(limit, LimitsByPartition):
        return dict.fromkeys(logs, limit)
    missing = [str(name) for name in logs if name not in limit.limits]
    unknown = [str(name) for name in limit.limits if name not in logs]
    if missing or unknown:
        raise OptionError(
            f"{option}: the JSON must name every partition of the read and no other"
            + (f". Add {', '.join(missing)}" if missing else "")
            + (f". Remove {', '.join(unknown)}" if unknown else "")
        )
    return limit.limits


@dataclass(frozen=True, slots=True)
class _Limit:
    """The limit of one partition: its option, what latest means, and the largest offset."""

    option: str
    limit: PartitionLimit
    latest: int
    max_offset: int


def _resolve(limit: _Limit, log: PartitionSnapshot, now: int, fail_on_data_loss: bool) -> int:
    """Return the offset of a limit.

    A specific offset that is out of range is an error. If `failOnDataLoss` is false, it is the log
    start instead, and an offset after the log end stays: the range is cut later.
    """
    offset = find_limit_offset(limit.limit, log, limit.latest, now)
    if offset is None:
        raise OffsetOutOfRangeError(
            f"{log.name}: {limit.option} is later than every record of the partition; give an "
            "earlier time, or startingOffsetsByTimestampStrategy=latest"
        )
    if not isinstance(limit.limit, SpecificOffset):
        return offset
    is_after_end = offset > limit.max_offset and fail_on_data_loss
    if log.log_start <= offset and not is_after_end:
        return offset
    text = (
        f"{log.name}: {limit.option} {offset} is out of range, the log has offsets "
        f"{log.log_start} to {limit.max_offset}"
    )
    if limit.max_offset < log.log_end:
        text += " that are stable (an open transaction holds back the others)"
    if fail_on_data_loss:
        raise OffsetOutOfRangeError(
            f"{text}; give offsets in that range, earliest or latest, or failOnDataLoss=false to "
            "read what the log has"
        )
    _log.warning("%s; failOnDataLoss=false, so the read goes on with what the log has", text)
    return log.log_start
