"""Which version of a topic a read asks for: by its number, or as of a time.

The rule: a time means the last version that was committed at or before it. It is written as the
other times of a read are: ms since 1970, an age, or a date with its zone. A part of a millisecond
does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

from klog.connector.options.offset_range_values import parse_age, parse_datetime
from klog.connector.options.option import ValueParser
from klog.connector.options.option_values import MAX_LONG, whole_number
from klog.connector.options.python_arguments import zoned_time
from klog.errors import OptionError

VERSION_OPTION, TIME_OPTION = "asOfVersion", "asOfTimestamp"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class AsOfVersion:
    """The topic as its commit of this version left it; `option` is what errors name."""

    version: int
    option: str = VERSION_OPTION


@dataclass(frozen=True, slots=True)
class AsOfTime:
    """The topic as of the last commit at or before a time, in ms since 1970."""

    timestamp_ms: int
    option: str = TIME_OPTION


@dataclass(frozen=True, slots=True)
class AsOfAge:
    """The same for the time that is so many ms before the clock of the reader."""

    age_ms: int
    option: str = TIME_OPTION

    def at(self, now_ms: int) -> AsOfTime:
        """Return the time.

        Args:
            now_ms: The time of the clock, in ms since 1970.
        """
        return AsOfTime(now_ms - self.age_ms, self.option)


AsOf: TypeAlias = AsOfVersion | AsOfTime | AsOfAge


def parse_as_of(
    version: int | str | None,
    time: datetime | int | str | None,
    options: tuple[str, str] = (VERSION_OPTION, TIME_OPTION),
) -> AsOf | None:
    """Return which version a read asks for; None if it reads what the topic has now.

    Args:
        version: The number of the version, if it was set.
        time: The time, if it was set.
        options: The names of both, for errors.

    Raises:
        OptionError: Both are set, or one is not a version or not a time.
    """
    version_option, time_option = options
    if version is not None and time is not None:
        raise OptionError(f"{version_option}, {time_option}: must set at most one, got both")
    if version is not None:
        return AsOfVersion(_version_of(version_option, version), version_option)
    if time is None:
        return None
    if isinstance(time, datetime):
        return AsOfTime(_floor_ms(zoned_time(time_option, time)), time_option)
    as_of = AS_OF_TIMESTAMP.value(time_option, str(time))
    if isinstance(as_of, AsOfAge):
        return AsOfAge(as_of.age_ms, time_option)
    return AsOfTime(as_of.timestamp_ms, time_option)


def _version_of(option: str, version: int | str) -> int:
    return AS_OF_VERSION.value(option, str(version))


def _floor_ms(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(milliseconds=1)


def _parse_time(text: str) -> AsOfTime | AsOfAge:
    try:
        number = int(text.strip())
    except ValueError:
        age_ms = parse_age(text)
        return AsOfTime(_floor_ms(parse_datetime(text))) if age_ms is None else AsOfAge(age_ms)
    if not 0 <= number <= MAX_LONG:
        raise ValueError
    return AsOfTime(number)


AS_OF_VERSION = whole_number(0)
AS_OF_TIMESTAMP: ValueParser[AsOfTime | AsOfAge] = ValueParser(
    _parse_time,
    "a time in ms since 1970, an age such as now-1d, or a time such as 2026-11-01T00:00:00Z",
)
