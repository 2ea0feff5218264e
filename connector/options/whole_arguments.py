"""Whole numbers that Python callers pass: `int` and what stands for one, such as numpy's.

The rule: an argument of another type is refused before anything is written. A bool, a float or a
text would be written to the commit log unchanged.
"""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from klog.errors import OptionError


def whole_argument(name: str, value: SupportsIndex, minimum: int = 0) -> int:
    """Return an argument as an `int`.

    Args:
        name: The name of the argument, for the error.
        value: The value.
        minimum: The least number.

    Raises:
        OptionError: It is not a whole number, or too small.
    """
    try:
        number = index(value)
    except TypeError:
        number = minimum - 1
    if number < minimum or isinstance(value, bool):
        raise OptionError(f"{name}: must be a whole number from {minimum}, got {value!r}")
    return number
