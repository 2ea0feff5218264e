"""Cast a column to the types of a schema, for encoders.

The rule: a value is encoded as what it is, or is an error, never cut off. Arrow alone would make
1.25 of 1.255, true of 5, the number 5 of the text "5" and infinity of 1e300. Errors name the field
and no value.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from klog.errors import SchemaError
from klog.values.nested_cast import with_child


def checked_cast(column: pa.Array, arrow_type: pa.DataType, path: str) -> pa.Array:
    """Return a column with other types; fields of structs may be missing or at another place.

    Args:
        column: The column.
        arrow_type: The type of the schema.
        path: What errors begin with: the format, and the path of the column.

    Raises:
        SchemaError: A field is not in the type, or a value has no equal one in it.
    """
    if column.type.equals(arrow_type):
        return column
    if pt.is_struct(column.type) and pt.is_struct(arrow_type):
        return _struct(column, arrow_type, path)
    if (pt.is_map(column.type) or _is_list(column.type)) and _is_sliced(column):
        column = column.take(pa.array(range(len(column)), pa.int64()))  # Children are not sliced.
    if pt.is_map(column.type) and pt.is_map(arrow_type):
        keys = checked_cast(column.keys, arrow_type.key_type, f"{path}{{}}")
        items = checked_cast(column.items, arrow_type.item_type, f"{path}{{}}")
        new_type = pa.map_(keys.type, items.type)
        fields = [new_type.key_field, new_type.item_field]
        return with_child(
            column, new_type, pa.StructArray.from_arrays([keys, items], fields=fields)
        )
    if _is_list(column.type) and _is_list(arrow_type):
        values = checked_cast(column.values, arrow_type.value_type, f"{path}[]")
        if pt.is_large_list(column.type):
            offsets = column.offsets.cast(pa.int32())
            return pa.ListArray.from_arrays(offsets, values, mask=column.is_null())
        return with_child(column, pa.list_(values.type), values)
    return _scalar(column, arrow_type, path)


def _struct(column: pa.Array, arrow_type: pa.DataType, path: str) -> pa.Array:
    types = {field.name: field.type for field in arrow_type}
    names = [field.name for field in column.type]
    for name in names:
        if name not in types:
            where = path if path.endswith(" ") else f"{path}: "
            raise SchemaError(f"{where}the schema has no field {name}. It has {', '.join(types)}")
    arrays = [
        checked_cast(child, types[name], f"{path}{'' if path.endswith(' ') else '.'}{name}")
        for name, child in zip(names, column.flatten(), strict=True)
    ]
    fields = [pa.field(name, each.type) for name, each in zip(names, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=column.is_null())


def _scalar(column: pa.Array, arrow_type: pa.DataType, path: str) -> pa.Array:
    where = path if path.endswith(" ") else f"{path}: "
    if not _is_same_kind(column.type, arrow_type):
        raise SchemaError(f"{where}{column.type} does not fit {arrow_type}. Cast the column")
    try:
        if pt.is_integer(column.type) and pt.is_decimal(arrow_type):
            column = column.cast(pa.decimal256(76, arrow_type.scale))
        result = column.cast(arrow_type)
    except pa.ArrowException:
        raise _misfit(where, column.type, arrow_type) from None
    if pt.is_float32(arrow_type) and pt.is_float64(column.type):
        is_lost = pc.and_(pc.is_inf(result), pc.invert(pc.is_inf(column)))
        if pc.any(is_lost).as_py():
            raise _misfit(where, column.type, arrow_type)
    return result


def _misfit(where: str, source: pa.DataType, target: pa.DataType) -> SchemaError:
    return SchemaError(
        f"{where}a value of {source} does not fit {target}. Correct the value, or use a schema "
        "with a larger type"
    )


def _is_same_kind(source: pa.DataType, target: pa.DataType) -> bool:
    if pt.is_null(source):
        return True
    if pt.is_timestamp(source):
        return bool(pt.is_timestamp(target) and (source.tz is None) == (target.tz is None))
    if pt.is_floating(source) and pt.is_decimal(target):
        return False
    if pt.is_decimal(source) and pt.is_floating(target):
        return False
    kinds = (_is_number, _is_bytes, pt.is_boolean, pt.is_date, pt.is_time, pt.is_duration)
    return any(is_kind(source) and is_kind(target) for is_kind in kinds)


def _is_number(arrow_type: pa.DataType) -> bool:
    kinds = (pt.is_integer, pt.is_floating, pt.is_decimal)
    return any(is_kind(arrow_type) for is_kind in kinds)


def _is_bytes(arrow_type: pa.DataType) -> bool:
    return any(
        is_kind(arrow_type)
        for is_kind in (
            pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary,
            pt.is_fixed_size_binary,
        )
    )  # fmt: skip


def _is_sliced(column: pa.Array) -> bool:
    """Return whether a column of lists or maps has children that are of none of its rows."""
    children = column.items if pt.is_map(column.type) else column.values
    last = column.offsets[-1].as_py() if len(column.offsets) else 0
    return bool(column.offset) or last != len(children)


def _is_list(arrow_type: pa.DataType) -> bool:
    return bool(pt.is_list(arrow_type) or pt.is_large_list(arrow_type))
