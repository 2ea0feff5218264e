"""The type of JSON values, inferred from a sample of them.

The rules are those of Spark's JSON source: fields are sorted by name, whole and other numbers are
double, other conflicts are text. Unlike there, what is null or empty in all of the sample is left
out: it has no type yet, and is a new field when it has one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import pyarrow as pa

from klog.errors import SchemaError
from klog.values.type_limits import MAX_DEPTH

MAX_FIELDS = 2000
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1
_Inferred: TypeAlias = "pa.DataType | list[_Inferred] | dict[str, _Inferred] | None"
"""The type of a scalar, a list of one for an array's items, a dict for fields, None for null: other
than Arrow's types, it can be added to."""


def inferred_type(values: Iterable[Any]) -> pa.DataType:
    """Return a type that fits all values.

    Args:
        values: JSON values as Python's `json` decodes them.

    Raises:
        SchemaError: There is no value, or there are more than `MAX_FIELDS` fields.
    """
    merged: _Inferred = None
    for value in values:
        try:
            merged = _merge(merged, _infer(value, 0))
        except (RecursionError, UnicodeEncodeError):
            continue  # Too deep, or a name that is not text: no column can have the value.
        if _count_fields(merged) > MAX_FIELDS:
            raise SchemaError(
                f"json: the sample has more than {MAX_FIELDS} fields. Names may be data: give a "
                "schema with a map"
            )
    known = _arrow_type(merged)
    if known is None:
        raise SchemaError("json: the sample has no value to infer a schema from. Give a schema")
    return known


def _infer(value: Any, depth: int) -> _Inferred:
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if _MIN_LONG <= value <= _MAX_LONG else pa.float64()
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, list):
        items: _Inferred = None
        for each in value:
            items = _merge(items, _infer(each, depth + 1))
        return [items]
    if isinstance(value, dict):
        for name in value:
            name.encode()
        return {name: _infer(each, depth + 1) for name, each in value.items()}
    return None  # Null, or an integer with so many digits that no type holds it.


def _merge(left: _Inferred, right: _Inferred) -> _Inferred:
    """Return what fits both. The fields of `right` are added to those of `left`."""
    if right is None or left == right:
        return left
    if left is None:
        return right
    if isinstance(left, list) and isinstance(right, list):
        return [_merge(left[0], right[0])]
    if isinstance(left, dict) and isinstance(right, dict):
        for name, each in right.items():
            left[name] = _merge(left.get(name), each)
        return left
    numbers = [pa.int64(), pa.float64()]
    return pa.float64() if left in numbers and right in numbers else pa.string()


def _arrow_type(inferred: _Inferred) -> pa.DataType | None:
    """Return the type without the fields that were always null; None if nothing is left."""
    if isinstance(inferred, list):
        items = _arrow_type(inferred[0])
        return None if items is None else pa.list_(items)
    if isinstance(inferred, dict):
        types = [(name, _arrow_type(inferred[name])) for name in sorted(inferred)]
        members = [(name, each) for name, each in types if each is not None]
        return pa.struct(members) if members else None
    return inferred


def _count_fields(inferred: _Inferred) -> int:
    if isinstance(inferred, list):
        return _count_fields(inferred[0])
    if isinstance(inferred, dict):
        return sum(1 + _count_fields(each) for each in inferred.values())
    return 0
