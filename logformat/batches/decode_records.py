"""Records of many batches to Arrow columns, without a Python loop over records.

    record   length varint | attributes int8 | timestampDelta varlong | offsetDelta varint
             | key length varint, key | value length varint, value
             | header count varint | headers                                  (docs/format.md, 3)

The rule: every length is checked against its record before it is used, and a record must end where
its length says. `record_bounds` finds where the records of all batches start and end. Then each
field is decoded for all records at once, and Arrow gathers keys and values out of the buffer they
lie in. `legacy_wrappers` finds what entries of message formats v0 and v1 hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Bytes, Indices, Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_limits import MAX_BATCH_RECORDS, MAX_DECODED_BYTES
from klog.logformat.batches.gather_fields import gather_fields
from klog.logformat.batches.legacy_messages import FieldBounds
from klog.logformat.batches.legacy_wrappers import LegacyMessages, decode_messages
from klog.logformat.batches.record_bounds import MIN_RECORD_BYTES, record_bounds
from klog.logformat.batches.record_columns import RecordColumns
from klog.logformat.batches.record_headers import HEADERS_TYPE, decode_headers
from klog.logformat.batches.record_sections import record_sections
from klog.logformat.batches.varint import VARLONG_BYTES, decode_varints

PART_RECORDS = 1 << 18
PART_BYTES = 4 << 20
"""Enough records to decode side by side, few enough to stay in the processor's caches."""


def decode_records(
    data: bytes,
    batches: v2.Batches,
    columns: Collection[str],
    selected: Mask | None = None,
) -> RecordColumns:
    """Return all records of batches as one set of columns; see `decode_parts`.

    Args:
        data: The buffer of the batches.
        batches: The batches.
        columns: Names of `RecordColumns`.
        selected: Which records to return, None for all; then all batches are of format v2.

    Raises:
        CorruptRecordError: A batch is damaged, or the records have more than `MAX_DECODED_BYTES`:
            only parts of them fit into Arrow's arrays.
    """
    parts: list[RecordColumns] = []
    size_bytes = 0
    for part in decode_parts(data, batches, columns, selected=selected):
        size_bytes += part.size_bytes
        if size_bytes > MAX_DECODED_BYTES:
            raise CorruptRecordError(
                f"records of more than {MAX_DECODED_BYTES} bytes at once are refused; "
                "read them in parts",
                int(batches.starts[0]),
            )
        parts.append(part)
    return parts[0] if len(parts) == 1 else RecordColumns.concat(parts)


def decode_parts(
    data: bytes,
    batches: v2.Batches,
    columns: Collection[str],
    part_bytes: int = PART_BYTES,
    part_records: int = PART_RECORDS,
    first_offset: int = 0,
    selected: Mask | None = None,
) -> Iterator[RecordColumns]:
    """Yield the records of batches in parts, so that memory does not depend on their compression.

    The caller checks CRCs. Formats v0 and v1 are not in one part with v2.

    Args:
        data: The buffer of the batches, and padding.
        batches: The batches.
        columns: Names of `RecordColumns`; the offsets are always there.
        part_bytes: A part is as many batches as decompress to about so many bytes,
        part_records: and at most so many of their records.
        first_offset: The offset after the batches before these. No record may lie below it, nor at
            or below the record before it: only here wrappers show what they hold.
        selected: Which records to return, None for all; then all batches are of format v2.

    Raises:
        CorruptRecordError: A batch is damaged; its position is that of the batch.
    """
    is_legacy = batches.is_legacy
    changes = np.flatnonzero(is_legacy[1:] != is_legacy[:-1]) + 1
    for start, end in pairwise([0, *changes.tolist(), len(batches)]):
        group = batches.slice(start, end)
        if start < end and (base_offset := int(group.base_offsets[0])) < first_offset:
            raise CorruptRecordError(
                f"batch at offset {base_offset} after offset {first_offset - 1}",
                int(group.starts[0]),
            )
        if start < end and is_legacy[start]:
            for messages in decode_messages(data, group, part_bytes, first_offset):
                yield from _message_columns(messages, columns, part_records)
                first_offset = int(messages.offsets[-1]) + 1
        else:
            yield from _record_parts(data, group, columns, part_bytes, part_records, selected)
            first_offset = int(group.next_offsets.max(initial=first_offset))


def check_record_counts(batches: v2.Batches) -> None:
    """Refuse a batch that counts more records than its bytes hold, or memory is allocated for.

    Args:
        batches: Any batches.

    Raises:
        CorruptRecordError: A header counts more than `MAX_BATCH_RECORDS`, or than the bytes of a
            batch that is not compressed have room for.
    """
    counts = batches.headers["count"].astype(np.int64)
    if (counts > MAX_BATCH_RECORDS).any():
        first = int(np.argmax(counts > MAX_BATCH_RECORDS))
        raise CorruptRecordError(
            f"a batch of {counts[first]} records is refused, the limit is {MAX_BATCH_RECORDS}",
            int(batches.starts[first]),
        )
    section_bytes = batches.ends - batches.starts - v2.HEADER_BYTES
    too_many = counts * MIN_RECORD_BYTES > section_bytes
    too_many &= ((batches.attributes & v2.CODEC_MASK) == 0) & ~batches.is_legacy
    if too_many.any():
        first = int(np.argmax(too_many))
        raise CorruptRecordError(
            f"{counts[first]} records in {section_bytes[first]} bytes", int(batches.starts[first])
        )


