"""Whether a table can hold the rows of a batch.

The rule: a row is stored unchanged. A column may be larger than its values in the rows, such as
`bigint` for `int`. Any other difference is an error, because Delta casts in silence in a MERGE and
in a write to a catalog's table: 1.9 is 1 in a column of integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Digits of each integer, from the smallest to the largest."""
_EXACT_INTEGERS = {"float": ("tinyint", "smallint"), "double": ("tinyint", "smallint", "int")}


def missing_fields(row_type: DataType, table_type: DataType) -> Iterator[str]:
    """Yield the paths of columns and fields that a table does not have.

    Args:
        row_type: The type of the rows of a batch.
        table_type: The type of those of the table.
    """
    return (path for path, _, known in _parts(row_type, table_type) if known is None)


def changed_types(row_type: DataType, table_type: DataType) -> Iterator[str]:
    """Yield a few words about each part of a row whose values the table's type may not hold.

    Args:
        row_type: The type of the rows of a batch.
        table_type: The type of those of the table.
    """
    for path, part, known in _parts(row_type, table_type):
        if known is not None and not _holds(known, part):
            yield f"{path} is {known.simpleString()}, and {part.simpleString()} in the rows"


def unsupported_types(row_type: DataType) -> Iterator[str]:
    """Yield a few words about each part of a row for which Delta has no type.

    Args:
        row_type: The type of the rows of a batch.
    """
    from pyspark.sql import types as t

    unsupported = (
        t.CalendarIntervalType, t.DayTimeIntervalType, t.YearMonthIntervalType, t.TimeType,
    )  # fmt: skip
    for path, part, _ in _parts(row_type, row_type):
        if isinstance(part, unsupported):
            yield f"{path} is {part.simpleString()}"


def _parts(
    row_type: DataType, table_type: DataType, path: str = ""
) -> Iterator[tuple[str, DataType, DataType | None]]:
    """Yield the parts of a row that are not nested in both types: path, type, type in the table.

    The last is None for a field that the table does not have. Delta compares names without case.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(row_type, StructType) and isinstance(table_type, StructType):
        types = {field.name.lower(): field.dataType for field in table_type.fields}
        prefix = f"{path}." if path else ""
        for field in row_type.fields:
            known = types.get(field.name.lower())
            if known is None:
                yield prefix + field.name, field.dataType, None
            else:
                yield from _parts(field.dataType, known, prefix + field.name)
    elif isinstance(row_type, ArrayType) and isinstance(table_type, ArrayType):
        yield from _parts(row_type.elementType, table_type.elementType, f"{path}.element")
    elif isinstance(row_type, MapType) and isinstance(table_type, MapType):
        yield from _parts(row_type.keyType, table_type.keyType, f"{path}.key")
        yield from _parts(row_type.valueType, table_type.valueType, f"{path}.value")
    else:
        yield path, row_type, table_type


def _holds(table_type: DataType, row_type: DataType) -> bool:
    """Return whether a type has each value of another one, neither of them nested."""
    from pyspark.sql.types import DecimalType, NullType

    if isinstance(row_type, NullType) or (
        type(table_type) is type(row_type) and not isinstance(row_type, DecimalType)
    ):
        return True
    row_name, table_name = row_type.simpleString(), table_type.simpleString()
    if isinstance(table_type, DecimalType):
        if isinstance(row_type, DecimalType):
            whole_digits, scale = row_type.precision - row_type.scale, row_type.scale
        elif row_name in _DIGITS:
            whole_digits, scale = _DIGITS[row_name], 0
        else:
            return False
        return scale <= table_type.scale and whole_digits <= table_type.precision - table_type.scale
    if table_name in _DIGITS and row_name in _DIGITS:
        return _DIGITS[row_name] <= _DIGITS[table_name]
    return (row_name, table_name) == ("float", "double") or row_name in _EXACT_INTEGERS.get(
        table_name, ()
    )
