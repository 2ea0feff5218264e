"""Find JSON values that Arrow would convert in silence: 1.5 to the integer 1, [] to a struct."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

Check: TypeAlias = Callable[[Any], bool]


def misfit_check(arrow_type: pa.DataType) -> Check | None:
    """Return a function that says whether a JSON value must not become one of a type.

    Args:
        arrow_type: The type.

    Returns:
        The function; None if Arrow itself refuses every such value.
    """
    if pa.types.is_integer(arrow_type):
        return lambda value: isinstance(value, float | Decimal)
    if pa.types.is_struct(arrow_type):
        checks = [(field.name, misfit_check(field.type)) for field in arrow_type]
        members = [(name, check) for name, check in checks if check is not None]
        return lambda value: value is not None and _is_struct_misfit(value, members)
    if pa.types.is_map(arrow_type):
        inner = misfit_check(arrow_type.item_type) or _never
        return lambda value: (
            value is not None and (not isinstance(value, dict) or any(map(inner, value.values())))
        )
    if pa.types.is_list(arrow_type):
        items = misfit_check(arrow_type.value_type)
        if items is not None:
            return lambda value: isinstance(value, list) and any(map(items, value))
    return None


def _is_struct_misfit(value: Any, members: list[tuple[str, Check]]) -> bool:
    if not isinstance(value, dict):
        return True
    return any(check(value.get(name)) for name, check in members)


def _never(_: Any) -> bool:
    return False
