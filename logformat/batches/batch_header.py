"""The header of a batch v2, written in front of its records (docs/format.md, 2).

The rule: this module writes every header, for both encoders of records, and checks the limits that
show only after compression.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import google_crc32c
import numpy as np

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.codecs.compress import compress

_MIN_CHUNK_BYTES = 8 << 10
"""Chunks that are smaller on average are joined: a copy takes less time than a call for each."""

_frame = struct.Struct(">qiibI").pack
_checked_fields = struct.Struct(">hiqqqhii").pack


@dataclass(frozen=True, slots=True)
class BatchBounds:
    """What the header of one batch says of its records."""

    base_offset: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    base_sequence: int
    record_count: int


def add_batch_header(
    chunks: Sequence[memoryview],
    attributes: BatchAttributes,
    attribute_bits: int,
    bounds: BatchBounds,
    first_row: int = 0,
) -> bytes:
    """Compress the records of a batch and return the batch with its header.

    Args:
        chunks: The encoded records.
        attributes: What the batch has in common with others of its write.
        attribute_bits: The `attributes` field.
        bounds: What the header says of the records.
        first_row: The number of the batch's first row, for the error.

    Raises:
        ValueError: The batch is larger than a reader takes: compression makes some records larger.
    """
    packed = compress(attribute_bits & v2.CODEC_MASK, chunks, attributes.level)
    packed_bytes = sum(map(len, packed))
    if packed_bytes < _MIN_CHUNK_BYTES * len(packed):
        packed = [b"".join(packed)]
    size = v2.HEADER_BYTES + packed_bytes
    if size > MAX_BATCH_BYTES:
        raise ValueError(
            f"row {first_row}: the batch of {bounds.record_count} records from this row has {size} "
            f"bytes after compression, the limit is {MAX_BATCH_BYTES}; lower batch_bytes, or do "
            "not compress"
        )
    checked_fields = _checked_fields(
        attribute_bits,
        bounds.last_offset_delta,
        bounds.base_timestamp,
        bounds.max_timestamp,
        attributes.producer_id,
        attributes.producer_epoch,
        bounds.base_sequence,
        bounds.record_count,
    )
    crc = google_crc32c.value(checked_fields)
    for chunk in packed:
        crc = google_crc32c.extend(crc, np.frombuffer(chunk, np.uint8))
    length = v2.MIN_LENGTH + packed_bytes
    frame = _frame(bounds.base_offset, length, attributes.leader_epoch, v2.MAGIC, crc)
    return b"".join((frame, checked_fields, *packed))
