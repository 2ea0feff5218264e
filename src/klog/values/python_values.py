"""Arrays as Python values in which a map is a dict; pyarrow itself can do so only from 20 on."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


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


def _has_map(arrow_type: pa.DataType) -> bool:
    children = (arrow_type.field(index).type for index in range(arrow_type.num_fields))
    return pa.types.is_map(arrow_type) or any(map(_has_map, children))
