"""What decoding a column gives: the values, and a reason for each row that has no value for it.

The rule: a decoder never raises for the bytes of a row. A row that cannot be decoded is null and
has a reason; a null row is null and has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

MAX_REASON_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class DecodedColumn:
    """An array of values and an array of reasons (string, null for a decoded row)."""

    values: pa.Array
    reasons: pa.Array

    @property
    def has_errors(self) -> bool:
        """Return whether a row could not be decoded."""
        return bool(self.reasons.null_count < len(self.reasons))


class Decoder(Protocol):
    """Decodes the bytes of a column. `arrow_type` is the type of every array it returns."""

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type of the values."""

    def decode_array(self, column: pa.Array) -> DecodedColumn:
        """Return the values of binary rows."""


class Encoder(Protocol):
    """Encodes the values of a column."""

    def encode_array(self, column: pa.Array) -> pa.Array:
        """Return binary rows. Raises `SchemaError` for a value that the schema does not allow."""


def as_binary(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array of type binary.

    Args:
        column: Binary, string, or a large or view form of these.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column if column.type == pa.binary() else column.cast(pa.binary())


def without_errors(values: pa.Array) -> DecodedColumn:
    """Return values that have no reason.

    Args:
        values: The values.
    """
    return DecodedColumn(values, pa.nulls(len(values), pa.string()))


def spread(values: pa.Array, mask: pa.Array) -> pa.Array:
    """Return an array that has the next value where a mask is true, and null elsewhere.

    Args:
        values: As many values as the mask has trues.
        mask: Booleans without null.
    """
    if len(values) == len(mask):
        return values
    indices = pc.if_else(mask, pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), 1), None)
    return values.take(indices)


def reason_array(length: int, reasons: Iterable[tuple[int, str]]) -> pa.Array:
    """Return an array of reasons.

    Args:
        length: The number of rows.
        reasons: Row and reason of those that have one.
    """
    rows: list[str | None] = [None] * length
    for row, reason in reasons:
        rows[row] = printable(reason)
    return pa.array(rows, pa.string())


def printable(reason: object) -> str:
    """Return a reason on one line, at a bounded length and as valid UTF-8.

    Args:
        reason: A text or an error.
    """
    text = str(reason) or type(reason).__name__
    text = " ".join(text.encode("utf-8", "backslashreplace").decode().split())
    if len(text) > MAX_REASON_CHARACTERS:
        text = text[: MAX_REASON_CHARACTERS - 3] + "..."
    return text
