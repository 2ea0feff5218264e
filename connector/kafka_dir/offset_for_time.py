"""The first offset at or after a time, by Kafka's rule for ListOffsets (docs/format.md, 8.2).

The rule: the first segment whose largest timestamp reaches the time has the answer: the first
record in it, at or above the log start, whose timestamp is at least that. The time index says where
to start, if the batch of its entry confirms it. An index may lack its last entries, so the headers
after that entry decide. A message of format v0 has no time and is never the answer.
"""

from __future__ import annotations

import numpy as np

from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.kafka_dir.segment_reader import SegmentReader
from klog.connector.segment_chunks import read_chunks
from klog.errors import CorruptRecordError
from klog.logformat.batches.record_batch import NO_TIMESTAMP

_MAX_LONG = (1 << 63) - 1
_ENTRY_SEARCH_BYTES = 64 << 10
"""Batches that hold an index entry's offset lie within a few kilobytes of the position before."""


def offset_for_time(log: RawPartition, timestamp_ms: int, end_offset: int) -> int | None:
    """Return the offset of the first record at or after a time; None if there is none.

    Control batches and aborted records count, as they do for a broker.

    Args:
        log: The partition.
        timestamp_ms: The time, in ms since the epoch.
        end_offset: Records at or above this offset do not count.

    Raises:
        CorruptFileError: If a batch that has to be read is damaged.
        FileNotFoundError: If the partition has to be listed again.
    """
    for segment in log.segments:
        if segment.base_offset >= end_offset:
            return None
        reader = log.open(segment)
        try:
            offset = _offset_in_segment(log, reader, timestamp_ms)
        except CorruptRecordError as exc:
            raise exc.in_file(segment.log.path, str(log.name)) from exc
        finally:
            reader.close()
        if offset is not None:
            return offset if offset < end_offset else None
    return None


def max_timestamp_ms(log: RawPartition) -> int | None:
    """Return the largest timestamp in a partition; None without one.

    The time index of a segment says it up to its last entry; the headers after that say the rest.
    A batch that the log start cuts is decoded, as its largest timestamp may be that of a record
    below it.

    Args:
        log: The partition.

    Raises:
        CorruptFileError: If a batch that has to be read is damaged.
        FileNotFoundError: If the partition has to be listed again.
    """
    max_ms = NO_TIMESTAMP
    for segment in log.segments:
        reader = log.open(segment)
        try:
            max_ms = max(max_ms, _max_timestamp_in_segment(log, reader))
        except CorruptRecordError as exc:
            raise exc.in_file(segment.log.path, str(log.name)) from exc
        finally:
            reader.close()
    return None if max_ms == NO_TIMESTAMP else max_ms


def _max_timestamp_in_segment(log: RawPartition, reader: SegmentReader) -> int:
    # As below, only a read with a time decodes records.
    from klog.connector.decoded_offsets import max_timestamp_from

    # The last entry of a time index has the largest timestamp so far.
    position = _position_before(reader, max(log.log_start, reader.base_offset), _MAX_LONG)
    max_ms = NO_TIMESTAMP
    for chunk in read_chunks(reader.file, position, log.readable_bytes(reader)):
        max_ms = max_timestamp_from(chunk, log.log_start, max_ms)
    return max_ms


def _offset_in_segment(log: RawPartition, reader: SegmentReader, timestamp_ms: int) -> int | None:
    # It decodes records, which a read without a time does not need.
    from klog.connector.decoded_offsets import first_offset_at_time

    start_offset = max(log.log_start, reader.base_offset)
    position = _position_before(reader, start_offset, timestamp_ms)
    for chunk in read_chunks(reader.file, position, log.readable_bytes(reader)):
        offset = first_offset_at_time(chunk, timestamp_ms, log.log_start)
        if offset is not None:
            return offset
    return None


def _position_before(reader: SegmentReader, start_offset: int, timestamp_ms: int) -> int:
    """Return a position from which a scan meets the first record of at least a time."""
    index = reader.time_index()
    number = -1 if index is None else index.entry_before(timestamp_ms)
    if index is None or number < 0 or int(index.offsets[number]) <= start_offset:
        return reader.position_before(start_offset)
    offset, entry_ms = int(index.offsets[number]), int(index.timestamps[number])
    position = reader.position_before(offset)
    for chunk in read_chunks(
        reader.file, position, reader.file.size_bytes, chunk_bytes=_ENTRY_SEARCH_BYTES
    ):
        numbers = np.flatnonzero(chunk.batches.next_offsets > offset)
        if len(numbers):
            max_ms = int(chunk.batches.headers["max_timestamp"][numbers[0]])
            return position if max_ms == entry_ms else reader.position_before(start_offset)
    return reader.position_before(start_offset)
