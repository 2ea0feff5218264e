"""JSON to Arrow without Spark, by a type.

Python's JSON parser, which is in C, reads each row; Arrow makes columns of all rows in one call,
and dates and times of texts. The rules are those of Spark's `from_json`, as `spark_json.py` uses
it: fields that the type does not have are ignored, missing ones are null, a field of another type
is an error, and a field of type string takes any value as its JSON text. Unlike Spark, what follows
the first JSON value of a row is an error.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NoReturn

import pyarrow as pa

from klog.errors import SchemaError
from klog.values.confluent_framing import read_prefixes
from klog.values.decoded_column import (
    DecodedColumn,
    as_binary,
    printable,
)
from klog.values.json_misfits import LongInteger, misfit_check
from klog.values.nested_cast import cast_nested
from klog.values.row_conversion import CONVERSION_ERRORS, arrays_of_rows, nested_misfits

_SCALARS = (
    pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating,
    pa.types.is_decimal128, pa.types.is_string, pa.types.is_large_string,
)  # fmt: skip
_MAX_EXPONENT = 38
"""The digits of Arrow's decimal128."""


class JsonDecoder:
    """Decodes JSON with or without a registry's prefix. The id in a prefix is not looked up."""

    def __init__(self, arrow_type: pa.DataType, *, has_prefix: bool = False) -> None:
        """Take the type of the values.

        Raises `SchemaError` if JSON has no such values.
        """
        self._type = arrow_type
        self._built = _built_type(arrow_type)
        self._has_prefix = has_prefix
        self._has_decimals = _has_decimals(arrow_type)
        self._is_fitted = self._has_decimals
        self._misfit = misfit_check(arrow_type)

    def __reduce__(self) -> Any:
        """Pickle by the arguments."""
        return _json_decoder, (self._type, self._has_prefix)

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type of the values."""
        return self._type

    def decode_array(self, column: pa.Array) -> DecodedColumn:
        """Return the values of binary rows.

        Args:
            column: The rows.
        """
        rows, reasons = json_rows(
            column, has_prefix=self._has_prefix, has_decimals=self._has_decimals
        )
        for row, value in enumerate(rows):
            reason = self._misfit(value)
            if reason is not None:
                rows[row], reasons[row] = None, printable(f"json: {reason.lstrip('.: ')}")
        first = self._fitted_to_array if self._is_fitted else self._cast
        return arrays_of_rows(rows, reasons, first, self._misfits, self._rest_to_array)

    def _misfits(self, rows: Sequence[Any]) -> dict[int, str]:
        return nested_misfits(rows, self._built, self._type, "json: ", _fitted)

    def _rest_to_array(self, rows: Sequence[Any]) -> pa.Array:
        try:
            return self._cast(rows)
        except CONVERSION_ERRORS:
            self._is_fitted = True  # A field of type string has other values, and may have more.
            return self._fitted_to_array(rows)

    def _fitted_to_array(self, rows: Sequence[Any]) -> pa.Array:
        return self._cast([_fitted(row, self._built) for row in rows])

    def _cast(self, rows: Sequence[Any]) -> pa.Array:
        return cast_nested(pa.array(rows, self._built), self._type)


def json_rows(
    column: pa.Array, *, has_prefix: bool = False, has_decimals: bool = False
) -> tuple[list[Any], dict[int, str]]:
    """Return the JSON values of binary rows, and the reasons of those that are not JSON.

    Args:
        column: The rows.
        has_prefix: Each row begins with a registry's prefix.
        has_decimals: Return numbers with a fraction as `Decimal`, but for those that no decimal of
            Arrow can be: they are floats.
    """
    reasons: dict[int, str] = {}
    values = as_binary(column).to_pylist()
    if has_prefix:
        framed = read_prefixes(column)
        values, reasons = framed.values, framed.reasons
    parse_float = _decimal_or_float if has_decimals else None
    decoders = [
        json.JSONDecoder(
            parse_float=parse_float, parse_int=parse_int, parse_constant=_refuse_constant
        )
        for parse_int in (None, _integer)
    ]
    rows: list[Any] = []
    for row, value in enumerate(values):
        if value is None:
            rows.append(None)
            continue
        try:
            rows.append(_json_value(str(value, "utf-8"), *decoders))
        except ValueError as exc:
            reasons[row] = printable(f"json: {exc}")
            rows.append(None)
        except RecursionError:
            reasons[row] = "json: nested too deeply"
            rows.append(None)
    return rows, reasons


def _json_decoder(arrow_type: pa.DataType, has_prefix: bool) -> JsonDecoder:
    return JsonDecoder(arrow_type, has_prefix=has_prefix)


def _json_value(text: str, decoder: json.JSONDecoder, lenient: json.JSONDecoder) -> Any:
    """Return a JSON value. `lenient`, which is slower, also takes integers of any length."""
    try:
        return decoder.decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return lenient.decode(text)


def _integer(text: str) -> int | LongInteger:
    try:
        return int(text)
    except ValueError:
        return LongInteger()


def _decimal_or_float(text: str) -> Decimal | float:
    """Return a number with a fraction, as a float beyond the digits of Arrow's decimals.

    Arrow ends the process for an exponent that is far out of its range.
    """
    try:
        number = Decimal(text)
    except ArithmeticError:  # An exponent of 20 digits.
        return float(text)
    exponent = number.as_tuple().exponent
    is_decimal = isinstance(exponent, int) and abs(exponent) <= _MAX_EXPONENT
    return number if is_decimal else float(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _built_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type that Arrow makes of JSON values; dates and times are texts first."""
    if pa.types.is_timestamp(arrow_type) or pa.types.is_date(arrow_type):
        return pa.string()
    if pa.types.is_struct(arrow_type):
        return pa.struct([(field.name, _built_type(field.type)) for field in arrow_type])
    if pa.types.is_map(arrow_type):
        if not pa.types.is_string(arrow_type.key_type):
            raise SchemaError(f"json: a map has string keys, not {arrow_type.key_type}")
        return pa.map_(pa.string(), _built_type(arrow_type.item_type))
    if pa.types.is_list(arrow_type):
        return pa.list_(_built_type(arrow_type.value_type))
    if not any(is_type(arrow_type) for is_type in _SCALARS):
        raise SchemaError(f"json: {arrow_type} is not a type of JSON here. Use string, list or map")
    return arrow_type


def _has_decimals(arrow_type: pa.DataType) -> bool:
    children = [arrow_type.field(i).type for i in range(arrow_type.num_fields)]
    return pa.types.is_decimal(arrow_type) or any(map(_has_decimals, children))


def _fitted(value: Any, arrow_type: pa.DataType) -> Any:
    """Return a value with JSON texts in fields of type string, and doubles in those of numbers."""
    if value is None:
        return None
    if isinstance(value, dict):
        if pa.types.is_struct(arrow_type):
            return {f.name: _fitted(value.get(f.name), f.type) for f in arrow_type}
        if pa.types.is_map(arrow_type):
            return {name: _fitted(each, arrow_type.item_type) for name, each in value.items()}
    if isinstance(value, list) and pa.types.is_list(arrow_type):
        return [_fitted(each, arrow_type.value_type) for each in value]
    is_text = pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type)
    if is_text and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=float)
    if pa.types.is_floating(arrow_type) and isinstance(value, int | Decimal):
        return float(value)
    return value
