"""How options write where a read starts or ends.

The rule: words, JSON and special timestamps are those of Spark's Kafka connector. klog adds the
last offsets of each partition (`-100`), an age (`now-10m`) and a time with its zone
(`2026-11-01T00:00:00Z`). A time after the last record is an error or the latest offset, as
`startingOffsetsByTimestampStrategy` says. An age means the latest offset then: that there is no
record so young is an answer too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from klog.connector.options.offset_range_limit import (
    EARLIEST,
    LATEST,
    LastOffsets,
    LimitsByPartition,
    MaxTimestampOffset,
    OffsetForAge,
    OffsetForTime,
    OffsetRangeLimit,
    PartitionLimit,
    SpecificOffset,
)
from klog.connector.options.option import ValueParser
from klog.connector.options.option_values import (
    MAX_INT,
    MAX_LONG,
    is_whole,
    json_object,
    parse_whole,
)
from klog.logformat.topic_partition import TopicPartition

_WORDS: dict[str, PartitionLimit] = {"earliest": EARLIEST, "latest": LATEST}
_SPECIAL_OFFSETS: dict[int, PartitionLimit] = {-2: EARLIEST, -1: LATEST}
"""`KafkaOffsetRangeLimit.EARLIEST` and `LATEST`."""
_SPECIAL_TIMES: dict[int, PartitionLimit] = {
    -1: LATEST,
    -2: EARLIEST,
    -3: MaxTimestampOffset(),
    -4: EARLIEST,  # The earliest local one: all of this log is local.
    -5: OffsetForTime(MAX_LONG),  # The last tiered one: nothing is tiered.
}
"""The timestamps of Kafka's `ListOffsetsRequest` that are not times; a broker knows none below."""
_COUNT = re.compile(r"-[0-9]{1,18}")
_AGE = re.compile(r"now(?:-([0-9]{1,12})(ms|s|m|h|d|w))?")
_UNIT_MS = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}.*")


def for_missing_times(limit: OffsetRangeLimit, *, latest_if_no_match: bool) -> OffsetRangeLimit:
    """Return a limit whose times say what happens if no record is late enough.

    Args:
        limit: The limit.
        latest_if_no_match: Whether it means the latest offset; otherwise it is an error.
    """
    if isinstance(limit, LimitsByPartition):
        limits = {
            name: _for_missing_time(by_partition, latest_if_no_match)
            for name, by_partition in limit.limits.items()
        }
        return LimitsByPartition(limits)
    return _for_missing_time(limit, latest_if_no_match)


def _for_missing_time(limit: PartitionLimit, latest_if_no_match: bool) -> PartitionLimit:
    if isinstance(limit, (OffsetForTime, MaxTimestampOffset)):
        return replace(limit, latest_if_no_match=latest_if_no_match)
    return limit


def _offset_range_limit(text: str) -> OffsetRangeLimit:
    text = text.strip()
    if text.startswith("{"):
        return _by_partition(text, "offsets", _offset)
    if text.lower().startswith("group:"):
        raise ValueError("positions of a group are not supported yet; give its offsets as JSON")
    word = _WORDS.get(text.lower())
    if word is not None:
        return word
    if _COUNT.fullmatch(text):
        return LastOffsets(-int(text))
    return _time(text)


def _timestamp(text: str) -> PartitionLimit:
    try:
        number = parse_whole(text.strip())
    except ValueError:
        return _time(text)
    return _timestamp_ms(number)


def _timestamps_by_partition(text: str) -> LimitsByPartition:
    return _by_partition(text.strip(), "timestamps", _timestamp_ms)


def _offset(offset: int) -> PartitionLimit:
    if offset > MAX_LONG:
        raise ValueError
    if offset < min(_SPECIAL_OFFSETS):
        raise ValueError("the special offsets are -1 and -2")
    return _SPECIAL_OFFSETS.get(offset, SpecificOffset(offset))


def _timestamp_ms(number: int) -> PartitionLimit:
    if number > MAX_LONG:
        raise ValueError
    if number < min(_SPECIAL_TIMES):
        raise ValueError("the special times are -1 to -5")
    return _SPECIAL_TIMES.get(number, OffsetForTime(number))


def _time(text: str) -> PartitionLimit:
    """Return the limit of an age or of a time with its zone."""
    age_ms = parse_age(text)
    return OffsetForTime.of(parse_datetime(text)) if age_ms is None else OffsetForAge(age_ms)


def parse_age(text: str) -> int | None:
    """Return the ms of an age such as `now-10m`; None if the text is not one.

    Args:
        text: The text.
    """
    match = _AGE.fullmatch(text.strip().lower())
    if match is None:
        return None
    number, unit = match.groups()
    return int(number) * _UNIT_MS[unit] if number else 0


def parse_datetime(text: str) -> datetime:
    """Return the time of a date with its zone.

    Args:
        text: The text.

    Raises:
        ValueError: The text is not such a date.
    """
    text = text.strip()
    if not _ISO_DATE.fullmatch(text):
        raise ValueError
    time = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
    if time.tzinfo is None:
        raise ValueError("it has no time zone, such as Z")
    return time


def _by_partition(
    text: str, kind: str, parse: Callable[[int], PartitionLimit]
) -> LimitsByPartition:
    limits: dict[TopicPartition, PartitionLimit] = {}
    for topic, by_partition in json_object(text).items():
        if not isinstance(by_partition, Mapping):
            raise ValueError(f"{topic} has no {kind} by partition")
        for number, value in by_partition.items():
            name = TopicPartition(topic, _partition(topic, number))
            if name in limits:
                raise ValueError(f"{name} is there twice")
            try:
                if not is_whole(value):
                    raise ValueError
                limits[name] = parse(int(value))
            except ValueError as exc:
                reason = f": {exc}" if str(exc) else ""
                raise ValueError(f"{topic}-{number} has {value!r}{reason}") from None
    return LimitsByPartition(limits)


def _partition(topic: str, number: str) -> int:
    """Return the number of a partition; `00` is one, as for Spark."""
    if not (number.isascii() and number.isdecimal()) or int(number) > MAX_INT:
        raise ValueError(f"{topic} has no partition {number}")
    return int(number)


OFFSET_RANGE_LIMIT = ValueParser(
    _offset_range_limit,
    '"earliest", "latest", JSON, a number of last offsets such as -100, an age such as now-10m, '
    "or a time such as 2026-11-01T00:00:00Z",
    '{"orders": {"0": 23}}',
)
TIMESTAMP = ValueParser(
    _timestamp,
    "a time in ms since 1970, an age such as now-10m, or a time such as 2026-11-01T00:00:00Z",
)
TIMESTAMPS_BY_PARTITION = ValueParser(
    _timestamps_by_partition,
    "JSON of times in ms since 1970 by topic and partition",
    '{"orders": {"0": 1793491200000}}',
)