def _message_columns(
    messages: LegacyMessages, columns: Collection[str], part_records: int
) -> Iterator[RecordColumns]:
    """Yield messages of formats v0 and v1, which have no headers, as columns."""
    for start in range(0, len(messages.offsets), part_records):
        rows = slice(start, start + part_records)

        def gather_rows(fields: FieldBounds, rows: slice = rows) -> pa.BinaryArray:
            data = messages.sections.data
            return gather_fields(data, fields.starts[rows], fields.ends[rows], fields.is_null[rows])

        offsets = messages.offsets[rows]
        types = messages.timestamp_types[rows]
        yield RecordColumns(
            offset=offsets,
            timestamp_ms=messages.timestamps[rows] if "timestamp_ms" in columns else None,
            timestamp_type=types if "timestamp_type" in columns else None,
            key=gather_rows(messages.keys) if "key" in columns else None,
            value=gather_rows(messages.values) if "value" in columns else None,
            headers=pa.nulls(len(offsets), HEADERS_TYPE) if "headers" in columns else None,
            is_tombstone=messages.values.is_null[rows] if "is_tombstone" in columns else None,
        )


def _record_parts(
    data: bytes,
    batches: v2.Batches,
    columns: Collection[str],
    part_bytes: int,
    part_records: int,
    selected: Mask | None,
) -> Iterator[RecordColumns]:
    """Yield the records of batches of format v2; those that count 0 are not decompressed."""
    record = 0
    has_records = batches.headers["count"] != 0
    batches = batches if has_records.all() else batches.where(has_records)
    for part, sections in record_sections(data, batches, part_bytes):
        buffer = np.frombuffer(sections.data, np.uint8)
        check_record_counts(part)
        counts = part.headers["count"].astype(np.int64)
        starts, ends, batch_of = record_bounds(buffer, sections, counts)
        if selected is not None:
            mask = selected[record : record + len(starts)]
            record += len(starts)
            starts, ends, batch_of = starts[mask], ends[mask], batch_of[mask]
        try:
            for start in range(0, max(len(starts), 1), part_records):
                rows = slice(start, start + part_records)
                yield _decode_fields(
                    sections.data, buffer, starts[rows], ends[rows], batch_of[rows], part, columns
                )
        except CorruptRecordError as exc:
            raise CorruptRecordError(exc.reason, sections.origin_of(exc.position)) from exc


def _decode_fields(
    data: bytes | bytearray,
    buffer: Bytes,
    starts: Longs,
    ends: Longs,
    batch_of: Indices,
    batches: v2.Batches,
    columns: Collection[str],
) -> RecordColumns:
    _, at = decode_varints(buffer, starts)
    timestamp_deltas, at = decode_varints(buffer, at + 1, VARLONG_BYTES)
    offset_deltas, at = decode_varints(buffer, at)
    keys = _find_field(buffer, at, ends, "key")
    values = _find_field(buffer, keys.ends, ends, "value")
    header_counts, at = decode_varints(buffer, values.ends)
    _check_header_counts(header_counts, at, ends)
    offsets = batches.base_offsets[batch_of] + offset_deltas
    _check_offsets(offsets, offset_deltas, batch_of, batches, ends)
    has_append_time = (batches.attributes & v2.LOG_APPEND_TIME) != 0
    timestamps = timestamp_types = key = value = headers = None
    if "timestamp_ms" in columns:
        timestamps = batches.headers["base_timestamp"].astype(np.int64)[batch_of] + timestamp_deltas
        if has_append_time.any():
            append_times = batches.headers["max_timestamp"].astype(np.int64)[batch_of]
            timestamps = np.where(has_append_time[batch_of], append_times, timestamps)
    if "timestamp_type" in columns:
        timestamp_types = has_append_time.astype(np.int8)[batch_of]
    if "key" in columns:
        key = gather_fields(data, keys.starts, keys.ends, keys.is_null)
    if "value" in columns:
        value = gather_fields(data, values.starts, values.ends, values.is_null)
    if "headers" in columns:
        headers = decode_headers(data, at, ends, header_counts)
    return RecordColumns(
        offset=offsets,
        timestamp_ms=timestamps,
        timestamp_type=timestamp_types,
        key=key,
        value=value,
        headers=headers,
        is_tombstone=values.is_null if "is_tombstone" in columns else None,
    )


def _find_field(buffer: Bytes, positions: Longs, record_ends: Longs, name: str) -> FieldBounds:
    """Read the lengths at these positions and return where the bytes after them lie.

    Any negative length is null.
    """
    lengths, starts = decode_varints(buffer, positions)
    is_null = lengths < 0
    ends = starts + (np.where(is_null, 0, lengths) if is_null.any() else lengths)
    is_outside = ends >= record_ends
    if is_outside.any():
        row = int(np.argmax(is_outside))
        raise CorruptRecordError(
            f"{name} of {lengths[row]} bytes reaches past its record", int(positions[row])
        )
    return FieldBounds(starts, ends, is_null)


def _check_header_counts(counts: Longs, starts: Longs, ends: Longs) -> None:
    """Check that a record without headers ends here, and others have two bytes for each header."""
    is_wrong = (counts < 0) | (starts + 2 * counts > ends) | ((counts == 0) & (starts != ends))
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise CorruptRecordError(
            f"{counts[row]} headers in {ends[row] - starts[row]} bytes", int(starts[row] - 1)
        )


def _check_offsets(
    offsets: Longs, deltas: Longs, batch_of: Indices, batches: v2.Batches, ends: Longs
) -> None:
    """Check that offsets rise within a batch and stay within what its header says."""
    max_deltas = batches.headers["last_offset_delta"].astype(np.int64)[batch_of]
    is_wrong = (deltas < 0) | (deltas > max_deltas)
    is_wrong[1:] |= offsets[1:] <= offsets[:-1]
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise CorruptRecordError(
            f"record offset {offsets[row]} does not fit its batch", int(ends[row]) - 1
        )
