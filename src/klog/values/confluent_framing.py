"""Confluent's wire format: what is before the value that a registry's serializer writes.

magic           int8      0
schema id       int32     big-endian
message indexes varints   Protobuf alone; zigzag: their count, then the indexes. A single byte 0
                          means [0], the first message of the file
value           the rest
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from klog.logformat.protocol.primitive_types import unsigned_varint
from klog.values.decoded_column import as_binary

PREFIX_BYTES = 5
MAX_INDEXES = 64
"""More levels than Protobuf's own compiler nests."""
_MAX_VARINT_BYTES = 5


@dataclass(frozen=True, slots=True)
class FramedRows:
    """The rows of a column by schema id, in order, and the reasons of those without a prefix."""

    rows_by_id: dict[int, list[int]]
    values: list[bytes | None]
    reasons: dict[int, str]


def read_prefixes(column: pa.Array) -> FramedRows:
    """Take the prefix off each row.

    Args:
        column: Binary rows.

    Returns:
        The rows; `values` are those after the prefix, None for null and for rows with a reason.
    """
    rows_by_id: dict[int, list[int]] = {}
    reasons: dict[int, str] = {}
    values = as_binary(column).to_pylist()
    for row, value in enumerate(values):
        if value is None:
            continue
        if len(value) < PREFIX_BYTES or value[0] != 0:
            reasons[row] = _without_prefix(value)
            values[row] = None
            continue
        rows_by_id.setdefault(int.from_bytes(value[1:PREFIX_BYTES], "big"), []).append(row)
        values[row] = value[PREFIX_BYTES:]
    return FramedRows(rows_by_id, values, reasons)


def prefix(schema_id: int) -> bytes:
    """Return the prefix of values with a schema.

    Args:
        schema_id: The id that the registry has given it.
    """
    return b"\0" + schema_id.to_bytes(4, "big")


def read_message_indexes(value: bytes) -> tuple[tuple[int, ...], int]:
    """Read the message indexes of Protobuf.

    Args:
        value: The bytes after the prefix.

    Returns:
        The indexes, and the position of the message.

    Raises:
        ValueError: They are damaged.
    """
    if value[:1] == b"\0":
        return (0,), 1
    count, position = _read_varint(value, 0)
    if not 0 < count <= MAX_INDEXES:
        raise ValueError(f"message indexes: their count is {count}, at most {MAX_INDEXES} are read")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(value, position)
        if index < 0:
            raise ValueError(f"message indexes: {index} is negative")
        indexes.append(index)
    return tuple(indexes), position


def message_index_bytes(indexes: tuple[int, ...]) -> bytes:
    """Return message indexes as bytes.

    Args:
        indexes: The place of the message in its file, then in the message around it, ...
    """
    if indexes == (0,):
        return b"\0"
    return b"".join(unsigned_varint(number << 1) for number in (len(indexes), *indexes))


def _without_prefix(value: bytes) -> str:
    if len(value) < PREFIX_BYTES:
        return f"no schema registry's prefix: {len(value)} bytes, the prefix alone has 5"
    return (
        f"no schema registry's prefix: begins with 0x{value[0]:02x}, not 0x00. "
        "If the topic has none, leave out the registry"
    )


def _read_varint(value: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift, byte in enumerate(value[position : position + _MAX_VARINT_BYTES]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position + shift + 1
    raise ValueError("message indexes: cut off or too large")
