"""Times of records, from columns of any type that may have them.

The rule (docs/files.md): each row counts for itself, so one column may have several forms. Text is
ISO 8601, in UTC if it has no zone, or a whole number. A whole number is milliseconds since 1970. A
positive one below `MIN_MS` is refused: it is in the first years after 1970, and much more likely
seconds, or a date without hyphens. Null and empty text are no time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.errors import OptionError

MIN_MS = 100_000_000_000
"""1973-03-03. As seconds it is the year 5138."""
_TIME = pa.timestamp("us", "UTC")
_ISO = (
    r"^(?P<date>\d{4}-\d\d-\d\d)"
    r"(?:[T ](?P<clock>\d\d:\d\d)(?:(?P<second>:\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?$"
)
_NUMBER = r"^-?\d{1,18}$"


class WrongRowError(Exception):
    """A row of a batch is not a time; what reads the file knows which row of it that is."""

    def __init__(self, row: int, reason: str) -> None:
        """Take the row, from 0 in its batch, and why it is wrong."""
        super().__init__(reason)
        self.row = row


def times_of(column: pa.Array, name: str) -> pa.Array:
    """Return the times that a column has; null where it has none.

    Args:
        column: The column.
        name: Its name, for errors.

    Raises:
        OptionError: Its type is not one of times.
        WrongRowError: A row is not a time.
    """
    convert = _conversion(column.type)
    if convert is None:
        raise OptionError(
            f"--timestamp: column {name} has the type {column.type}. Choose a column with times, "
            "with text in ISO 8601, or with milliseconds since 1970"
        )
    try:
        return convert(column)
    except ValueError as exc:
        row = next(row for row in range(len(column)) if _is_wrong(convert, column.slice(row, 1)))
        raise WrongRowError(
            row,
            f"{name} is {_shown(column[row])}, which is not a time. Write ISO 8601, such as "
            "2026-11-28T14:00:00Z, or milliseconds since 1970 as a number of 12 digits or more",
        ) from exc


def _conversion(kind: pa.DataType) -> Callable[[pa.Array], pa.Array] | None:
    types = pa.types
    if types.is_integer(kind):
        return _from_numbers
    if types.is_string(kind) or types.is_large_string(kind):
        return _from_text
    if types.is_date(kind):
        return lambda column: column.cast(pa.timestamp("ms")).cast(_TIME)
    if types.is_timestamp(kind):
        return _from_times
    return (lambda column: column.cast(_TIME)) if types.is_null(kind) else None


def _from_times(column: pa.Array) -> pa.Array:
    """Return times in microseconds; nanoseconds are cut off, and a time without zone is in UTC."""
    options: Any = pc.CastOptions(_TIME, allow_time_truncate=True)
    return pc.cast(column, options=options)


def _from_numbers(column: pa.Array) -> pa.Array:
    numbers = column.cast(pa.int64())
    is_small = pc.and_(pc.greater(numbers, 0), pc.less(numbers, MIN_MS))
    if pc.any(is_small).as_py():
        raise ValueError("seconds, or a date without hyphens")
    return numbers.cast(pa.timestamp("ms", "UTC")).cast(_TIME)


def _from_text(column: pa.Array) -> pa.Array:
    text = column.cast(pa.string())
    is_number = pc.match_substring_regex(text, _NUMBER)
    numbers = _from_numbers(pc.if_else(is_number, text, pa.scalar(None, pa.string())))
    times = pc.coalesce(_from_iso(text), numbers)
    has_time = pc.fill_null(pc.not_equal(text, ""), False)
    if pc.any(pc.and_(has_time, pc.is_null(times))).as_py():
        raise ValueError("neither ISO 8601 nor a number")
    return times


def _from_iso(text: pa.Array) -> pa.Array:
    """Return times from ISO 8601; null for other text."""
    parts = pc.extract_regex(text, _ISO)
    date, clock, second, fraction, zone = (
        pc.struct_field(parts, name) for name in ("date", "clock", "second", "fraction", "zone")
    )
    microseconds = pc.utf8_slice_codeunits(pc.utf8_rpad(fraction, 6, "0"), 0, 6)
    time = pc.binary_join_element_wise(
        date,
        "T",
        _or_default(clock, "00:00"),
        _or_default(second, ":00"),
        ".",
        microseconds,
        _or_default(zone, "Z"),
        "",
    )
    return time.cast(_TIME)


def _or_default(part: pa.Array, default: str) -> pa.Array:
    return pc.if_else(pc.equal(part, ""), default, part)


def _is_wrong(convert: Callable[[pa.Array], pa.Array], row: pa.Array) -> bool:
    try:
        convert(row)
    except ValueError:
        return True
    return False


def _shown(value: pa.Scalar) -> str:
    """Return a value for an error; Python has no times and dates after the year 9999."""
    if pa.types.is_timestamp(value.type) or pa.types.is_date(value.type):
        bits = pa.int32() if pa.types.is_date32(value.type) else pa.int64()
        return str(value.cast(bits))
    return repr(value.as_py())
