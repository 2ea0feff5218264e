"""Arrays as Python values for people and encoders.

A map is a dict, which pyarrow itself can return only from 20 on. A float is the shortest number
that is the same one in 32 bits, for those who read it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from klog.values.nested_cast import cast_nested


def python_values(array: pa.Array) -> list[Any]:
    """Return the values of an array.

    Args:
        array: The array. Of a key that a map has twice, the last value is taken.
    """
    values: list[Any] = array.to_pylist()
    return [with_dicts(value, array.type) for value in values] if _has_map(array.type) else values


def with_dicts(value: Any, arrow_type: pa.DataType) -> Any:
    """Return a value of `to_pylist` or `as_py` with dicts in the place of lists of pairs.

    Args:
        value: The value.
        arrow_type: Its type.
    """
    if value is None or not _has_map(arrow_type):
        return value
    if pa.types.is_map(arrow_type):
        return {name: with_dicts(each, arrow_type.item_type) for name, each in value}
    if pa.types.is_struct(arrow_type):
        return {field.name: with_dicts(value[field.name], field.type) for field in arrow_type}
    return [with_dicts(each, arrow_type.value_type) for each in value]


def with_shortest_floats(array: pa.Array) -> pa.Array:
    """Return an array whose floats of 32 bits are the doubles with their shortest texts.

    Args:
        array: The array, not a slice of one.
    """
    texts = _with_floats(array.type, pa.string())
    if texts == array.type:
        return array
    return cast_nested(cast_nested(array, texts), _with_floats(array.type, pa.float64()))


def _with_floats(arrow_type: pa.DataType, new_type: pa.DataType) -> pa.DataType:
    """Return a type with another one in the place of float32."""
    if pa.types.is_float32(arrow_type):
        return new_type
    if pa.types.is_struct(arrow_type):
        return pa.struct([(each.name, _with_floats(each.type, new_type)) for each in arrow_type])
    if pa.types.is_map(arrow_type):
        return pa.map_(arrow_type.key_type, _with_floats(arrow_type.item_type, new_type))
    if pa.types.is_list(arrow_type):
        return pa.list_(_with_floats(arrow_type.value_type, new_type))
    return arrow_type


def _has_map(arrow_type: pa.DataType) -> bool:
    children = (arrow_type.field(index).type for index in range(arrow_type.num_fields))
    return pa.types.is_map(arrow_type) or any(map(_has_map, children))
