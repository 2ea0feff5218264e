"""Rewrite one batch with the records that a cleaning retains of it.

The rule (docs/format.md, 20): a batch keeps base offset and last offset, leader epoch, producer,
epoch and base sequence, flags and codec. Its records keep offsets, timestamps and headers. An
emptied batch keeps its maximum timestamp, and loses codec and delete horizon: 61 bytes.

Messages of formats v0 and v1 become a batch v2 of the same records. (Kafka 4 rewrites all of them,
also those that it could keep; before, it wrote another wrapper, and went by the file's time.) A
batch v2 has a timestamp type: messages v0 have none, so it is CreateTime, with timestamp -1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.encode_batches import empty_batch, encode_batch
from klog.logformat.batches.record_columns import RecordColumns
from klog.logformat.batches.records_to_write import Records
from klog.logformat.cleaning.filter_records import RetainedRecords

RecordsToRewrite: TypeAlias = RecordColumns | RetainedRecords
"""The retained records of a batch: decoded, or filtered by kernels without decoding."""
COLUMNS = ("timestamp_ms", "timestamp_type", "key", "value", "headers")
"""What is decoded of records that are written again."""


def empty_of(batch: v2.Batches) -> bytes:
    """Return a batch without records that has the last offset and producer of another.

    Args:
        batch: One batch.

    Raises:
        ValueError: For a header that no writer may write.
    """
    header, last_offset = batch.headers[0], int(batch.next_offsets[0]) - 1
    # Brokers accept timestamps below -1; a batch without records has -1 at least.
    max_timestamp = max(int(header["max_timestamp"]), v2.NO_TIMESTAMP)
    if int(header["magic"]) < v2.MAGIC:
        return empty_batch(BatchAttributes(), last_offset, 0, max_timestamp)
    delta = int(header["last_offset_delta"])
    attributes = _attributes_of(header, None)
    return empty_batch(attributes, int(header["base_offset"]), delta, max_timestamp)


def rewrite_batch(
    batch: v2.Batches, records: RecordsToRewrite, delete_horizon_ms: int | None
) -> bytes:
    """Return a batch with the records that are left of another.

    Args:
        batch: One batch.
        records: Its retained records.
        delete_horizon_ms: Its delete horizon after the cleaning, None for none.

    Raises:
        ValueError: For a header that no writer may write, or a batch that is too large.
    """
    header, last_offset = batch.headers[0], int(batch.next_offsets[0]) - 1
    base_offset = int(header["base_offset"])
    if isinstance(records, RetainedRecords):
        attributes = _attributes_of(header, delete_horizon_ms)
        return records.encode(attributes, base_offset, last_offset - base_offset)
    if int(header["magic"]) < v2.MAGIC:
        attributes = replace(
            _attributes_of_legacy(header, records), delete_horizon_ms=delete_horizon_ms
        )
        base_offset = int(records.offset[0])
    else:
        attributes = _attributes_of(header, delete_horizon_ms)
    return encode_batch(_records_of(records), attributes, base_offset, last_offset - base_offset)


def _records_of(columns: RecordColumns) -> Records:
    assert columns.headers is not None
    has_headers = columns.headers.null_count < len(columns.headers)
    return Records(
        pa.array(columns.timestamp_ms),
        columns.key,
        columns.value,
        columns.headers if has_headers else None,
        columns.offset,
        is_from_log=True,
    )


def _attributes_of(header: v2.Headers, delete_horizon_ms: int | None) -> BatchAttributes:
    """Return what a rewritten batch v2 takes from its header."""
    flags = int(header["attributes"])
    append_time_ms = int(header["max_timestamp"]) if flags & v2.LOG_APPEND_TIME else None
    return BatchAttributes(
        codec=flags & v2.CODEC_MASK,
        leader_epoch=int(header["leader_epoch"]),
        producer_id=int(header["producer_id"]),
        producer_epoch=int(header["producer_epoch"]),
        base_sequence=int(header["base_sequence"]),
        is_transactional=bool(flags & v2.TRANSACTIONAL),
        is_control=bool(flags & v2.CONTROL),
        append_time_ms=append_time_ms,
        delete_horizon_ms=delete_horizon_ms,
    )


def _attributes_of_legacy(header: v2.Headers, columns: RecordColumns) -> BatchAttributes:
    assert columns.timestamp_ms is not None
    assert columns.timestamp_type is not None
    has_append_time = bool(len(columns.offset)) and int(columns.timestamp_type[0]) == 1
    append_time_ms = int(columns.timestamp_ms[0]) if has_append_time else None
    return BatchAttributes(
        codec=int(header["attributes"]) & v2.CODEC_MASK, append_time_ms=append_time_ms
    )
