"""Records of whole batches to Arrow columns, without a Python loop over records.

    record   length varint | attributes int8 | timestampDelta varlong | offsetDelta varint
             | key length varint, key | value length varint, value
             | header count varint | headers                                  (docs/format.md, 3)

`walk` finds where the records of all batches at hand begin and end. Then each field is decoded for
all records at once, and keys and values are gathered by Arrow out of the buffer they lie in. Every
length is checked against its record before it is used, and a record must end where its length says.
What entries of message formats v0 and v1 hold is found by `wrappers`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat import legacy
from klog.logformat.compiled.compiling import frozen
from klog.logformat.headers import HEADERS_TYPE, read_headers
from klog.logformat.index import Mask
from klog.logformat.legacy import Fields
from klog.logformat.sections import record_sections
from klog.logformat.varint import VARLONG_BYTES, Bytes, Longs, read_varints
from klog.logformat.walk import record_bounds
from klog.logformat.wrappers import Messages, messages

MAX_BATCH_RECORDS = 1 << 22
"""The most records that one batch may have: where each begins is held for all of them at once."""
MAX_DECODED_BYTES = 1 << 30
"""The most keys, values and headers in one piece: any one batch, and well below Arrow's 2 GiB."""
PART_RECORDS = 1 << 18
PART_BYTES = 4 << 20
"""Enough records to decode side by side, few enough to stay in the processor's caches."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Decoded records, a row each.

    `offset` and `timestamp_ms` int64, `timestamp_type` int8 (0 CreateTime, 1 LogAppendTime, -1
    none, as in v0); `key`, `value` Arrow binary, null where the record has null; `headers` Arrow
    list, null where the record has none; `is_tombstone` tells whose value is null. What was not
    asked for is None.
    """

    offset: Longs
    timestamp_ms: Longs | None
    timestamp_type: npt.NDArray[np.int8] | None
    key: pa.BinaryArray | None
    value: pa.BinaryArray | None
    headers: pa.ListArray | None
    is_tombstone: npt.NDArray[np.bool_] | None = None

    @property
    def size_bytes(self) -> int:
        """Give the memory that keys, values and headers take."""
        return sum(one.nbytes for one in (self.key, self.value, self.headers) if one is not None)

    def part(self, begin: int, end: int) -> Columns:
        """Keep the records from `begin` to before `end`, by number."""

        def cut(column: Any) -> Any:
            return None if column is None else column[begin:end]

        return Columns(
            cut(self.offset),
            cut(self.timestamp_ms),
            cut(self.timestamp_type),
            cut(self.key),
            cut(self.value),
            cut(self.headers),
            cut(self.is_tombstone),
        )

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        """Put parts of the same columns one behind the other."""

        def join(name: str) -> Any:
            columns = [getattr(part, name) for part in parts]
            if columns[0] is None:
                return None
            arrow = isinstance(columns[0], pa.Array)
            return pa.concat_arrays(columns) if arrow else np.concatenate(columns)

        return Columns(*(join(field.name) for field in fields(Columns)))


def decode(
    data: bytes, batches: v2.Batches, columns: Collection[str], wanted: Mask | None = None
) -> Columns:
    """Decode all records of `batches`, which lie in `data`, in one piece; see `decode_parts`.

    What is larger than `MAX_DECODED_BYTES` is refused: only its parts fit into Arrow's arrays.
    """
    parts: list[Columns] = []
    size_bytes = 0
    for part in decode_parts(data, batches, columns, wanted=wanted):
        size_bytes += part.size_bytes
        if size_bytes > MAX_DECODED_BYTES:
            raise CorruptRecordError(
                f"records of more than {MAX_DECODED_BYTES} bytes in one piece are refused; "
                "read them in parts",
                int(batches.starts[0]),
            )
        parts.append(part)
    return parts[0] if len(parts) == 1 else Columns.joined(parts)


