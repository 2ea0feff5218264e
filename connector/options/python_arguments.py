"""Whole numbers and times that Python callers pass.

The rule: an argument of another type is refused before anything is written. A bool, a float or a
text would be written to the commit log unchanged. A time without a zone means another one on each
machine, so it is refused too.
"""

from __future__ import annotations

from datetime import datetime
from operator import index
from typing import SupportsIndex

from klog.connector.options.option_values import MAX_LONG
from klog.errors import OptionError


def whole_argument(name: str, value: SupportsIndex, minimum: int = 0) -> int:
    """Return a whole number, also one of numpy, as an `int`.

    Args:
        name: The name of the argument, for the error.
        value: The value.
        minimum: The least number.

    Raises:
        OptionError: It is not a whole number, too small, or no int64.
    """
    try:
        number = index(value)
    except TypeError:
        number = minimum - 1
    if not minimum <= number <= MAX_LONG or isinstance(value, bool):
        maximum = " to 2^63 - 1" if number > MAX_LONG else ""
        raise OptionError(f"{name}: must be a whole number from {minimum}{maximum}, got {value!r}")
    return number


def zoned_time(name: str, time: datetime) -> datetime:
    """Return a time that has a zone.

    Args:
        name: The name of the argument, for the error.
        time: The time.

    Raises:
        OptionError: It has none.
    """
    if time.tzinfo is None:
        raise OptionError(f"{name}: {time} has no time zone. Give it one, such as timezone.utc")
    return time
