"""Kafka's own serializers: numbers, booleans, UUIDs, text and bytes.

    format    Kafka's class                 bytes
    short     ShortSerializer               2, big-endian, two's complement
    integer   IntegerSerializer             4
    long      LongSerializer                8
    float     FloatSerializer               4, IEEE 754, big-endian
    double    DoubleSerializer              8
    boolean   BooleanSerializer             1: 0x01 or 0x00
    uuid      UUIDSerializer                its text in UTF-8, 36 characters
    string    StringSerializer              UTF-8
    bytes     ByteArraySerializer           unchanged

All are in `org.apache.kafka.common.serialization`. As in Kafka, null is null and another length is
an error. Unlike Kafka, text that is not UTF-8 is an error, and a UUID has all 36 characters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.errors import SchemaError
from klog.values.checked_cast import checked_cast
from klog.values.decoded_column import (
    DecodedColumn,
    as_binary,
    reason_array,
    spread,
    without_errors,
)

NUMBERS: dict[str, tuple[pa.DataType, str]] = {
    "short": (pa.int16(), ">i2"),
    "integer": (pa.int32(), ">i4"),
    "long": (pa.int64(), ">i8"),
    "float": (pa.float32(), ">f4"),
    "double": (pa.float64(), ">f8"),
    "boolean": (pa.bool_(), ">u1"),
}
ARROW_TYPES: dict[str, pa.DataType] = {
    **{name: arrow_type for name, (arrow_type, _) in NUMBERS.items()},
    "uuid": pa.string(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_UUID = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"


@dataclass(frozen=True, slots=True)
class KafkaSerde:
    """Decodes and encodes one of Kafka's own formats."""

    name: str

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type of the values."""
        return ARROW_TYPES[self.name]

    def decode_array(self, column: pa.Array) -> DecodedColumn:
        """Return the values of binary rows.

        Args:
            column: The rows.
        """
        column = as_binary(column)
        if self.name == "bytes":
            return without_errors(column)
        if self.name in NUMBERS:
            return _decode_numbers(column, self.name)
        text = _decode_text(column)
        return _decode_uuids(text) if self.name == "uuid" else text

    def encode_array(self, column: pa.Array) -> pa.Array:
        """Return the bytes of values.

        Args:
            column: The values, of a type that casts to the type of this format without a loss.

        Raises:
            SchemaError: A value is not one of this format.
        """
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        values = checked_cast(column, self.arrow_type, f"{self.name}: ")
        if self.name == "uuid":
            values = pc.utf8_lower(values)
            if not _all(pc.match_substring_regex(values, _UUID)):
                raise SchemaError("uuid: a value is not a UUID of 36 characters")
        if self.name not in NUMBERS:
            return values.cast(pa.binary())
        return _encode_numbers(values, NUMBERS[self.name][1])


def _all(mask: pa.Array) -> bool:
    return pc.all(mask, min_count=0).as_py() is not False


def _decode_numbers(column: pa.Array, name: str) -> DecodedColumn:
    arrow_type, layout = NUMBERS[name]
    width = np.dtype(layout).itemsize
    lengths = pc.binary_length(column)
    is_sized = pc.fill_null(pc.equal(lengths, width), False)
    reasons = {}
    if not _all(pc.equal(lengths, width)):
        for row, length in enumerate(lengths.to_pylist()):
            if length not in (None, width):
                reasons[row] = f"{name}: must have {width} bytes, got {length}"
    numbers = np.frombuffer(b"".join(column.filter(is_sized).to_pylist()), layout)
    if name == "boolean":
        rows = np.flatnonzero(is_sized.to_numpy(zero_copy_only=False))
        for row, number in zip(rows[numbers > 1], numbers[numbers > 1], strict=True):
            reasons[int(row)] = f"boolean: must be 0x00 or 0x01, got 0x{number:02x}"
        values = pa.array(numbers == 1, mask=numbers > 1)
    else:
        values = pa.array(numbers.astype(numbers.dtype.newbyteorder("=")), arrow_type)
    return DecodedColumn(spread(values, is_sized), reason_array(len(column), reasons.items()))


def _encode_numbers(values: pa.Array, layout: str) -> pa.Array:
    numbers = pc.drop_null(values)
    if pa.types.is_boolean(numbers.type):
        numbers = numbers.cast(pa.uint8())
    data = numbers.to_numpy(zero_copy_only=False).astype(layout).tobytes()
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(np.dtype(layout).itemsize), len(numbers), [None, pa.py_buffer(data)]
    )
    return spread(fixed.cast(pa.binary()), pc.is_valid(values))


def _decode_text(column: pa.Array) -> DecodedColumn:
    try:
        return without_errors(column.cast(pa.string()))
    except pa.ArrowInvalid:
        rows: list[str | None] = []
        reasons = {}
        for row, value in enumerate(column.to_pylist()):
            try:
                rows.append(None if value is None else value.decode())
            except UnicodeDecodeError as exc:
                rows.append(None)
                reasons[row] = f"not UTF-8: {exc.reason} at byte {exc.start}"
        values = pa.array(rows, pa.string())
        return DecodedColumn(values, reason_array(len(rows), reasons.items()))


def _decode_uuids(text: DecodedColumn) -> DecodedColumn:
    is_uuid = pc.match_substring_regex(text.values, _UUID)
    values = pc.if_else(is_uuid, pc.utf8_lower(text.values), pa.scalar(None, pa.string()))
    if _all(is_uuid):
        return DecodedColumn(values, text.reasons)
    reason = pa.scalar("uuid: not a UUID of 36 characters")
    is_bad = pc.fill_null(pc.invert(is_uuid), False)
    return DecodedColumn(values, pc.if_else(is_bad, reason, text.reasons))
