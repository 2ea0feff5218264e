"""Arrow columns to records of batches v2: how many bytes each takes, and the bytes.

    record   length varint | attributes int8 | timestampDelta varlong | offsetDelta varint
             | key length varint, key | value length varint, value
             | header count varint | headers                                  (docs/format.md, 3)

The rule: what does not depend on where a batch begins is measured for many rows at once, `measure`;
a batch then adds the deltas of its rows, `lay`; and `write` puts the records of a large batch, or
of several small ones, one behind the other in one go. The varints around keys and values are
written by numpy into two columns of short strings, and Arrow joins them with the columns of the
caller: the data of what it returns is the records. No step is taken for one record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import index

import numpy as np
import pyarrow as pa

from klog.logformat.arrow import (
    Column,
    byte_lengths,
    field_sizes,
    in_one_piece,
    joined,
    refuse,
    varints,
)
from klog.logformat.batch import MAX_OFFSET, MAX_OFFSET_DELTA, NO_TIMESTAMP
from klog.logformat.headers import HEADERS_TYPE, header_sizes, is_headers_type, write_headers
from klog.logformat.varint import Longs, Raw, varint_sizes, zigzag

MAX_FIRST_OFFSET = MAX_OFFSET - MAX_OFFSET_DELTA
"""The highest offset that a batch may begin at: all that it may hold is an offset still."""
JOINED_BYTES = 1 << 19
"""So many bytes of small batches are written in one step; a larger batch is one by itself."""
LEAST_FRONT_BYTES = 4
"""Length, attributes and two deltas, a byte each."""

_NO_HEADERS = memoryview(bytes(1))
_ATTRIBUTES_BYTES, _ONE_BIT = np.int8(1), np.uint64(1)
_TYPES = {"timestamp_ms": pa.int64(), "key": pa.binary(), "value": pa.binary()}


@dataclass(frozen=True, slots=True)
class Records:
    """Records to write, a row each; columns are Arrow arrays, chunked or not.

    `timestamp_ms` int64, -1 where a record has none; `key`, `value` binary, null where the record
    has null; `headers` of `HEADERS_TYPE`, null or empty where a record has none, or None if none
    has any. `offset` is that of the first record, the others follow without gaps; or an int64
    array, rising. Of records `is_from_log` any timestamp is taken: they were written before. Raises
    `ValueError` for columns of other types or of unequal length; of arrays made of buffers by hand
    nobody checks what their bounds say (`pyarrow.Array.validate` does).
    """

    timestamp_ms: Column
    key: Column
    value: Column
    headers: Column | None = None
    offset: int | Longs = 0
    is_from_log: bool = False

    def __post_init__(self) -> None:
        """Check types and lengths."""
        for name, kind in _TYPES.items():
            if (found := getattr(self, name).type) != kind:
                raise ValueError(f"{name} is {found}; cast it to {kind}")
        if self.headers is not None and not is_headers_type(self.headers.type):
            raise ValueError(f"headers are {self.headers.type}; cast them to {HEADERS_TYPE}")
        for name in ("key", "value", "headers"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self):
                raise ValueError(f"{name} has {len(column)} rows, timestamp_ms has {len(self)}")
        if not isinstance(self.offset, np.ndarray):
            # A numpy integer is one offset as well.
            object.__setattr__(self, "offset", index(self.offset))
        self._check_offset()

    def _check_offset(self) -> None:
        if isinstance(self.offset, int):
            if not 0 <= self.offset <= MAX_FIRST_OFFSET - len(self):
                raise ValueError(f"there are no {len(self)} offsets from {self.offset}")
        elif self.offset.ndim != 1 or self.offset.dtype.kind not in "iu":
            raise ValueError(f"offsets are {self.offset.ndim}-dimensional {self.offset.dtype}")
        elif len(self.offset) != len(self):
            raise ValueError(f"{len(self.offset)} offsets for {len(self)} rows")

    def __len__(self) -> int:
        """Give the number of records."""
        return len(self.timestamp_ms)

    def part(self, begin: int, end: int) -> Records:
        """Keep the rows from `begin` to before `end`."""
        count = end - begin
        headers = None if self.headers is None else self.headers.slice(begin, count)
        return Records(
            self.timestamp_ms.slice(begin, count),
            self.key.slice(begin, count),
            self.value.slice(begin, count),
            headers,
            self.offset + begin if isinstance(self.offset, int) else self.offset[begin:end],
            self.is_from_log,
        )

    def offsets(self, begin: int, end: int) -> Longs:
        """Give the offsets of the rows from `begin` to before `end`."""
        if isinstance(self.offset, int):
            return np.arange(self.offset + begin, self.offset + end, dtype=np.int64)
        return self.offset[begin:end].astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True)
class Measured:
    """Some rows, by what of them does not depend on their batch.

    `keys`, `values` are lengths by zig-zag, that of null is -1; `rest` is the bytes of a record
    from its key's length to its end.
    """

    timestamps: Longs
    offsets: Longs
    keys: Raw
    values: Raw
    rest: Longs

    def __len__(self) -> int:
        """Give the number of rows."""
        return len(self.rest)

    def part(self, begin: int, end: int) -> Measured:
        """Keep the rows from `begin` to before `end`."""
        some = slice(begin, end)
        return Measured(
            self.timestamps[some],
            self.offsets[some],
            self.keys[some],
            self.values[some],
            self.rest[some],
        )

    @property
    def least(self) -> Longs:
        """Give fewer bytes than each record takes in any batch, or just as many."""
        return self.rest + LEAST_FRONT_BYTES


@dataclass(frozen=True, slots=True)
class Laid:
    """The rows of one batch: what stands before each key, by zig-zag, and the bytes of a record.

    `sizes` include the length that stands before a record.
    """

    lengths: Raw
    timestamp_deltas: Raw
    offset_deltas: Raw
    sizes: Longs

    def first(self, count: int) -> Laid:
        """Keep the first rows."""
        return Laid(
            self.lengths[:count],
            self.timestamp_deltas[:count],
            self.offset_deltas[:count],
            self.sizes[:count],
        )


def measure(records: Records, begin: int, end: int) -> Measured:
    """Measure the rows from `begin` to before `end`, and refuse those that Kafka's writer refuses.

    Raises `ValueError` that names the row: a timestamp that is null, or negative and not -1; an
    offset that is negative or does not rise; a header without a name, or more headers than a reader
    of klog takes (docs/format.md, 2, 3 and 17; `MemoryRecordsBuilder`).
    """
    timestamps = _timestamps(records, begin, end)
    offsets = records.offsets(begin, end)
    _check_offsets(records, offsets, begin)
    keys = byte_lengths(records.key.slice(begin, end - begin))
    values = byte_lengths(records.value.slice(begin, end - begin))
    raw_keys, raw_values = zigzag(keys), zigzag(values)
    rest = field_sizes(keys, raw_keys) + field_sizes(values, raw_values)
    if records.headers is None:
        rest += 1
    else:
        rest += header_sizes(records.headers.slice(begin, end - begin), begin)
    return Measured(timestamps, offsets, raw_keys, raw_values, rest)


def lay(rows: Measured, begin: int, end: int, base_timestamp: int, base_offset: int) -> Laid:
    """Lay measured rows against the base of their batch; deltas wrap as Java's longs do."""
    timestamp_deltas = zigzag(rows.timestamps[begin:end] - np.int64(base_timestamp))
    offset_deltas = _doubled(rows.offsets[begin:end] - np.int64(base_offset))
    front = varint_sizes(timestamp_deltas) + varint_sizes(offset_deltas) + _ATTRIBUTES_BYTES
    body = rows.rest[begin:end] + front
    lengths = _doubled(body)
    return Laid(lengths, timestamp_deltas, offset_deltas, body + varint_sizes(lengths))


