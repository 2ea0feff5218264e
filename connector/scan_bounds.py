"""Where a scan of `klog.open` starts and ends, resolved to offsets of the partitions.

The rule: a bound is checked against the log as of one snapshot, and refused by the name of the
parameter that it was passed as. A bound that passes is a limit of a read, which cannot fail any
more. A time is the first offset at or after it, or the end if no record is that late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from klog.connector.limit_offsets import find_limit_offsets
from klog.connector.options.offset_range_limit import (
    EARLIEST,
    LATEST,
    LimitsByPartition,
    OffsetForTime,
    PartitionLimit,
    SpecificOffset,
)
from klog.connector.options.offset_spec import limit_of_datetime
from klog.connector.snapshot import PartitionSnapshot, Snapshot
from klog.connector.system_clock import now_ms
from klog.errors import OffsetOutOfRangeError, OptionError
from klog.logformat.topic_partition import TopicPartition

Bound: TypeAlias = int | Mapping[int, int] | datetime | None
"""Where a scan starts or ends, its end exclusive: an offset for every partition, one for each, a
time, or None for all records."""


def resolve_bounds(
    snapshot: Snapshot, topic: str, start: Bound, end: Bound
) -> tuple[LimitsByPartition, LimitsByPartition]:
    """Resolve the bounds of a scan to limits for each partition of a topic.

    Only partitions that have a bound are opened.

    Args:
        snapshot: The root; it has the topic.
        topic: The topic.
        start: The parameter `start` of the scan.
        end: The parameter `end` of the scan.

    Raises:
        OptionError: A bound is not an offset or a time, or names a partition that does not exist.
        OffsetOutOfRangeError: The log does not have an offset, or a start is after its end.
    """
    names = [TopicPartition(topic, partition) for partition in snapshot.topics[topic]]
    start_limits = _limits("start", start, names)
    end_limits = _limits("end", end, names)
    starting: dict[TopicPartition, PartitionLimit] = dict.fromkeys(names, EARLIEST)
    ending: dict[TopicPartition, PartitionLimit] = dict.fromkeys(names, LATEST)
    bounded = [name for name in names if name in start_limits or name in end_limits]
    logs, now = snapshot.open(bounded), now_ms()
    stable_offsets = {name: log.last_stable_offset() for name, log in logs.items()}
    starts = find_limit_offsets(start_limits, logs, stable_offsets, now)
    ends = find_limit_offsets(end_limits, logs, stable_offsets, now)
    for name, log in logs.items():
        stable_offset = stable_offsets[name]
        if name in start_limits:
            starting[name] = _checked("start", start_limits[name], starts[name], log, stable_offset)
        if name in end_limits:
            ending[name] = _checked("end", end_limits[name], ends[name], log, stable_offset)
        _check_order(name, starting[name], ending[name])
    return LimitsByPartition(starting), LimitsByPartition(ending)


def _limits(
    parameter: str, bound: Bound, names: Sequence[TopicPartition]
) -> dict[TopicPartition, SpecificOffset | OffsetForTime]:
    """Return the limit of each partition that has one."""
    if bound is None:
        return {}
    if not isinstance(bound, Mapping):
        return dict.fromkeys(names, _limit(parameter, bound))
    limits = {}
    known_names = frozenset(names)
    for partition, value in bound.items():
        name = TopicPartition(names[0].topic, partition)
        if name not in known_names:
            raise OptionError(
                f"{parameter}: {name.topic} has no partition {partition!r}, only "
                f"{names[0].partition} to {names[-1].partition}"
            )
        limits[name] = _limit(parameter, value)
    return limits


def _limit(parameter: str, value: object) -> SpecificOffset | OffsetForTime:
    if isinstance(value, datetime):
        return limit_of_datetime(parameter, value, latest_if_no_match=True)
    if isinstance(value, int) and not isinstance(value, bool):
        return SpecificOffset(value)
    raise OptionError(
        f"{parameter}: must be an offset, a dict of offsets by partition, or a datetime, got "
        f"{value!r}"
    )


def _checked(
    parameter: str,
    limit: SpecificOffset | OffsetForTime,
    offset: int | None,
    log: PartitionSnapshot,
    stable_offset: int,
) -> SpecificOffset:
    assert offset is not None, "a time after the last record means the end"
    if isinstance(limit, OffsetForTime) or log.log_start <= offset <= stable_offset:
        return SpecificOffset(offset)
    reason = ""
    if stable_offset < log.log_end:
        reason = " (an open transaction holds back the others)"
    raise OffsetOutOfRangeError(
        f"{log.name}: {parameter} {offset} is out of range; {parameter} can be from "
        f"{log.log_start} to {stable_offset}{reason}. Give one of those, a dict of offsets by "
        f"partition, or leave {parameter} out"
    )


def _check_order(name: TopicPartition, start: PartitionLimit, end: PartitionLimit) -> None:
    if (
        isinstance(start, SpecificOffset)
        and isinstance(end, SpecificOffset)
        and end.offset < start.offset
    ):
        raise OffsetOutOfRangeError(
            f"{name}: start {start.offset} is after end {end.offset}. Give an end that is not "
            "before the start"
        )