def decode_parts(
    data: bytes,
    batches: v2.Batches,
    columns: Collection[str],
    part_bytes: int = PART_BYTES,
    part_records: int = PART_RECORDS,
    first_offset: int = 0,
    wanted: Mask | None = None,
) -> Iterator[Columns]:
    """Decode the records of `batches`, which lie in `data`; CRCs are the caller's to check.

    `columns` are names of `Columns`; offsets come always. A part is as many batches as decompress
    to about `part_bytes`, and `part_records` of their records at the most, so memory does not
    follow how well they compressed; formats v0 and v1 share no part with v2. No offset may lie
    below `first_offset`, nor at or below one before it: what a wrapper holds is seen only here.
    If `wanted` is given, a truth value for each record, only those are looked at; then all batches
    are v2. Raises `CorruptRecordError`, its position that of the batch.
    """
    is_legacy = batches.is_legacy
    changes = np.flatnonzero(is_legacy[1:] != is_legacy[:-1]) + 1
    for begin, end in pairwise([0, *changes.tolist(), len(batches)]):
        some = batches.part(begin, end)
        if begin < end and (base := int(some.base_offsets[0])) < first_offset:
            raise CorruptRecordError(
                f"batch at offset {base} behind offset {first_offset - 1}", int(some.starts[0])
            )
        if begin < end and is_legacy[begin]:
            for found in messages(data, some, part_bytes, first_offset):
                yield from _message_parts(found, columns, part_records)
                first_offset = int(found.offsets[-1]) + 1
        else:
            yield from _record_parts(data, some, columns, part_bytes, part_records, wanted)
            first_offset = int(some.next_offsets.max(initial=first_offset))


def _message_parts(
    found: Messages, columns: Collection[str], part_records: int
) -> Iterator[Columns]:
    """Make columns of messages of formats v0 and v1, which have no headers."""
    for begin in range(0, len(found.offsets), part_records):
        some = slice(begin, begin + part_records)
        count = len(found.offsets[some])

        def gathered(of: Fields, some: slice = some) -> pa.BinaryArray:
            loops = legacy.READING.given(0)
            gather = _gather if loops is None else partial(_gather_by, loops)
            return gather(found.sections.data, of.starts[some], of.ends[some], of.null[some])

        yield Columns(
            offset=found.offsets[some],
            timestamp_ms=found.timestamps[some] if "timestamp_ms" in columns else None,
            timestamp_type=found.timestamp_types[some] if "timestamp_type" in columns else None,
            key=gathered(found.keys) if "key" in columns else None,
            value=gathered(found.values) if "value" in columns else None,
            headers=pa.nulls(count, HEADERS_TYPE) if "headers" in columns else None,
            is_tombstone=found.values.null[some] if "is_tombstone" in columns else None,
        )


def _record_parts(
    data: bytes,
    batches: v2.Batches,
    columns: Collection[str],
    part_bytes: int,
    part_records: int,
    wanted: Mask | None,
) -> Iterator[Columns]:
    """Decode records of batches that are all of format v2; what no record counts is not opened."""
    record = 0
    counted = batches.headers["count"] != 0
    batches = batches if counted.all() else batches.where(counted)
    for part, sections in record_sections(data, batches, part_bytes):
        buffer = np.frombuffer(sections.data, np.uint8)
        counts = part.headers["count"].astype(np.int64)
        if (counts > MAX_BATCH_RECORDS).any():
            first = int(np.argmax(counts > MAX_BATCH_RECORDS))
            raise CorruptRecordError(
                f"a batch of {counts[first]} records is refused, the limit is {MAX_BATCH_RECORDS}",
                int(part.starts[first]),
            )
        starts, ends, batch_of = record_bounds(buffer, sections, counts)
        if wanted is not None:
            some_wanted = wanted[record : record + len(starts)]
            record += len(starts)
            starts, ends, batch_of = starts[some_wanted], ends[some_wanted], batch_of[some_wanted]
        try:
            for begin in range(0, max(len(starts), 1), part_records):
                some = slice(begin, begin + part_records)
                yield _fields(
                    sections.data, buffer, starts[some], ends[some], batch_of[some], part, columns
                )
        except CorruptRecordError as exc:
            raise CorruptRecordError(exc.reason, sections.origin_of(exc.position)) from exc


