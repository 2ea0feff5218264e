"""Rows as tests write them, for klog's encoder; and what it wrote, read back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.encode_batches import encode_batch
from klog.logformat.batches.record_headers import HEADERS_TYPE
from klog.logformat.batches.records_to_write import Records
from tests.support.batch_bytes import Record


def to_columns(rows: Sequence[Record], *, gaps: bool = False) -> Records:
    """Make Arrow columns of rows; with `gaps` every offset is given, else the first only."""
    offsets = np.array([row.offset for row in rows], np.int64)
    headers = None
    if any(row.headers for row in rows):
        headers = pa.array(
            [[{"key": k, "value": v} for k, v in row.headers] or None for row in rows], HEADERS_TYPE
        )
    return Records(
        timestamp_ms=pa.array([row.timestamp for row in rows], pa.int64()),
        key=pa.array([row.key for row in rows], pa.binary()),
        value=pa.array([row.value for row in rows], pa.binary()),
        headers=headers,
        offset=offsets if gaps else int(offsets[0]) if len(rows) else 0,
    )


def one_batch(
    form: BatchAttributes, *rows: Record, base: int | None = None, delta: int | None = None
) -> bytes:
    """Encode rows, whose offsets may have gaps, as one batch."""
    return encode_batch(to_columns(rows, gaps=True), form, base, delta)
