"""Cast arrays at any depth, without the values that null structs hide.

Arrow's own cast of a struct also casts the children of null rows, in which anything may be, such as
an empty text that is not a date.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_DAY = {"us": 86_400_000_000, "ns": 86_400_000_000_000}
"""The length of a day, by the unit of time64."""


def cast_nested(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Return an array with the same fields of other types.

    Args:
        array: The array, not a slice of one.
        arrow_type: A type of the same shape.

    Raises:
        pyarrow.ArrowException: A value cannot be cast without a loss.
    """
    if array.type == arrow_type:
        return array
    if pa.types.is_struct(arrow_type):
        children = [
            cast_nested(child, field.type)
            for child, field in zip(array.flatten(), arrow_type, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=array.is_null())
    if pa.types.is_map(arrow_type):
        items = cast_nested(array.items, arrow_type.item_type)
        entries = pa.StructArray.from_arrays(
            [array.keys, items], fields=[arrow_type.key_field, arrow_type.item_field]
        )
        return with_child(array, arrow_type, entries)
    if pa.types.is_list(arrow_type):
        return with_child(array, arrow_type, cast_nested(array.values, arrow_type.value_type))
    if pa.types.is_time64(arrow_type):
        return _times(array, arrow_type)
    return array.cast(arrow_type)


def _times(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Return times. Arrow takes numbers that are before midnight or after the day."""
    times = array.cast(arrow_type)
    numbers = times.cast(pa.int64())
    if pc.any(
        pc.or_(pc.less(numbers, 0), pc.greater_equal(numbers, _DAY[arrow_type.unit]))
    ).as_py():
        raise pa.ArrowInvalid("a time is not one of a day")
    return times


def with_child(array: pa.Array, arrow_type: pa.DataType, child: pa.Array) -> pa.Array:
    """Return a list or map with other children.

    Args:
        array: The list or map, not a slice of one.
        arrow_type: Its new type.
        child: The children.
    """
    return pa.Array.from_buffers(arrow_type, len(array), array.buffers()[:2], children=[child])
