"""Which offset of a partition is asked for: the words of kafka-get-offsets, and times.

The rule: the words and numbers are those of `--time` of kafka-get-offsets (Kafka's `OffsetSpec`),
and the times those of a read's `startingTimestamp`. A time after the last record has no offset.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from klog.connector.options.offset_range_limit import OffsetForTime, PartitionLimit
from klog.connector.options.offset_range_values import TIMESTAMP
from klog.connector.options.option import ValueParser
from klog.connector.options.python_arguments import zoned_time

OffsetSpec: TypeAlias = str | int | datetime
"""A word, a time in ms since 1970 or one of Kafka's special ones, or a time with its zone."""

_WORDS = {
    "latest": "-1",
    "earliest": "-2",
    "max-timestamp": "-3",
    "earliest-local": "-4",
    "latest-tiered": "-5",
}
"""By word the special timestamp of Kafka's `ListOffsetsRequest`."""


def _parse(text: str) -> PartitionLimit:
    word = text.strip().lower()
    return TIMESTAMP.parse(_WORDS.get(word, text))


OFFSET_SPEC = ValueParser(_parse, f"{', '.join(_WORDS)}, {TIMESTAMP.description}")


def parse_offset_spec(parameter: str, spec: OffsetSpec) -> PartitionLimit:
    """Return the limit that an offset spec means.

    Args:
        parameter: The parameter that has the spec, for errors.
        spec: The spec.

    Raises:
        OptionError: It is not one.
    """
    if isinstance(spec, datetime):
        return limit_of_datetime(parameter, spec)
    return OFFSET_SPEC.value(parameter, str(spec))


def limit_of_datetime(
    parameter: str, time: datetime, *, latest_if_no_match: bool = False
) -> OffsetForTime:
    """Return the limit of a Python time, which must have a zone.

    Args:
        parameter: The parameter that has the time, for errors.
        time: The time.
        latest_if_no_match: As of `OffsetForTime`.

    Raises:
        OptionError: It has no time zone.
    """
    time = zoned_time(parameter, time)
    return OffsetForTime.of(time, latest_if_no_match=latest_if_no_match)
