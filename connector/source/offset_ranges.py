"""Offset ranges of a read: options to `[start_offset, end_offset)` for each partition.

The rules are those of Spark's Kafka connector, as observed (docs/migrating.md): JSON names every
partition of the read and no other, and an end is exclusive. A start after its end is an error,
whatever `failOnDataLoss` is. An empty range is not compared with the log. What lies outside the log
of any other is an error, or with `failOnDataLoss=false` cut off.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from klog.connector.limit_offsets import find_limit_offsets
from klog.connector.options.offset_range_limit import (
    LimitsByPartition,
    OffsetForTime,
    OffsetRangeLimit,
    PartitionLimit,
    SpecificOffset,
)
from klog.connector.options.read_options import ReadOptions
from klog.connector.snapshot import PartitionSnapshot
from klog.connector.source.load_plan import ResolvedRange
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
    logs: Mapping[TopicPartition, PartitionSnapshot],
    options: ReadOptions,
    now: int,
    warn: Callable[[str], None] = _log.warning,
) -> list[OffsetRange]:
    """Return the ranges of a batch, without empty ones.

    Args:
        logs: The partitions of the read.
        options: The options of the read.
        now: The time from which an age counts, in ms since the epoch.
        warn: Called with each warning about offsets that the log does not have.

    Raises:
        OptionError: The options name other partitions than the read's.
        OffsetOutOfRangeError: A start is after its end, or the log does not have the offsets.
    """
    latest = latest_offsets(logs, options)
    starts = _offsets(options.starting_option, options.starting, logs, latest, now)
    ends = _offsets(options.ending_option, options.ending, logs, latest, now)
    ranges = []
    for name, log in logs.items():
        start, end = starts[name], ends[name]
        if start > end:
            raise OffsetOutOfRangeError(
                f"{name}: {options.starting_option} {start} is after the end of the read at {end}; "
                f"the log has offsets {log.log_start} to {log.log_end}. Give an earlier start or a "
                "later end"
            )
        if start == end:
            continue
        for option, offset in ((options.starting_option, start), (options.ending_option, end)):
            if not log.log_start <= offset <= latest[name]:
                _report_out_of_range(option, offset, log, latest[name], options, warn)
        start, end = max(start, log.log_start), min(end, latest[name])
        if start < end:
            ranges.append(OffsetRange(log, start, end, options.committed_only))
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
    resolved: Iterable[ResolvedRange] = (),
) -> dict[TopicPartition, int]:
    """Return where each partition of a new stream starts.

    A time that `load()` has looked up is not looked up again: its first record is the same as long
    as that record is there, whatever was appended since.

    With `failOnDataLoss=false` a start below the log start stays as given, as in Spark's Kafka
    connector: the first micro-batch warns of what it does not find. One after the latest offset is
    the latest offset, so that the stream reads what comes next.

    Args:
        logs: The partitions of the read.
        latest: What `latest_offsets` returned for them.
        options: The options of the read.
        now: The time from which an age counts, in ms since the epoch.
        resolved: What `load()` has resolved with the same options.

    Raises:
        OptionError: The options name other partitions than the read's.
        OffsetOutOfRangeError: The log does not have the offsets.
    """
    limits = dict(limits_by_partition(options.starting_option, options.starting, logs))
    for known in resolved:
        if isinstance(limits.get(known.name), OffsetForTime) and _has_start(
            logs[known.name], known
        ):
            limits[known.name] = SpecificOffset(known.start_offset)
    limit = LimitsByPartition(limits)
    starts = _offsets(options.starting_option, limit, logs, latest, now)
    for name, start in starts.items():
        log = logs[name]
        if start > latest[name] or (options.fail_on_data_loss and start < log.log_start):
            _report_out_of_range(
                options.starting_option, start, log, latest[name], options, _log.warning
            )
    return {name: min(start, latest[name]) for name, start in starts.items()}


def _has_start(log: PartitionSnapshot, known: ResolvedRange) -> bool:
    """Return whether a partition still has the record at which a range was resolved to start."""
    is_same = bool(known.topic_id) and known.topic_id == log.topic_id
    is_same = is_same and known.seen_restore == log.last_restore
    return is_same and log.log_start <= known.start_offset < log.log_end


def _offsets(
    option: str,
    limit: OffsetRangeLimit,
    logs: Mapping[TopicPartition, PartitionSnapshot],
    latest: Mapping[TopicPartition, int],
    now: int,
) -> dict[TopicPartition, int]:
    """Return the offset that a limit means in each partition; a given one may be out of range."""
    limits = limits_by_partition(option, limit, logs)
    offsets: dict[TopicPartition, int] = {}
    for name, offset in find_limit_offsets(limits, logs, latest, now).items():
        if offset is None:
            raise OffsetOutOfRangeError(
                f"{name}: {option} is later than every record of the partition; give an earlier "
                "time, or startingOffsetsByTimestampStrategy=latest"
            )
        offsets[name] = offset
    return offsets


def limits_by_partition(
    option: str, limit: OffsetRangeLimit, names: Collection[TopicPartition]
) -> Mapping[TopicPartition, PartitionLimit]:
    """Return the limit of each partition of a read.

    Args:
        option: The option that sets the limit.
        limit: The limit.
        names: The partitions of the read.

    Raises:
        OptionError: The limit names other partitions.
    """
    if not isinstance(limit, LimitsByPartition):
        return dict.fromkeys(names, limit)
    missing = [str(name) for name in names if name not in limit.limits]
    unknown = [str(name) for name in limit.limits if name not in names]
    if missing or unknown:
        raise OptionError(
            f"{option}: the JSON must name every partition of the read and no other"
            + (f". Add {', '.join(missing)}" if missing else "")
            + (f". Remove {', '.join(unknown)}" if unknown else "")
        )
    return limit.limits


def _report_out_of_range(
    option: str,
    offset: int,
    log: PartitionSnapshot,
    latest: int,
    options: ReadOptions,
    warn: Callable[[str], None],
) -> None:
    """Raise an offset that the log does not have as an error, or warn of it."""
    text = (
        f"{log.name}: {option} {offset} is out of range, the log has offsets {log.log_start} to "
        f"{latest}"
    )
    if latest < log.log_end:
        text += " that are stable (an open transaction holds back the others)"
    if options.fail_on_data_loss:
        raise OffsetOutOfRangeError(
            f"{text}; give offsets in that range, earliest or latest, or failOnDataLoss=false to "
            "read what the log has"
        )
    warn(f"{text}; failOnDataLoss=false, so the read goes on with what the log has")
