"""What no header says: the first offset of an old message or at a time, and the time of a part.

The rule: only the records themselves say these, so they are decoded, and the CRC is checked first.
A compressed message of format v0 or v1 has the last offset in its header, and a batch's largest
timestamp may be that of any record (docs/format.md, 4 and 8.2).
"""

from __future__ import annotations

import numpy as np

from klog.connector.segment_chunks import Chunk, at_file_position
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches


def first_offset_of_message(message: bytes) -> int:
    """Return the first offset of one complete message of format v0 or v1.

    Args:
        message: The bytes of the message; nothing follows them.

    Raises:
        CorruptRecordError: If its CRC or its content is wrong.
    """
    batches = scan_batches(message, 0, len(message))
    check_batch_crcs(message, batches)
    return int(decode_records(message, batches, ()).offset[0])


def first_offset_at_time(chunk: Chunk, timestamp_ms: int, start_offset: int) -> int | None:
    """Return the first offset in a chunk whose timestamp is at least a time; None if none is.

    Args:
        chunk: The chunk.
        timestamp_ms: The time.
        start_offset: Records below it do not count.

    Raises:
        CorruptRecordError: If a batch that has to be read is damaged.
    """
    is_late = chunk.batches.headers["max_timestamp"] >= timestamp_ms
    is_late &= chunk.batches.next_offsets > start_offset
    for number in np.flatnonzero(is_late).tolist():
        batch = chunk.batches.slice(number, number + 1)
        with at_file_position(chunk.position):
            check_batch_crcs(chunk.data, batch)
            columns = decode_records(chunk.data, batch, ("timestamp_ms", "timestamp_type"))
        assert columns.timestamp_ms is not None
        assert columns.timestamp_type is not None
        is_match = (columns.timestamp_ms >= timestamp_ms) & (columns.offset >= start_offset)
        is_match &= columns.timestamp_type >= 0
        if is_match.any():
            return int(columns.offset[int(np.argmax(is_match))])
    return None


def max_timestamp_from(chunk: Chunk, start_offset: int, known_ms: int = v2.NO_TIMESTAMP) -> int:
    """Return the largest timestamp in a chunk of a record at or after an offset.

    The headers say it of batches that begin there or later. The batch that the offset cuts is
    decoded if its header says a larger one: the record that has it may be an earlier one.

    Args:
        chunk: The chunk.
        start_offset: Records below it do not count.
        known_ms: Timestamps up to this one do not matter.

    Returns:
        The timestamp, or `known_ms` if there is no larger one.

    Raises:
        CorruptRecordError: If a batch that has to be read is damaged.
    """
    batches, timestamps = chunk.batches, chunk.batches.headers["max_timestamp"]
    is_readable = batches.next_offsets > start_offset
    is_cut = is_readable & (batches.min_offsets < start_offset)
    max_ms = int(timestamps[is_readable & ~is_cut].max(initial=known_ms))
    for number in np.flatnonzero(is_cut & (timestamps > max_ms)).tolist():
        batch = batches.slice(number, number + 1)
        with at_file_position(chunk.position):
            check_batch_crcs(chunk.data, batch)
            columns = decode_records(chunk.data, batch, ("timestamp_ms", "timestamp_type"))
        assert columns.timestamp_ms is not None
        assert columns.timestamp_type is not None
        is_counted = (columns.offset >= start_offset) & (columns.timestamp_type >= 0)
        max_ms = int(columns.timestamp_ms[is_counted].max(initial=max_ms))
    return max_ms