def write(
    records: Records, begin: int, rows: Measured, laid: Sequence[Laid]
) -> Iterator[Sequence[memoryview]]:
    """Write the records of consecutive batches, the first of which begins at row `begin`.

    `rows` are the rows of these batches and of no others. Each batch is given as pieces that
    follow each other, without a copy: its records, and where they have no headers and share their
    memory with no batch behind, the last one's count of them, 0. As many batches as fill
    `JOINED_BYTES` share their memory, which goes when the caller lets the pieces go.
    """
    zeros = np.zeros(len(rows), np.uint64)
    front = [
        np.concatenate([one.lengths for one in laid]),
        zeros,
        np.concatenate([one.timestamp_deltas for one in laid]),
        np.concatenate([one.offset_deltas for one in laid]),
        rows.keys,
    ]
    # Without headers their count, 0, goes before the next record's length: a column less to join.
    before_key = varints(*front) if records.headers is not None else varints(zeros, *front)
    before_value = varints(rows.values)
    del zeros, front
    sizes = [int(one.sizes.sum()) for one in laid]
    first = row = 0
    while first < len(laid):
        behind = first + max(int(np.cumsum(sizes[first:]).searchsorted(JOINED_BYTES, "right")), 1)
        count = sum(len(one.sizes) for one in laid[first:behind])
        data = _joined(
            records, begin + row, before_key.slice(row, count), before_value.slice(row, count)
        )
        for size in sizes[first:behind]:
            pieces, data = [data[:size]], data[size:]
            if len(pieces[0]) < size:
                pieces.append(_NO_HEADERS)
            yield pieces
            del pieces
        del data
        first, row = behind, row + count


def _joined(
    records: Records, begin: int, before_key: pa.BinaryArray, before_value: pa.BinaryArray
) -> memoryview:
    """Join as many rows as there are varints for, from `begin`; see `write` for the last byte."""
    end = begin + len(before_key)
    key, value = in_one_piece(records.key, begin, end), in_one_piece(records.value, begin, end)
    pieces = [before_key, key, before_value, value]
    if records.headers is None:
        return joined(pieces).data[1:]
    return joined([*pieces, *write_headers(in_one_piece(records.headers, begin, end))]).data


def _doubled(numbers: Longs) -> Raw:
    """Fold numbers that have no sign as `zigzag` does, in one step."""
    raw: Raw = numbers.view(np.uint64) << _ONE_BIT
    return raw


def _timestamps(records: Records, begin: int, end: int) -> Longs:
    column = records.timestamp_ms.slice(begin, end - begin)
    if column.null_count:
        refuse(column.is_null().to_numpy(False), begin, "the timestamp is null")
    timestamps: Longs = column.to_numpy()
    wrong = timestamps < NO_TIMESTAMP
    if wrong.any() and not records.is_from_log:
        first = timestamps[int(np.argmax(wrong))]
        refuse(wrong, begin, f"the timestamp {first} is negative and not {NO_TIMESTAMP}")
    return timestamps


def _check_offsets(records: Records, offsets: Longs, begin: int) -> None:
    if isinstance(records.offset, int):
        return
    refuse((offsets < 0) | (offsets > MAX_FIRST_OFFSET), begin, "there is no such offset")
    before = max(begin - 1, 0)
    falls = np.diff(records.offsets(before, begin + len(offsets))) <= 0
    refuse(falls, before + 1, "the offset is not above that of the row before")
