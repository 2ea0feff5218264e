"""Find JSON values that are not of a type; Arrow would convert some in silence.

For Arrow true is the number 1.0, a text is a list of its characters, and 1.5 is the integer 1. The
rule: a JSON value is of its type or the row has a reason, which names the field and no value. Only
a field of type string takes any value, as its JSON text.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa


class LongInteger:
    """An integer with more digits than Python takes. It has no value, so that no field holds it."""


Check: TypeAlias = Callable[[Any], str | None]
"""Returns the end of a reason: the path in the value, and what is wrong there; None if it fits."""
_NAMES = {
    bool: "a boolean", int: "a number", float: "a number", Decimal: "a number", str: "a string",
    list: "an array", dict: "an object", type(None): "null",
    LongInteger: "a number with too many digits",
}  # fmt: skip
_NUMBERS = frozenset({int, float, Decimal})


def misfit_check(arrow_type: pa.DataType) -> Check:
    """Return a function that says what is wrong with a JSON value.

    Args:
        arrow_type: The type that the value must have.
    """
    types = pa.types
    if types.is_string(arrow_type) or types.is_large_string(arrow_type):
        return lambda _: None
    if types.is_struct(arrow_type):
        return _struct_check(arrow_type)
    if types.is_map(arrow_type):
        return _items_check(dict, misfit_check(arrow_type.item_type), "{}", dict.values)
    if types.is_list(arrow_type):
        return _items_check(list, misfit_check(arrow_type.value_type), "[]", iter)
    if types.is_integer(arrow_type):
        return _integer_check(arrow_type)
    if types.is_boolean(arrow_type):
        return _type_check(frozenset({bool}), "a boolean")
    if types.is_floating(arrow_type):
        return _type_check(_NUMBERS, "a number")
    if types.is_decimal(arrow_type):
        return _decimal_check(arrow_type)
    if types.is_null(arrow_type):
        return _type_check(frozenset(), "null")
    return _type_check(frozenset({str}), f"a string with a {arrow_type}")


def _type_check(kinds: frozenset[type], type_name: str) -> Check:
    def check(value: Any) -> str | None:
        if value is None or type(value) in kinds:
            return None
        return _reason(value, type_name)

    return check


def _integer_check(arrow_type: pa.DataType) -> Check:
    bits = arrow_type.bit_width
    low, high = 0, 2**bits - 1
    if pa.types.is_signed_integer(arrow_type):
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def check(value: Any) -> str | None:
        if value is None:
            return None
        if type(value) is not int:
            fraction = " with a fraction" if type(value) in _NUMBERS else ""
            return f": is {_NAMES[type(value)]}{fraction}, not an integer"
        return None if low <= value <= high else f": does not fit {arrow_type}"

    return check


def _decimal_check(arrow_type: pa.DataType) -> Check:
    def check(value: Any) -> str | None:
        if value is None or type(value) is Decimal or type(value) is int:
            return None
        if type(value) is float:  # Only a number beyond all decimals is parsed as a float.
            return f": does not fit {arrow_type}"
        return _reason(value, "a number")

    return check


def _struct_check(arrow_type: pa.DataType) -> Check:
    members = [(field.name, misfit_check(field.type)) for field in arrow_type]

    def check(value: Any) -> str | None:
        if type(value) is not dict:
            return None if value is None else _reason(value, "an object")
        get = value.get
        for name, check_member in members:
            reason = check_member(get(name))
            if reason is not None:
                return f".{name}{reason}"
        return None

    return check


def _items_check(kind: type, check_item: Check, path: str, items: Callable[[Any], Any]) -> Check:
    def check(value: Any) -> str | None:
        if type(value) is not kind:
            return None if value is None else _reason(value, _NAMES[kind])
        for each in items(value):
            reason = check_item(each)
            if reason is not None:
                return f"{path}{reason}"
        return None

    return check


def _reason(value: Any, type_name: str) -> str:
    return f": is {_NAMES[type(value)]}, not {type_name}"
