"""Python values to an array in one call, and which rows do not fit if that fails.

The rule: rows that do not fit cost little more than those that do. They are looked for column by
column, and in a column by halving it. A reason names the field and its type, never a value, so that
reasons can be shown and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from klog.values.decoded_column import DecodedColumn, reason_array
from klog.values.nested_cast import cast_nested

Values: TypeAlias = Sequence[Any]
Reasons: TypeAlias = dict[int, str]
Fit: TypeAlias = Callable[[Any, pa.DataType], Any]
CONVERSION_ERRORS = (
    pa.ArrowException, ArithmeticError, RecursionError, TypeError, ValueError
)  # fmt: skip


def arrays_of_rows(
    rows: Values,
    reasons: Reasons,
    to_array: Callable[[Values], pa.Array],
    misfits: Callable[[Values], Reasons],
    rest_to_array: Callable[[Values], pa.Array] | None = None,
) -> DecodedColumn:
    """Convert Python values to an array.

    Args:
        rows: The values; None for a row with a reason.
        reasons: The reasons so far, by row. Those of rows that do not fit are added.
        to_array: The conversion, which raises one of `CONVERSION_ERRORS`.
        misfits: Returns the reasons of rows that do not fit, by row.
        rest_to_array: The conversion of rows that fit after that of all has failed; by default the
            same one.
    """
    try:
        values = to_array(rows)
    except CONVERSION_ERRORS:
        more = misfits(rows)
        reasons |= more
        rest = [None if place in more else row for place, row in enumerate(rows)]
        values = (rest_to_array or to_array)(rest)
    return DecodedColumn(values, reason_array(len(rows), reasons.items()))


def nested_misfits(
    values: Values, built: pa.DataType, final: pa.DataType, path: str, fit: Fit | None = None
) -> Reasons:
    """Return the reasons of values that cannot be converted, by row.

    Args:
        values: The values.
        built: The type that Arrow makes of them first.
        final: The type that this is cast to.
        path: What a reason begins with: the format, and the path of the values.
        fit: Changes a value of a column in which one cannot be converted; None to change none.
    """
    if pa.types.is_struct(final):
        return _struct_misfits(values, built, final, path, fit)
    owners: list[int] = []
    items: list[Any] = []
    if pa.types.is_list(final):
        for row, value in enumerate(values):
            items += value or ()
            owners += [row] * len(value or ())
        inner = nested_misfits(items, built.value_type, final.value_type, f"{path}[]", fit)
        return {owners[place]: reason for place, reason in inner.items()}
    if pa.types.is_map(final):
        for row, value in enumerate(values):
            items += (value or {}).items()
            owners += [row] * len(value or {})
        keys, entries = [name for name, _ in items], [each for _, each in items]
        inner = nested_misfits(keys, built.key_type, final.key_type, f"{path}{{}}")
        inner |= nested_misfits(entries, built.item_type, final.item_type, f"{path}{{}}", fit)
        return {owners[place]: reason for place, reason in inner.items()}

    def to_array(chunk: Values) -> pa.Array:
        try:
            return cast_nested(pa.array(chunk, built), final)
        except CONVERSION_ERRORS:
            if fit is None:
                raise
            return cast_nested(pa.array([fit(each, built) for each in chunk], built), final)

    return halved_misfits(values, to_array, f"{path.removesuffix(' ')}: does not fit {final}")


def _struct_misfits(
    values: Values, built: pa.DataType, final: pa.DataType, path: str, fit: Fit | None
) -> Reasons:
    owners = [row for row, value in enumerate(values) if value is not None]
    reasons: Reasons = {}
    for place, child in enumerate(final):
        members = [values[row].get(child.name) for row in owners]
        types = built.field(place).type, child.type
        inner = nested_misfits(members, *types, _joined(path, child.name), fit)
        reasons |= {owners[member]: reason for member, reason in inner.items()}
    return reasons


def halved_misfits(values: Values, to_array: Callable[[Values], pa.Array], reason: str) -> Reasons:
    """Return a reason for each value that cannot be converted, by row.

    Args:
        values: The values.
        to_array: The conversion, which raises one of `CONVERSION_ERRORS`.
        reason: The reason.
    """
    reasons: Reasons = {}
    ranges = [(0, len(values))]
    while ranges:
        start, end = ranges.pop()
        try:
            to_array(values[start:end])
        except CONVERSION_ERRORS:
            if end - start == 1:
                reasons[start] = reason
            else:
                middle = (start + end) // 2
                ranges += [(start, middle), (middle, end)]
    return reasons


def _joined(path: str, name: str) -> str:
    return f"{path}{name}" if path.endswith(" ") else f"{path}.{name}"
