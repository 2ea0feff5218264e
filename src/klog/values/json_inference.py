"""The type of JSON values, inferred from a sample of them.

The rules are those of Spark's JSON source: fields are sorted by name, whole and other numbers are
double, other conflicts are text. Unlike there, what is null or empty in all of the sample is left
out: it has no type yet, and is a new field when it has one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from klog.errors import SchemaError
from klog.values.type_limits import MAX_DEPTH

MAX_FIELDS = 2000
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1


def inferred_type(values: Iterable[Any]) -> pa.DataType:
    """Return a type that fits all values.

    Args:
        values: JSON values as Python's `json` decodes them.

    Raises:
        SchemaError: There is no value, or there are more than `MAX_FIELDS` fields.
    """
    merged = pa.null()
    for value in values:
        try:
            merged = _merge(merged, _type_of(value, 0))
        except (RecursionError, UnicodeEncodeError):
            continue  # Too deep, or a name that is not text: no column can have the value.
        if _count_fields(merged) > MAX_FIELDS:
            raise SchemaError(
                f"json: the sample has more than {MAX_FIELDS} fields. Names may be data: give a "
                "schema with a map"
            )
    known = _without_nulls(merged)
    if known is None:
        raise SchemaError("json: the sample has no value to infer a schema from. Give a schema")
    return known


def _type_of(value: Any, depth: int) -> pa.DataType:
    if depth > MAX_DEPTH:
        raise RecursionError
    if value is None:
        return pa.null()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if _MIN_LONG <= value <= _MAX_LONG else pa.float64()
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, list):
        items = pa.null()
        for each in value:
            items = _merge(items, _type_of(each, depth + 1))
        return pa.list_(items)
    return pa.struct([(name, _type_of(value[name], depth + 1)) for name in sorted(value)])


def _merge(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if {left, right} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.types.is_list(left) and pa.types.is_list(right):
        return pa.list_(_merge(left.value_type, right.value_type))
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        types = {field.name: field.type for field in left}
        for field in right:
            types[field.name] = _merge(types.get(field.name, pa.null()), field.type)
        return pa.struct([(name, types[name]) for name in sorted(types)])
    return pa.string()


def _without_nulls(arrow_type: pa.DataType) -> pa.DataType | None:
    """Return a type without the fields that were always null; None if nothing is left."""
    if pa.types.is_null(arrow_type):
        return None
    if pa.types.is_list(arrow_type):
        items = _without_nulls(arrow_type.value_type)
        return None if items is None else pa.list_(items)
    if pa.types.is_struct(arrow_type):
        types = [(field.name, _without_nulls(field.type)) for field in arrow_type]
        members = [(name, each) for name, each in types if each is not None]
        return pa.struct(members) if members else None
    return arrow_type


def _count_fields(arrow_type: pa.DataType) -> int:
    if pa.types.is_list(arrow_type):
        return _count_fields(arrow_type.value_type)
    if pa.types.is_struct(arrow_type):
        return sum(1 + _count_fields(field.type) for field in arrow_type)
    return 0
