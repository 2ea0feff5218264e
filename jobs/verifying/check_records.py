"""Decode all records of a segment: the deep form of verify does it, the fast form does not.

The rule: each batch that does not decode is found, however many there are. Keys and values are not
copied, only their lengths are checked; headers are decoded, as their names must be UTF-8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klog.connector.segment_chunks import Chunk
from klog.errors import CorruptRecordError
from klog.jobs.verifying.findings import Findings
from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import decode_parts
from klog.logformat.batches.record_columns import RecordColumns

_COLUMNS = ("timestamp_ms", "headers")
NO_TIMESTAMPS = ((1 << 63) - 1, v2.NO_TIMESTAMP)
"""The smallest and the largest timestamp of no records."""
_NO_RECORD = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class DecodedBatches:
    """Which batches do not decode; the smallest and largest timestamp of the others' records."""

    is_undecodable: Mask
    timestamp_range: tuple[int, int]


def find_undecodable(chunk: Chunk, valid: Mask, findings: Findings) -> DecodedBatches:
    """Decode the valid batches of a chunk, and add a finding for each that does not decode.

    Args:
        chunk: The chunk.
        valid: Which of its batches are decoded.
        findings: The segment's findings.
    """
    is_undecodable = np.zeros(len(valid), np.bool_)
    batches = chunk.batches.where(valid)
    try:
        timestamp_range = _timestamp_range(chunk, batches, findings)
        return DecodedBatches(is_undecodable, timestamp_range)
    except CorruptRecordError:
        pass  # Decode them one by one to find which.
    min_ms, max_ms = NO_TIMESTAMPS
    for number in np.flatnonzero(valid).tolist():
        try:
            batch = chunk.batches.slice(number, number + 1)
            batch_min_ms, batch_max_ms = _timestamp_range(chunk, batch, findings)
        except CorruptRecordError as exc:
            is_undecodable[number] = True
            position = chunk.position + int(chunk.batches.starts[number])
            findings.add("records", f"its records do not decode: {exc.reason}", position)
        else:
            min_ms, max_ms = min(min_ms, batch_min_ms), max(max_ms, batch_max_ms)
    return DecodedBatches(is_undecodable, (min_ms, max_ms))


def _timestamp_range(chunk: Chunk, batches: v2.Batches, findings: Findings) -> tuple[int, int]:
    """Decode batches, and return the smallest and the largest timestamp.

    Adds a finding for a batch whose header has another largest timestamp than its records.
    """
    min_ms, max_ms = NO_TIMESTAMPS
    batch_max_ms = np.full(len(batches), _NO_RECORD)
    has_legacy = bool(batches.is_legacy.any())
    if not has_legacy:
        batches = _with_contiguous_offsets(batches)
    next_offsets = batches.next_offsets
    for part in decode_parts(chunk.data, batches, _COLUMNS):
        timestamps = part.timestamp_ms
        if timestamps is None or not len(timestamps):
            continue
        min_ms = min(min_ms, int(timestamps.min()))
        max_ms = max(max_ms, int(timestamps.max()))
        if not has_legacy:
            _raise_max(batch_max_ms, next_offsets, part, timestamps)
    _check_max_timestamps(chunk, batches, batch_max_ms, findings)
    return min_ms, max_ms


def _with_contiguous_offsets(batches: v2.Batches) -> v2.Batches:
    """Return batches with offsets that follow each other; the real ones are checked elsewhere."""
    headers = batches.headers.copy()
    spans = headers["last_offset_delta"].astype(np.int64) + 1
    headers["base_offset"] = np.cumsum(spans) - spans
    return v2.Batches(batches.starts, batches.ends, headers)


def _raise_max(
    batch_max_ms: Longs, next_offsets: Longs, part: RecordColumns, timestamps: Longs
) -> None:
    """Raise the largest timestamp of each batch to those of its records in a part."""
    batch_numbers = np.searchsorted(next_offsets, part.offset, "right")
    starts = np.flatnonzero(np.append(True, batch_numbers[1:] != batch_numbers[:-1]))
    numbers = batch_numbers[starts]
    part_max_ms = np.maximum.reduceat(timestamps, starts)
    batch_max_ms[numbers] = np.maximum(batch_max_ms[numbers], part_max_ms)


def _check_max_timestamps(
    chunk: Chunk, batches: v2.Batches, batch_max_ms: Longs, findings: Findings
) -> None:
    header_ms = batches.headers["max_timestamp"].astype(np.int64)
    has_records = (batch_max_ms != _NO_RECORD) & ((batches.attributes & v2.CONTROL) == 0)
    # A broker's producer writes -1 if all timestamps are below it.
    is_wrong = (header_ms != batch_max_ms) & (
        header_ms != np.maximum(batch_max_ms, v2.NO_TIMESTAMP)
    )
    for number in np.flatnonzero(has_records & is_wrong).tolist():
        findings.add(
            "records",
            f"the largest time of its records is {batch_max_ms[number]} and its header says "
            f"{header_ms[number]}",
            chunk.position + int(batches.starts[number]),
        )
