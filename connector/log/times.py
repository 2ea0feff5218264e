"""The first offset at or after a time, by Kafka's rule for ListOffsets (docs/format.md, 8.2).

The first segment whose largest timestamp reaches the time holds the answer: the first record in it,
at or above the log start, whose timestamp is at least that. The time index says from where on to
look, if the batch of the entry it gives confirms it; the headers behind that entry say the rest,
for an index may lack its last entries (docs/format.md, 8.2). A message of format v0 has no time and
is never the answer.
"""

from __future__ import annotations

import numpy as np

from klog.connector.log.partition import RawPartition
from klog.connector.log.segment import Chunk, SegmentReader, chunks, located
from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat.columnar import decode

_LOOK_BYTES = 64 << 10
"""Batches that hold an index entry's offset lie within a few kilobytes of the position before."""


def offset_for_time(log: RawPartition, timestamp_ms: int, bound: int) -> int | None:
    """Give the first offset whose timestamp is at least `timestamp_ms`, None if none below `bound`.

    Control batches and aborted records count, as they do for a broker.
    """
    for segment in log.segments:
        if segment.base_offset >= bound:
            return None
        reader = log.open(segment)
        try:
            found = _in_segment(log, reader, timestamp_ms)
        except CorruptRecordError as exc:
            raise exc.in_file(segment.log.path, str(log.name)) from exc
        finally:
            reader.close()
        if found is not None:
            return found if found < bound else None
    return None


def _in_segment(log: RawPartition, reader: SegmentReader, timestamp_ms: int) -> int | None:
    position = _position_before(
        reader, max(log.log_start, reader.segment.base_offset), timestamp_ms
    )
    for chunk in chunks(reader.file, position, log.readable_bytes(reader)):
        found = first_at_time(chunk, timestamp_ms, log.log_start)
        if found is not None:
            return found
    return None


def _position_before(reader: SegmentReader, start: int, timestamp_ms: int) -> int:
    """Give a position from which a scan meets the first record of at least `timestamp_ms`."""
    index = reader.time_index()
    entry = -1 if index is None else index.entry_before(timestamp_ms)
    if index is None or entry < 0 or int(index.offsets[entry]) <= start:
        return reader.position_before(start)
    offset, timestamp = int(index.offsets[entry]), int(index.timestamps[entry])
    position = reader.position_before(offset)
    for chunk in chunks(reader.file, position, reader.file.size_bytes, chunk_bytes=_LOOK_BYTES):
        found = np.flatnonzero(chunk.batches.next_offsets > offset)
        if len(found):
            header = chunk.batches.headers[found[0]]
            confirmed = int(header["max_timestamp"]) == timestamp
            return position if confirmed else reader.position_before(start)
    return reader.position_before(start)


def first_at_time(chunk: Chunk, timestamp_ms: int, start: int) -> int | None:
    """Give the first offset in a chunk, from `start` on, whose timestamp is at least that."""
    late = chunk.batches.headers["max_timestamp"] >= timestamp_ms
    late &= chunk.batches.next_offsets > start
    for number in np.flatnonzero(late).tolist():
        one = chunk.batches.part(number, number + 1)
        with located(chunk.position):
            v2.check_crcs(chunk.data, one)
            columns = decode(chunk.data, one, ("timestamp_ms", "timestamp_type"))
        assert columns.timestamp_ms is not None
        assert columns.timestamp_type is not None
        match = (columns.timestamp_ms >= timestamp_ms) & (columns.offset >= start)
        match &= columns.timestamp_type >= 0
        if match.any():
            return int(columns.offset[int(np.argmax(match))])
    return None
