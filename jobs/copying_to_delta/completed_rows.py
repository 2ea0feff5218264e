"""The rows of a batch in the types of a table.

The rule: a column that has the table's type stays untouched. What a row lacks is null, also in the
middle of a struct: what a MERGE does not set keeps what an older record had there. Smaller numbers
become those of the table. A map keeps all its entries, also two of one key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

_ERROR_COLUMNS = ("key_error", "value_error")
"""Columns that are null in rows without them: they are about the record that was there before."""


def completed_rows(rows: DataFrame, table: StructType) -> DataFrame:
    """Return rows with the columns and fields of a table that they lack, in the table's types.

    Args:
        rows: The rows of a batch, which the table can hold (`row_types.changed_types`).
        table: The type of the rows of the table.

    Returns:
        The columns of the rows, in their order, then columns about errors that the table has.
    """
    from pyspark.sql import functions as sf

    known = {field.name.lower(): field.dataType for field in table.fields}
    columns = []
    for field in rows.schema.fields:
        column, name = rows[f"`{field.name}`"], field.name.lower()
        if name in known and not _is_same(field.dataType, known[name]):
            column = _converted(column, field.dataType, known[name]).alias(field.name)
        columns.append(column)
    names = {name.lower() for name in rows.columns}
    columns += [
        sf.lit(None).cast(field.dataType).alias(field.name)
        for field in table.fields
        if field.name.lower() in _ERROR_COLUMNS and field.name.lower() not in names
    ]
    return rows.select(*columns)


def _is_same(row_type: DataType, table_type: DataType) -> bool:
    """Return whether types are the same, whatever may be null."""
    return row_type.simpleString() == table_type.simpleString()


def _converted(column: Column, row_type: DataType, table_type: DataType) -> Column:
    from pyspark.sql import functions as sf
    from pyspark.sql.types import ArrayType, MapType, StructType

    if _is_same(row_type, table_type):
        return column
    if isinstance(row_type, StructType) and isinstance(table_type, StructType):
        return sf.when(column.isNotNull(), _struct(column, row_type, table_type))
    if isinstance(row_type, ArrayType) and isinstance(table_type, ArrayType):
        items, table_items = row_type.elementType, table_type.elementType
        return sf.transform(column, lambda item: _converted(item, items, table_items))
    if isinstance(row_type, MapType) and isinstance(table_type, MapType):
        values, table_values = row_type.valueType, table_type.valueType
        if not _is_same(row_type.keyType, table_type.keyType):
            column = column.cast(MapType(table_type.keyType, values))
        return sf.transform_values(column, lambda _, value: _converted(value, values, table_values))
    return column.cast(table_type)


def _struct(column: Column, row_type: StructType, table_type: StructType) -> Column:
    """Return a struct with the fields of the table, then those that only the rows have."""
    from pyspark.sql import functions as sf

    fields = {field.name.lower(): field for field in row_type.fields}
    members = []
    for known in table_type.fields:
        field = fields.pop(known.name.lower(), None)
        if field is None:
            member = sf.lit(None).cast(known.dataType)
        else:
            member = _converted(column.getField(field.name), field.dataType, known.dataType)
        members.append(member.alias(known.name))
    members += [column.getField(field.name).alias(field.name) for field in fields.values()]
    return sf.struct(*members)
