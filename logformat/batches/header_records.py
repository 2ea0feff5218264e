"""Records as far as the headers of their batches say them: these are not decompressed.

The rule (docs/format.md, 2): a header says how many records a batch has, and the type of their
timestamps. It says their offsets if no compaction has removed one: then there are as many records
as offsets. It says their timestamps with LogAppendTime, which they all have, and those of a batch
of one record, whose first and largest timestamp are the same. With more records neither suffices:
a record between may be earlier than the first one. An entry of message format v0 or v1 says nothing
here, and is decoded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from klog.logformat.array_types import Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import check_record_counts, decode_records
from klog.logformat.batches.record_columns import RecordColumns

HEADER_COLUMNS = frozenset({"offset", "timestamp_ms", "timestamp_type"})
"""The columns of `RecordColumns` that headers may say."""
_BLOCK_RECORDS = 1 << 18
"""Records that are put together at a time; a batch alone may have more."""


def are_headers_enough(batches: v2.Batches, columns: Collection[str]) -> Mask:
    """Return the batches whose header says the columns of all their records.

    Args:
        batches: Any batches. The header of one without records is enough, too.
        columns: Names of `RecordColumns`. Without `offset` the offsets do not matter.
    """
    headers = batches.headers
    if not HEADER_COLUMNS.issuperset(columns):
        return np.zeros(len(batches), np.bool_)
    mask: Mask = ~batches.is_legacy
    if "offset" in columns:
        mask &= headers["count"] == headers["last_offset_delta"].astype(np.int64) + 1
    if "timestamp_ms" in columns:
        attributes = batches.attributes
        is_single = (headers["count"] == 1) & ((attributes & v2.DELETE_HORIZON) == 0)
        is_single &= headers["base_timestamp"] == headers["max_timestamp"]
        mask &= is_single | ((attributes & v2.LOG_APPEND_TIME) != 0)
    return mask


def decode_by_headers(
    data: bytes, batches: v2.Batches, columns: Collection[str], is_header_enough: Mask
) -> Iterator[RecordColumns]:
    """Yield the records of batches in parts, without reading those that headers say.

    The caller checks CRCs. Without `offset` among the columns, the offsets of a batch that is not
    read are its last ones: so many, and the last is right.

    Args:
        data: The buffer of the batches, and padding.
        batches: Batches of format v2.
        columns: Names of `HEADER_COLUMNS`.
        is_header_enough: The batches that are not read, as `are_headers_enough` says them.

    Raises:
        CorruptRecordError: A batch is damaged; its position is that of the batch.
    """
    check_record_counts(batches)
    ends = np.cumsum(batches.headers["count"].astype(np.int64))
    start = 0
    while start < len(batches):
        records_before = int(ends[start - 1]) if start else 0
        end = int(np.searchsorted(ends, records_before + _BLOCK_RECORDS, "right"))
        end = max(end, start + 1)
        yield _decode_block(data, batches.slice(start, end), columns, is_header_enough[start:end])
        start = end


def _decode_block(
    data: bytes, batches: v2.Batches, columns: Collection[str], is_header_enough: Mask
) -> RecordColumns:
    """Return the records of a few batches: those that are read, put between the others."""
    from_headers = _columns_of_headers(batches.where(is_header_enough), columns)
    if is_header_enough.all():
        return from_headers
    decoded = decode_records(data, batches.where(~is_header_enough), columns)
    is_from_header = np.repeat(is_header_enough, batches.headers["count"].astype(np.int64))

    def merge(name: str) -> Any:
        column = getattr(from_headers, name)
        if column is None:
            return None
        merged = np.empty(len(is_from_header), column.dtype)
        merged[is_from_header] = column
        merged[~is_from_header] = getattr(decoded, name)
        return merged

    return RecordColumns(*(merge(field.name) for field in fields(RecordColumns)))


def _columns_of_headers(batches: v2.Batches, columns: Collection[str]) -> RecordColumns:
    """Return the records of batches whose headers say the columns."""
    headers = batches.headers
    counts = headers["count"].astype(np.int64)
    ends = np.cumsum(counts)
    # The last offset of a batch is right, with gaps before it or not.
    offsets = np.arange(int(counts.sum())) + np.repeat(batches.next_offsets - ends, counts)
    timestamps = timestamp_types = None
    if "timestamp_ms" in columns:
        timestamps = np.repeat(headers["max_timestamp"].astype(np.int64), counts)
    if "timestamp_type" in columns:
        has_append_time = (batches.attributes & v2.LOG_APPEND_TIME) != 0
        timestamp_types = np.repeat(has_append_time.astype(np.int8), counts)
    return RecordColumns(offsets, timestamps, timestamp_types, None, None, None)
