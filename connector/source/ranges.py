"""Offset ranges of a batch read: options to `[start, end)` for each partition.

The rules are those of Spark's Kafka connector, as it was seen to behave (docs/migrating.md):
timestamps win over offsets, JSON names every partition of the read and no other, an end is
exclusive, and what lies outside the log is an error unless `failOnDataLoss` is false.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from klog.connector.log.partition import PartitionLog, TopicPartition
from klog.connector.options import EARLIEST, LATEST, Offsets, ReadOptions
from klog.errors import OffsetOutOfRangeError, OptionError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets `[start, end)` of one partition, read from `log`.

    `committed_only` leaves out what was aborted; the caller ends at the last stable offset then.
    """

    log: PartitionLog
    start: int
    end: int
    committed_only: bool


def batch_ranges(
    logs: Mapping[TopicPartition, PartitionLog], options: ReadOptions
) -> list[OffsetRange]:
    """Resolve a batch's ranges; empty ones are left out.

    Raises `OptionError` for offsets that name other partitions than the read's,
    `OffsetOutOfRangeError` for offsets that the log does not hold.
    """
    latest = latest_offsets(logs, options)
    ends = _ends(logs, latest, options)
    starts = starting_offsets(logs, latest, options)
    ranges = []
    for name, log in logs.items():
        start, end = starts[name], min(ends[name], latest[name])
        if start > end and not options.fail_on_data_loss and ends[name] >= start:
            continue
        if start > end:
            raise OffsetOutOfRangeError(
                f"{name}: startingOffsets {start} is behind the end of the read at {end}; "
                f"the log holds offsets {log.log_start} to {log.log_end}"
            )
        if start < end:
            ranges.append(OffsetRange(log, start, end, options.committed_only))
    return ranges


def latest_offsets(
    logs: Mapping[TopicPartition, PartitionLog], options: ReadOptions
) -> dict[TopicPartition, int]:
    """Give where a reader of this isolation level stops: last stable offset or log end."""
    if not options.committed_only:
        return {name: log.log_end for name, log in logs.items()}
    return {name: log.last_stable_offset() for name, log in logs.items()}


def starting_offsets(
    logs: Mapping[TopicPartition, PartitionLog],
    latest: Mapping[TopicPartition, int],
    options: ReadOptions,
) -> dict[TopicPartition, int]:
    """Resolve where each partition starts. Raises as `batch_ranges`.

    Where `failOnDataLoss` is false, a start behind the log end stays: the caller judges it.
    """
    if options.starting_timestamp_ms is not None:
        return _starts_by_time(logs, latest, options)
    given = _by_partition("startingOffsets", options.starting, logs)
    starts = {}
    for name, log in logs.items():
        start = given[name]
        if start == EARLIEST:
            start = log.log_start
        elif start == LATEST:
            start = latest[name]
        elif start < log.log_start or (start > log.log_end and options.fail_on_data_loss):
            start = _out_of_range("startingOffsets", name, start, log, options)
        starts[name] = start
    return starts


def _starts_by_time(
    logs: Mapping[TopicPartition, PartitionLog],
    latest: Mapping[TopicPartition, int],
    options: ReadOptions,
) -> dict[TopicPartition, int]:
    timestamp_ms = options.starting_timestamp_ms or 0
    starts = {}
    for name, log in logs.items():
        start = log.offset_for_time(timestamp_ms, latest[name])
        if start is None and not options.latest_if_no_match:
            raise OffsetOutOfRangeError(
                f"{name}: startingTimestamp {timestamp_ms} is later than every record; give an "
                "earlier time, or startingOffsetsByTimestampStrategy=latest"
            )
        starts[name] = latest[name] if start is None else start
    return starts


def _ends(
    logs: Mapping[TopicPartition, PartitionLog],
    latest: Mapping[TopicPartition, int],
    options: ReadOptions,
) -> dict[TopicPartition, int]:
    if options.ending_timestamp_ms is not None:
        found = {
            name: log.offset_for_time(options.ending_timestamp_ms, latest[name])
            for name, log in logs.items()
        }
        return {name: latest[name] if end is None else end for name, end in found.items()}
    given = _by_partition("endingOffsets", options.ending, logs)
    ends = {}
    for name, log in logs.items():
        end = given[name]
        if end == LATEST:
            end = latest[name]
        elif end < log.log_start or (end > latest[name] and options.fail_on_data_loss):
            end = _out_of_range("endingOffsets", name, end, log, options, latest[name])
        ends[name] = end
    return ends


def _by_partition(
    option: str, given: int | Offsets, logs: Mapping[TopicPartition, PartitionLog]
) -> dict[TopicPartition, int]:
    if isinstance(given, int):
        return dict.fromkeys(logs, given)
    named = {TopicPartition(*key): offset for key, offset in given.items()}
    missing = [str(name) for name in logs if name not in named]
    strange = [str(name) for name in named if name not in logs]
    if missing or strange:
        raise OptionError(
            f"{option}: the JSON must name every partition of the read and no other"
            + (f"; missing: {', '.join(missing)}" if missing else "")
            + (f"; not in the read: {', '.join(strange)}" if strange else "")
        )
    return named


def _out_of_range(
    option: str,
    name: TopicPartition,
    offset: int,
    log: PartitionLog,
    options: ReadOptions,
    latest: int | None = None,
) -> int:
    end = log.log_end if latest is None else latest
    said = f"{name}: {option} {offset} is out of range, the log holds {log.log_start} to {end}"
    if latest is not None and latest < log.log_end:
        said += " that are stable (an open transaction holds back the rest)"
    if options.fail_on_data_loss:
        raise OffsetOutOfRangeError(
            f"{said}; give offsets inside it, earliest or latest, or failOnDataLoss=false to read "
            "what there is"
        )
    _log.warning("%s; failOnDataLoss=false, so reading what there is", said)
    return min(max(offset, log.log_start), end)
