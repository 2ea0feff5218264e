"""Batches filled row by row, by loops that numba compiled: one batch is held, and a piece of rows.

The rule: it is, byte for byte, what whole columns would give (`encode.py`), batch by batch, or
nothing: at the first batch with a row that the loops do not know it ends, and the columns, which
go on from there, decide what it is or say what is wrong.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.arrow import Column, chunks_of, in_one_piece
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.compiled.compiling import frozen
from klog.logformat.form import Form
from klog.logformat.records import Records
from klog.logformat.sealing import Span, sealed
from klog.logformat.sequence import advance

_LEAST_ROOM_BYTES = 64 << 10
_WORTH_ROWS, _WORTH_BYTES = 1 << 12, 1 << 20
"""So many rows, or rows of so many bytes, are worth what it takes to hand a piece to the loops."""
_LEAST_CHUNK_ROWS = 64
"""Chunks with fewer rows on average are left to columns, which take less for a chunk."""
_MOST_ROWS = 1 << 16
"""What Arrow or numpy copies of a piece is bounded by this: offsets that lie in another type."""
_NO_NULL = np.array([1], np.uint8)


def suits(records: Records) -> bool:
    """Tell whether records are for the loops: no headers, and on average no chunks of few rows."""
    has_headers = records.headers is not None and records.headers.null_count < len(records)
    columns = records.timestamp_ms, records.key, records.value
    chunks = max(getattr(column, "num_chunks", 1) for column in columns)
    return not has_headers and chunks * _LEAST_CHUNK_ROWS <= max(len(records), _LEAST_CHUNK_ROWS)


def filled(records: Records, form: Form, loops: Any) -> Generator[bytes, None, int]:
    """Give batches as `encode` does, and at last the row from which columns have to go on.

    `loops` is `compiled.writing`; the records suit them. Raises `ValueError` for a batch that
    outgrew its limit in compression.
    """
    batch = _Batch(records, form, loops)
    first = 0
    for begin, end in _pieces(records):
        if records.timestamp_ms.slice(begin, end - begin).null_count:
            return first
        columns = _columns(records, begin, end)
        row, reason = 0, loops.FULL
        while reason == loops.FULL:
            row, reason = batch.add(*columns, row)
            if reason == loops.REFUSED:
                return first
            if reason == loops.FULL:
                yield batch.sealed(first)
                first = begin + row
        del columns  # Before the next piece is copied.
    if first < len(records):
        yield batch.sealed(first)
    return len(records)


class _Batch:
    """The batch in the making, and the room that it is made in."""

    def __init__(self, records: Records, form: Form, loops: Any) -> None:
        self._form, self._loops = form, loops
        self._first_offset = int(records.offsets(0, 1)[0]) if len(records) else 0
        self._room = max(form.batch_bytes - v2.HEADER_BYTES, 0)
        base = -1 if form.delete_horizon_ms is None else form.delete_horizon_ms
        self._limits = self._room, base, records.is_from_log
        self._usual = np.empty(max(self._room, _LEAST_ROOM_BYTES), np.uint8)
        self._begin(-1)

    def _begin(self, last_offset: int) -> None:
        """Begin a batch behind this offset."""
        self._state = np.zeros(self._loops.STATE, np.int64)
        self._state[self._loops.LAST_OFFSET] = last_offset
        self._out = self._usual

    def add(self, rows: Any, fields: Any, row: int) -> tuple[int, int]:
        """Add rows from `row` on; gives the first that it does not take, and why."""
        written = int(self._state[self._loops.SIZE])
        end, reason = self._loops.fit(rows, fields, row, self._limits, self._state)
        size = int(self._state[self._loops.SIZE])
        if size > MAX_BATCH_BYTES - v2.HEADER_BYTES:
            return row, self._loops.REFUSED
        if size > len(self._out):  # Of one record, which is larger than a batch.
            self._out = np.empty(size, np.uint8)
        self._loops.write(rows, fields, (row, end), self._state, self._out, written)
        return end, reason

    def sealed(self, first_row: int) -> bytes:
        """End the batch, whose first row this is, and begin the next one."""
        size, count, base, last, base_timestamp, latest = self._state.tolist()
        given = self._form.append_time_ms
        span = Span(
            base_offset=base,
            last_offset_delta=last - base,
            base_timestamp=base_timestamp,
            max_timestamp=latest if given is None else given,
            base_sequence=advance(self._form.base_sequence, base - self._first_offset),
            count=count,
        )
        payload = [self._out[:size].data]
        made = sealed(payload, self._form, self._form.attributes, span, first_row)
        self._begin(last)
        return made


def _pieces(records: Records) -> Iterator[tuple[int, int]]:
    """Cut rows where a chunk of any column ends; of small chunks some are copied into a piece."""
    columns = records.timestamp_ms, records.key, records.value
    lengths = [[len(chunk) for chunk in chunks_of(column)] for column in columns]
    ends = np.unique(np.concatenate([np.cumsum(one) for one in lengths]))
    begin = 0
    while begin < len(records):
        of_chunk = int(ends[ends.searchsorted(begin, "right")])
        end = min(begin + _WORTH_ROWS, len(records))
        while end > of_chunk and _size(columns, begin, end) > _WORTH_BYTES:
            end = begin + (end - begin) // 2
        end = max(end, min(of_chunk, begin + _MOST_ROWS))
        yield begin, end
        begin = end


def _size(columns: Sequence[Column], begin: int, end: int) -> int:
    """Give the bytes of some rows."""
    return sum(column.slice(begin, end - begin).nbytes for column in columns)


def _columns(records: Records, begin: int, end: int) -> tuple[Any, Any]:
    """Give rows and fields as the loops take them; no timestamp is null."""
    timestamps = in_one_piece(records.timestamp_ms, begin, end).to_numpy()
    offsets, first = np.empty(0, np.int64), 0
    if isinstance(records.offset, int):
        first = records.offset + begin
    else:
        offsets = records.offsets(begin, end)
    fields = [_field(column, begin, end) for column in (records.key, records.value)]
    return (frozen(timestamps), frozen(offsets), first), tuple(fields)


def _field(column: Column, begin: int, end: int) -> tuple[Any, ...]:
    piece = in_one_piece(column, begin, end)
    valid, bounds, data = piece.buffers()
    given = np.frombuffer(bounds, np.int32, len(piece) + 1, 4 * piece.offset)
    bits, which = _NO_NULL, (0, 0)
    if piece.null_count:
        bits, which = np.frombuffer(valid, np.uint8), (piece.offset, -1)
    values = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return frozen(given), frozen(bits), which, frozen(values)
