"""Where `klog consume` starts and stops: the values of `-o` and `--offset`, resolved to offsets.

`earliest` and `latest` are the console consumer's; `beginning`, `end`, `-N`, `s@` and `e@` are
kcat's. There are no records before the log start or after the last record, so a time later than
every record means the end. Only a plain offset must be in the log. The positions are the limits of
a read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from klog.connector.limit_offsets import find_limit_offsets
from klog.connector.options.offset_range_limit import (
    EARLIEST,
    LATEST,
    LastOffsets,
    OffsetForTime,
    PartitionLimit,
    SpecificOffset,
)
from klog.connector.options.option_values import MAX_LONG
from klog.connector.snapshot import Logs, PartitionSnapshot
from klog.connector.system_clock import now_ms
from klog.errors import OffsetOutOfRangeError
from klog.logformat.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class PositionArgument:
    """The value of one `-o`: a position, and whether the read ends there."""

    position: PartitionLimit
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class ConsumeRange:
    """Where the read of each partition starts, and where it ends, exclusive."""

    start: PartitionLimit = EARLIEST
    end: PartitionLimit = LATEST


_WORDS: dict[str, PartitionLimit] = {
    "earliest": EARLIEST,
    "beginning": EARLIEST,
    "latest": LATEST,
    "end": LATEST,
}
_NUMBER = re.compile(r"(-|)([0-9]{1,19})|([se]@)(-?[0-9]{1,19})")


def parse_position(text: str) -> PositionArgument:
    """Parse the value of one `-o`. Raises `ValueError`."""
    word = _WORDS.get(text.lower())
    if word is not None:
        return PositionArgument(word)
    match = _NUMBER.fullmatch(text)
    if match is None or abs(int(match[2] or match[4])) > MAX_LONG:
        raise ValueError(
            "must be one of earliest, beginning, latest, end, N, -N, s@MILLISECONDS, "
            f"e@MILLISECONDS, got {text!r}"
        )
    sign, number, edge, time = match.groups()
    if edge:
        limit = OffsetForTime(int(time), latest_if_no_match=True)
        return PositionArgument(limit, is_end=edge == "e@")
    return PositionArgument(LastOffsets(int(number)) if sign else SpecificOffset(int(number)))


def consume_range(arguments: Iterable[PositionArgument]) -> ConsumeRange:
    """Return the start and the end; by default earliest and latest. Raises `ValueError`."""
    arguments = list(arguments)
    starts = [argument.position for argument in arguments if not argument.is_end]
    ends = [argument.position for argument in arguments if argument.is_end]
    if len(starts) > 1 or len(ends) > 1:
        raise ValueError("--offset: give at most one start and one end (e@...)")
    return ConsumeRange((starts or [EARLIEST])[0], (ends or [LATEST])[0])


def offsets_at(
    position: PartitionLimit, logs: Logs, latest: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Resolve a position to an offset of each partition.

    `latest` is where the reader's isolation level stops. Raises `OffsetOutOfRangeError` for an
    offset that a log does not hold.
    """
    limits = dict.fromkeys(logs, position)
    offsets = {}
    for name, offset in find_limit_offsets(limits, logs, latest, now_ms()).items():
        log = logs[name]
        if offset is None:
            offset = latest[name]
        elif isinstance(position, SpecificOffset) and not log.log_start <= offset <= log.log_end:
            raise OffsetOutOfRangeError(
                f"{name}: offset {offset} is out of range; the log has {log.log_start} to "
                f"{log.log_end}. Give one --partition, or start at -o beginning"
            )
        offsets[name] = offset
    return offsets


def offset_at(position: PartitionLimit, log: PartitionSnapshot, latest: int) -> int:
    """Resolve a position to an offset of one partition; see `offsets_at`."""
    return offsets_at(position, {log.name: log}, {log.name: latest})[log.name]
