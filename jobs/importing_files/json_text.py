"""Columns of Arrow as JSON text, without a loop over rows.

The rule: a value of JSON is what another program reads back as the same value: numbers as numbers,
text escaped, times in ISO 8601, what is not finite and what is missing as null. Bytes are text if
they are UTF-8. A type that JSON has no form for is an error that names the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.errors import OptionError

TEXT = pa.large_string()
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_ESCAPES = {"\\": "\\\\", '"': '\\"'} | {
    chr(code): _SHORT.get(chr(code), f"\\u{code:04x}") for code in range(32)
}
_TO_ESCAPE = r'[\x00-\x1f"\\]'


def objects(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array:
    """Return rows as JSON objects.

    Args:
        names: The names of the fields.
        columns: Their values; at least one column.

    Raises:
        OptionError: A column has no form in JSON.
    """
    parts: list[Any] = []
    keys = json_strings(pa.array(names, TEXT)).to_pylist()
    for number, (name, key, column) in enumerate(zip(names, keys, columns, strict=True)):
        parts += [("," if number else "{") + f"{key}:", json_values(column, name)]
    return pc.binary_join_element_wise(*map(_text, parts), _text("}"), _text(""))


def texts(column: pa.Array, name: str) -> pa.Array:
    """Return a column as bytes: text and bytes unchanged, numbers and times as text, else JSON.

    Args:
        column: The column.
        name: Its name, for errors.

    Raises:
        OptionError: The column has no form in JSON.
    """
    column = _decoded(column)
    if _is_text(column.type) or _is_bytes(column.type):
        return column
    values = json_values(column, name)
    if pa.types.is_temporal(column.type):
        values = pc.utf8_trim(values, '"')
    return pc.if_else(column.is_valid(), values, pa.scalar(None, TEXT))


def json_strings(column: pa.Array) -> pa.Array:
    """Return text as JSON strings; null stays null.

    Args:
        column: Text.
    """
    column = column.cast(TEXT)
    if pc.any(pc.match_substring_regex(column, _TO_ESCAPE)).as_py():
        for char, escaped in _ESCAPES.items():
            column = pc.replace_substring(column, char, escaped)
    return pc.binary_join_element_wise(_text('"'), column, _text('"'), _text(""))


def json_values(column: pa.Array, name: str) -> pa.Array:
    """Return values as JSON text; a missing one is `null`.

    Args:
        column: The column.
        name: Its name, for errors.

    Raises:
        OptionError: The column has no form in JSON.
    """
    column = _decoded(column)
    if pa.types.is_null(column.type):
        return pa.array(["null"] * len(column), TEXT)
    return pc.fill_null(_values(column, name).cast(TEXT), "null")


def _values(column: pa.Array, name: str) -> pa.Array:
    """Return valid values as JSON text; others are null."""
    kind, types = column.type, pa.types
    if _is_text(kind):
        return json_strings(column)
    if _is_bytes(kind):
        try:
            return json_strings(column.cast(pa.large_binary()).cast(TEXT))
        except pa.ArrowInvalid as exc:
            raise OptionError(
                f"--value: column {name} has bytes that are not UTF-8, which JSON cannot have. "
                f"Choose one column as the value, such as --value {name}"
            ) from exc
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return column.cast(pa.string())
    if types.is_floating(kind):
        finite = pc.is_finite(column.cast(pa.float64()))
        return pc.if_else(finite, column.cast(pa.float64()).cast(TEXT), pa.scalar(None, TEXT))
    if types.is_temporal(kind) and not types.is_duration(kind) and not types.is_interval(kind):
        return json_strings(pc.replace_substring(column.cast(pa.string()), " ", "T"))
    if types.is_struct(kind):
        names = [field.name for field in kind]
        fields = [pc.struct_field(column, number) for number in range(len(names))]
        values = objects(names, fields) if names else pa.array(["{}"] * len(column), TEXT)
        return pc.if_else(column.is_valid(), values, pa.scalar(None, TEXT))
    if types.is_list(kind) or types.is_large_list(kind):
        return _lists(column, name)
    raise OptionError(
        f"--value: column {name} has the type {kind}, which has no form in JSON. Choose one column "
        "as the value with --value"
    )


def _lists(column: pa.Array, name: str) -> pa.Array:
    values = json_values(column.flatten(), name).cast(pa.string())
    counts = pc.fill_null(pc.list_value_length(column), 0)
    bounds = pa.concat_arrays([pa.array([0]), pc.cumulative_sum(counts.cast(pa.int64()))])
    lists = pa.ListArray.from_arrays(bounds.cast(pa.int32()), values)
    joined = pc.binary_join(lists, ",")
    items = pc.binary_join_element_wise(_text("["), joined.cast(TEXT), _text("]"), _text(""))
    return pc.if_else(column.is_valid(), items, pa.scalar(None, TEXT))


def _decoded(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column


def _text(part: Any) -> Any:
    return pa.scalar(part, TEXT) if isinstance(part, str) else part


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )
