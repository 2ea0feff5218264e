"""How much a Parquet file holds, by its footer and by the headers of its pages.

The rule: the header of a page says how large it is when it is decompressed. A reader follows it,
and not the footer, which may say less; so both are read, before Arrow reads the file. Footer and
headers are structs of Thrift's compact protocol: a byte for each field, with the step of its number
and its type, then its value. Malformed bytes are a `ValueError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _STRUCT = 1, 2, 3, 6, 7, 8, 9, 12
_MAX_DEPTH = 8
_MAX_VARINT_BYTES = 10
# Numbers of fields in parquet.thrift: of FileMetaData, RowGroup and ColumnChunk,
_NUM_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _TOTAL_BYTE_SIZE = 1, 2
_META_DATA = 3
# of ColumnMetaData,
_CHUNK_VALUES, _CHUNK_BYTES, _DATA_OFFSET, _DICTIONARY_OFFSET = 5, 7, 9, 11
# and of PageHeader, with the header of each kind of page.
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 2, 3
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 5, 7, 8
_NUM_VALUES = 1


@dataclass(frozen=True, slots=True)
class FileSizes:
    """What a file holds; `size_bytes` are decompressed, each dictionary once.

    `repeated_bytes` is the largest size of the values that dictionaries hold, each repeated.
    """

    rows: int
    values: int
    size_bytes: int
    repeated_bytes: int


def file_sizes(data: bytes) -> FileSizes:
    """Return what a file holds.

    Args:
        data: The bytes of the file.

    Raises:
        ValueError: It is not a Parquet file.
    """
    try:
        return _read_sizes(data)
    except IndexError as exc:
        raise ValueError("a struct has no end") from exc


def _read_sizes(data: bytes) -> FileSizes:
    length = int.from_bytes(data[-8:-4], "little")
    if data[-4:] != _MAGIC or not 0 < length <= len(data) - 12:
        raise ValueError("its end is not that of a Parquet file")
    footer = _Reader(data, len(data) - 8 - length).struct()
    groups = _structs(footer.get(_ROW_GROUPS))
    footer_bytes = values = size_bytes = repeated_bytes = 0
    for group in groups:
        footer_bytes += _number(group, _TOTAL_BYTE_SIZE)
        for chunk in _structs(group.get(_COLUMNS)):
            chunk_values = dictionary_bytes = 0
            for header in _pages(data, chunk.get(_META_DATA)):
                page_bytes = _number(header, _UNCOMPRESSED_SIZE)
                size_bytes += page_bytes
                if _DICTIONARY_PAGE in header:
                    dictionary_bytes += page_bytes
                page = header.get(_DATA_PAGE) or header.get(_DATA_PAGE_V2)
                chunk_values += _number(page, _NUM_VALUES) if isinstance(page, dict) else 0
            values += chunk_values
            repeated_bytes += chunk_values * dictionary_bytes
    rows = _number(footer, _NUM_ROWS)
    return FileSizes(rows, values, max(footer_bytes, size_bytes), repeated_bytes)


def _pages(data: bytes, column: Any) -> Iterator[dict[int, Any]]:
    """Yield the headers of the pages of a column in one row group."""
    if not isinstance(column, dict):
        raise ValueError("a column's metadata are not in the footer")
    if not _number(column, _CHUNK_VALUES):  # No page is read, so their positions may be wrong.
        return
    begin = _number(column, _DATA_OFFSET)
    if _DICTIONARY_OFFSET in column and 0 < _number(column, _DICTIONARY_OFFSET) < begin:
        begin = _number(column, _DICTIONARY_OFFSET)
    end = begin + _number(column, _CHUNK_BYTES)
    if end > len(data):
        raise ValueError(f"a column lies at {begin} to {end}, the file has {len(data)} bytes")
    while begin < end:
        reader = _Reader(data, begin)
        header = reader.struct()
        yield header
        begin = reader.position + _number(header, _COMPRESSED_SIZE)


def _number(fields: dict[int, Any], field: int) -> int:
    value = fields.get(field)
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"field {field} is {value!r}, and has to be a number from 0")
    return value


def _structs(values: Any) -> list[dict[int, Any]]:
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise ValueError("its row groups or columns are not a list of structs")
    return values


class _Reader:
    """Reads one struct from `position` on. Booleans and texts are skipped.

    A table has some hundred pages, and their headers are read in Python: most bytes are read
    without a call. A struct without an end is an `IndexError`.
    """

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self.position = data, position

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields by number."""
        if depth > _MAX_DEPTH:
            raise ValueError(f"structs lie too deep at {self.position}")
        data, fields, number = self._data, dict[int, Any](), 0
        while head := data[self.position]:
            self.position += 1
            step, kind = head >> 4, head & 15
            number = number + step if step else self._signed()
            if number in fields:
                raise ValueError(f"field {number} is there twice, at {self.position}")
            if kind in (_TRUE, _FALSE):
                fields[number] = None  # A boolean is in the type itself.
            elif _BYTE < kind <= _I64:
                fields[number] = self._signed()
            else:
                fields[number] = self._value(kind, depth)
        self.position += 1
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind == _LIST:
            head = self._data[self.position]
            self.position += 1
            count = head >> 4 if head >> 4 < 15 else self._varint()
            if count > len(self._data) - self.position:
                raise ValueError(f"a list of {count} at {self.position} has no end")
            return [self._value(head & 15, depth + 1) for _ in range(count)]
        if _BYTE < kind <= _I64:
            return self._signed()
        if kind in (_TRUE, _FALSE, _BYTE):
            self.position += 1
        elif kind == _DOUBLE:
            self.position += 8
        elif kind == _BINARY:
            length = self._varint()
            self.position += length
        else:
            raise ValueError(f"no field has type {kind}, at {self.position}")
        return None

    def _varint(self) -> int:
        position, value = self.position, 0
        for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
            byte = self._data[position]
            position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                self.position = position
                return value
        raise ValueError(f"a number has no end at {position}")

    def _signed(self) -> int:
        value = self._data[self.position]
        if value < 128:
            self.position += 1
        else:
            value = self._varint()
        return (value >> 1) ^ -(value & 1)
