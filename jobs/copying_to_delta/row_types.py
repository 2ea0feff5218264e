"""Whether a table can hold the rows of a batch, and in which type they are written.

The rule: a row is stored unchanged. A table's type may be larger than that of the rows, such as
`bigint` for `int`. Any other difference is an error, because Delta casts in silence in a MERGE and
in a write to a catalog's table: 1.9 is 1 in a column of integers. What a row does not have is null, also in
the middle of a struct: what a MERGE does not set keeps what an older record had there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_OWN_COLUMNS = ("key_error", "value_error")
"""Columns that are null in rows without them: they are about the record that was there before."""
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Digits of each integer, from the smallest to the largest."""
_EXACT_INTEGERS = {"float": ("tinyint", "smallint"), "double": ("tinyint", "smallint", "int")}


def missing_fields(rows: DataType, table: DataType, path: str = "") -> Iterator[str]:
    """Yield the paths of fields that a table does not have; Delta compares names without case.

    Args:
        rows: The type of the rows of a batch.
        table: The type of those of the table.
        path: Where this part is in the row.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(rows, StructType) and isinstance(table, StructType):
        types, prefix = _types(table), f"{path}." if path else ""
        for field in rows.fields:
            known = types.get(field.name.lower())
            if known is None:
                yield prefix + field.name
            else:
                yield from missing_fields(field.dataType, known, prefix + field.name)
    elif isinstance(rows, ArrayType) and isinstance(table, ArrayType):
        yield from missing_fields(rows.elementType, table.elementType, f"{path}.element")
    elif isinstance(rows, MapType) and isinstance(table, MapType):
        yield from missing_fields(rows.keyType, table.keyType, f"{path}.key")
        yield from missing_fields(rows.valueType, table.valueType, f"{path}.value")


def changed_types(rows: DataType, table: DataType, path: str = "") -> Iterator[str]:
    """Yield a few words about each part of a row whose values the table's type may not hold.

    Args:
        rows: The type of the rows of a batch.
        table: The type of those of the table.
        path: Where this part is in the row.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(rows, StructType) and isinstance(table, StructType):
        types, prefix = _types(table), f"{path}." if path else ""
        for field in rows.fields:
            known = types.get(field.name.lower())
            if known is not None:
                yield from changed_types(field.dataType, known, prefix + field.name)
    elif isinstance(rows, ArrayType) and isinstance(table, ArrayType):
        yield from changed_types(rows.elementType, table.elementType, f"{path}.element")
    elif isinstance(rows, MapType) and isinstance(table, MapType):
        yield from changed_types(rows.keyType, table.keyType, f"{path}.key")
        yield from changed_types(rows.valueType, table.valueType, f"{path}.value")
    elif not _holds(table, rows):
        yield f"{path} is {table.simpleString()}, and {rows.simpleString()} in the rows"


def unsupported_types(rows: DataType, path: str = "") -> Iterator[str]:
    """Yield a few words about each part of a row for which Delta has no type.

    Args:
        rows: The type of the rows of a batch.
        path: Where this part is in the row.
    """
    from pyspark.sql.types import (
        ArrayType,
        CalendarIntervalType,
        DayTimeIntervalType,
        MapType,
        StructType,
        TimeType,
        YearMonthIntervalType,
    )  # fmt: skip

    if isinstance(rows, StructType):
        prefix = f"{path}." if path else ""
        for field in rows.fields:
            yield from unsupported_types(field.dataType, prefix + field.name)
    elif isinstance(rows, ArrayType):
        yield from unsupported_types(rows.elementType, f"{path}.element")
    elif isinstance(rows, MapType):
        yield from unsupported_types(rows.keyType, f"{path}.key")
        yield from unsupported_types(rows.valueType, f"{path}.value")
    elif isinstance(
        rows, CalendarIntervalType | DayTimeIntervalType | YearMonthIntervalType | TimeType
    ):
        yield f"{path} is {rows.simpleString()}"


def complete_type(rows: StructType, table: StructType) -> StructType:
    """Return the type in which a batch is written: that of the table, for what rows can have.

    Args:
        rows: The type of the rows of a batch, which the table can hold.
        table: The type of those of the table.

    Returns:
        The columns of the rows, in their order, and columns about errors that the table has.
    """
    from pyspark.sql.types import StructField, StructType

    names = {field.name.lower() for field in rows.fields}
    fields = [
        StructField(field.name, _complete(field.dataType, _types(table).get(field.name.lower())))
        for field in rows.fields
    ]
    fields += [
        StructField(field.name, field.dataType)
        for field in table.fields
        if field.name.lower() in _OWN_COLUMNS and field.name.lower() not in names
    ]
    return StructType(fields)


def _complete(rows: DataType, table: DataType | None) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if table is None:
        return rows
    if isinstance(rows, StructType) and isinstance(table, StructType):
        types = _types(rows)
        names = {field.name.lower() for field in table.fields}
        fields = [
            StructField(
                field.name, _complete(types.get(field.name.lower(), field.dataType), field.dataType)
            )
            for field in table.fields
        ]
        added = [field for field in rows.fields if field.name.lower() not in names]
        return StructType(fields + [StructField(field.name, field.dataType) for field in added])
    if isinstance(rows, ArrayType) and isinstance(table, ArrayType):
        return ArrayType(_complete(rows.elementType, table.elementType))
    if isinstance(rows, MapType) and isinstance(table, MapType):
        return MapType(
            _complete(rows.keyType, table.keyType), _complete(rows.valueType, table.valueType)
        )
    return table


def _types(struct: StructType) -> dict[str, DataType]:
    return {field.name.lower(): field.dataType for field in struct.fields}


def _holds(table: DataType, rows: DataType) -> bool:
    """Return whether a type has each value of another one, neither of them nested."""
    from pyspark.sql.types import DecimalType, NullType

    if isinstance(rows, NullType) or (
        type(table) is type(rows) and not isinstance(rows, DecimalType)
    ):
        return True
    row_type, table_type = rows.simpleString(), table.simpleString()
    if isinstance(table, DecimalType):
        if isinstance(rows, DecimalType):
            whole_digits, scale = rows.precision - rows.scale, rows.scale
        elif row_type in _DIGITS:
            whole_digits, scale = _DIGITS[row_type], 0
        else:
            return False
        return scale <= table.scale and whole_digits <= table.precision - table.scale
    if table_type in _DIGITS and row_type in _DIGITS:
        return _DIGITS[row_type] <= _DIGITS[table_type]
    return (row_type, table_type) == ("float", "double") or row_type in _EXACT_INTEGERS.get(
        table_type, ()
    )