def _fields(
    data: bytes | bytearray,
    buffer: Bytes,
    starts: Longs,
    ends: Longs,
    batch_of: npt.NDArray[np.intp],
    batches: v2.Batches,
    columns: Collection[str],
) -> Columns:
    _, at = read_varints(buffer, starts)
    timestamp_deltas, at = read_varints(buffer, at + 1, VARLONG_BYTES)
    offset_deltas, at = read_varints(buffer, at)
    key_start, key_end, key_null = _bytes_field(buffer, at, ends, "key")
    value_start, value_end, value_null = _bytes_field(buffer, key_end, ends, "value")
    header_counts, at = read_varints(buffer, value_end)
    _check_header_counts(header_counts, at, ends)
    offsets = batches.base_offsets[batch_of] + offset_deltas
    _check_offsets(offsets, offset_deltas, batch_of, batches, ends)
    append_time = (batches.attributes & v2.LOG_APPEND_TIME) != 0
    timestamps = None
    if "timestamp_ms" in columns:
        timestamps = batches.headers["base_timestamp"].astype(np.int64)[batch_of] + timestamp_deltas
        if append_time.any():
            maxima = batches.headers["max_timestamp"].astype(np.int64)[batch_of]
            timestamps = np.where(append_time[batch_of], maxima, timestamps)
    return Columns(
        offset=offsets,
        timestamp_ms=timestamps,
        timestamp_type=append_time.astype(np.int8)[batch_of]
        if "timestamp_type" in columns
        else None,
        key=_gather(data, key_start, key_end, key_null) if "key" in columns else None,
        value=_gather(data, value_start, value_end, value_null) if "value" in columns else None,
        headers=read_headers(data, at, ends, header_counts) if "headers" in columns else None,
        is_tombstone=value_null if "is_tombstone" in columns else None,
    )


def _bytes_field(
    buffer: Bytes, at: Longs, ends: Longs, name: str
) -> tuple[Longs, Longs, npt.NDArray[np.bool_]]:
    """Read a length and step over its bytes: (start, end, is null); any negative length is null."""
    lengths, start = read_varints(buffer, at)
    null = lengths < 0
    end = start + (np.where(null, 0, lengths) if null.any() else lengths)
    outside = end >= ends
    if outside.any():
        index = int(np.argmax(outside))
        raise CorruptRecordError(
            f"{name} of {lengths[index]} bytes reaches past its record", int(at[index])
        )
    return start, end, null


def _check_header_counts(counts: Longs, at: Longs, ends: Longs) -> None:
    """Check that a record without headers ends here, and one with has two bytes for each."""
    wrong = (counts < 0) | (at + 2 * counts > ends) | ((counts == 0) & (at != ends))
    if wrong.any():
        index = int(np.argmax(wrong))
        raise CorruptRecordError(
            f"{counts[index]} headers in {ends[index] - at[index]} bytes", int(at[index] - 1)
        )


def _check_offsets(
    offsets: Longs,
    deltas: Longs,
    batch_of: npt.NDArray[np.intp],
    batches: v2.Batches,
    ends: Longs,
) -> None:
    """Check that offsets rise within a batch and stay inside what its header says."""
    wrong = (deltas < 0) | (
        deltas > batches.headers["last_offset_delta"].astype(np.int64)[batch_of]
    )
    wrong[1:] |= offsets[1:] <= offsets[:-1]
    if wrong.any():
        index = int(np.argmax(wrong))
        raise CorruptRecordError(
            f"record offset {offsets[index]} does not fit its batch", int(ends[index]) - 1
        )


def _gather_by(
    loops: Any, data: bytes | bytearray, start: Longs, end: Longs, null: npt.NDArray[np.bool_]
) -> pa.BinaryArray:
    """Copy as `_gather` does, by a compiled loop."""
    if len(start) < 2:
        return _gather(data, start, end, null)
    out = np.empty(int((end - start).sum()), np.uint8)
    bounds = np.empty(len(start) + 1, np.int32)
    loops.gather(frozen(np.frombuffer(data, np.uint8)), frozen(start), frozen(end), out, bounds)
    valid = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    buffers = [valid, pa.py_buffer(bounds), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.binary(), len(start), buffers)


def _gather(
    data: bytes | bytearray, start: Longs, end: Longs, null: npt.NDArray[np.bool_]
) -> pa.BinaryArray:
    """Copy `data[start[i]:end[i]]` of all records into one Arrow array, by Arrow's own take.

    Starts and ends rise, so they are the offsets of an array over `data` in which every second
    element is a field and those between are what lies between the fields. A lone field that is most
    of `data` stays where it is, if nobody writes there again.
    """
    count = len(start)
    if not count:
        return pa.array([], pa.binary())
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2] = start
    bounds[1::2] = end
    whole = pa.Array.from_buffers(
        pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    if count == 1 and isinstance(data, bytes) and 2 * int(end[0] - start[0]) > len(data):
        return whole
    wanted = np.arange(0, 2 * count, 2, dtype=np.int32)
    mask = null if null.any() else None
    return whole.take(pa.array(wanted, mask=mask))
