"""Primitive types of Kafka's protocol, which control records and internal topics consist of.

    intN      big-endian two's complement; uint16 for ports
    string    int16 length and UTF-8, -1 null;    compact: unsigned varint length + 1, 0 null
    bytes     int32 length, -1 null;              compact: as a compact string
    array     int32 count, -1 null;               compact: unsigned varint count + 1, 0 null
    tags      unsigned varint count, then each: varint tag, varint size, that many bytes
    uuid      16 bytes, shown as 22 characters of URL-safe base64

The rule: a length is bounded by the bytes that there are. What is cut short, negative or not UTF-8
is a `CorruptRecordError` with its position. (docs/format.md, 6 and 16; Kafka's
`ByteBufferAccessor`, `ByteUtils`.)
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode

from klog.errors import CorruptRecordError

INTEGERS = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "uint16": struct.Struct(">H"),
}
UUID_BYTES = 16
UNSIGNED_VARINT_BYTES = 5
UUID_CHARACTERS = 22
MAX_UNSIGNED = (1 << 32) - 1
MAX_STRING_BYTES = (1 << 15) - 1


class Reader:
    """Reads values one after the other; `position` is where the next one starts."""

    __slots__ = ("_data", "_end", "position")

    def __init__(self, data: bytes | memoryview) -> None:
        """Start at the first byte.

        Args:
            data: What to read.
        """
        self._data = data
        self._end = len(data)
        self.position = 0

    @property
    def remaining(self) -> int:
        """Return the number of bytes that are not read yet."""
        return self._end - self.position

    def raw(self, size: int) -> bytes:
        """Read bytes.

        Args:
            size: How many.

        Raises:
            CorruptRecordError: If there are fewer.
        """
        if not 0 <= size <= self.remaining:
            raise CorruptRecordError(f"{size} bytes where {self.remaining} are left", self.position)
        start = self.position
        self.position += size
        return bytes(self._data[start : self.position])

    def integer(self, kind: str) -> int:
        """Read an integer.

        Args:
            kind: A key of `INTEGERS`.

        Raises:
            CorruptRecordError: If it is cut short.
        """
        packed = INTEGERS[kind]
        return int(packed.unpack(self.raw(packed.size))[0])

    def unsigned_varint(self) -> int:
        """Read an unsigned varint of 32 bits; surplus high bits of its fifth byte are dropped.

        Raises:
            CorruptRecordError: If it is cut short or too long.
        """
        value = 0
        for index in range(UNSIGNED_VARINT_BYTES):
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value & MAX_UNSIGNED
        raise CorruptRecordError(
            f"varint of more than {UNSIGNED_VARINT_BYTES} bytes",
            self.position - UNSIGNED_VARINT_BYTES,
        )

    def string(self, compact: bool) -> str | None:
        """Read a string; None for null.

        Args:
            compact: Whether its length is compact.

        Raises:
            CorruptRecordError: If it is cut short or not UTF-8.
        """
        start = self.position
        length = self._compact_length() if compact else self.integer("int16")
        if length < 0:
            return None
        try:
            return self.raw(length).decode()
        except UnicodeDecodeError as exc:
            raise CorruptRecordError("a string that is not UTF-8", start) from exc

    def sized_bytes(self, compact: bool) -> bytes | None:
        """Read bytes after their length; None for null.

        Args:
            compact: Whether the length is compact.

        Raises:
            CorruptRecordError: If they are cut short.
        """
        length = self._compact_length() if compact else self.integer("int32")
        return None if length < 0 else self.raw(length)

    def count(self, compact: bool) -> int | None:
        """Read the count of an array whose elements have at least a byte each; None for null.

        Args:
            compact: Whether the count is compact.

        Raises:
            CorruptRecordError: For more elements than bytes.
        """
        start = self.position
        count = self._compact_length() if compact else self.integer("int32")
        if count > self.remaining:
            raise CorruptRecordError(f"{count} elements in {self.remaining} bytes", start)
        return None if count < 0 else count

    def tags(self) -> dict[int, bytes]:
        """Read the tagged fields, by tag, each as its bytes.

        Raises:
            CorruptRecordError: If they are cut short.
        """
        start = self.position
        count = self.unsigned_varint()
        if 2 * count > self.remaining:
            raise CorruptRecordError(f"{count} tagged fields in {self.remaining} bytes", start)
        fields = {}
        for _ in range(count):
            tag = self.unsigned_varint()
            fields[tag] = self.raw(self.unsigned_varint())
        return fields

    def uuid(self) -> str:
        """Read a uuid, as Kafka prints it.

        Raises:
            CorruptRecordError: If it is cut short.
        """
        return urlsafe_b64encode(self.raw(UUID_BYTES)).decode()[:UUID_CHARACTERS]

    def _compact_length(self) -> int:
        return self.unsigned_varint() - 1


def integer(kind: str, value: int) -> bytes:
    """Encode an integer.

    Args:
        kind: A key of `INTEGERS`.
        value: The integer.

    Raises:
        ValueError: If it is out of range.
    """
    try:
        return INTEGERS[kind].pack(value)
    except struct.error as exc:
        raise ValueError(f"{value!r} does not fit into {kind}") from exc


def unsigned_varint(value: int) -> bytes:
    """Encode an unsigned varint.

    Args:
        value: A number of 32 bits.

    Raises:
        ValueError: If it is out of range.
    """
    if not 0 <= value <= MAX_UNSIGNED:
        raise ValueError(f"{value} does not fit into 32 bits")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(value: str | None, compact: bool) -> bytes:
    """Encode a string or null.

    Args:
        value: The string, None for null.
        compact: Whether its length is compact.

    Raises:
        ValueError: If it is too long.
    """
    if value is None:
        return _length(-1, compact, "int16")
    data = value.encode()
    if len(data) > MAX_STRING_BYTES:
        raise ValueError(f"a string of {len(data)} bytes, the limit is {MAX_STRING_BYTES}")
    return _length(len(data), compact, "int16") + data


def nullable_bytes(value: bytes | None, compact: bool) -> bytes:
    """Encode bytes after their length, or null.

    Args:
        value: The bytes, None for null.
        compact: Whether the length is compact.
    """
    return _length(-1, compact) if value is None else _length(len(value), compact) + value


def count(value: int | None, compact: bool) -> bytes:
    """Encode the count of an array.

    Args:
        value: The count, None for a null array.
        compact: Whether it is compact.
    """
    return _length(-1 if value is None else value, compact)


def tags(fields: dict[int, bytes]) -> bytes:
    """Encode tagged fields, in the order of their tags.

    Args:
        fields: Tag to bytes.
    """
    out = [unsigned_varint(len(fields))]
    for tag, data in sorted(fields.items()):
        out += [unsigned_varint(tag), unsigned_varint(len(data)), data]
    return b"".join(out)


def uuid(text: str) -> bytes:
    """Encode a uuid.

    Args:
        text: As Kafka prints it.

    Raises:
        ValueError: For another text.
    """
    data = urlsafe_b64decode(text + "==") if len(text) == UUID_CHARACTERS else b""
    if len(data) != UUID_BYTES:
        raise ValueError(f"{text!r} is not a uuid of {UUID_CHARACTERS} characters")
    return data


def _length(value: int, compact: bool, kind: str = "int32") -> bytes:
    return unsigned_varint(value + 1) if compact else integer(kind, value)
