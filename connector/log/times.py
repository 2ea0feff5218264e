"""The first offset at or after a time, by Kafka's rule for ListOffsets (format notes 8.4).

The first segment whose largest timestamp reaches the time holds the answer: the first record in it,
at or above the log start, whose timestamp is at least that. A segment's largest timestamp is its
time index's last entry; where that is missing or malformed, its batches' headers say.
"""

from __future__ import annotations

import numpy as np

from klog.connector.log.raw import PartitionLog
from klog.connector.log.segment import SegmentReader, chunks
from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat.columnar import decode


def offset_for_time(log: PartitionLog, timestamp_ms: int, bound: int) -> int | None:
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


def _in_segment(log: PartitionLog, reader: SegmentReader, timestamp_ms: int) -> int | None:
    segment = reader.segment
    start = log.log_start
    index = reader.time_index()
    if index is not None and len(index.timestamps):
        rolled = segment is not log.segments[-1]
        if rolled and int(index.timestamps[-1]) < timestamp_ms:
            return None
        start = max(start, index.offset_before(timestamp_ms, segment.base_offset))
    position = reader.position_before(start)
    for chunk in chunks(reader.file, position, log.readable_bytes(segment)):
        late = chunk.batches.headers["max_timestamp"] >= timestamp_ms
        late &= chunk.batches.next_offsets > log.log_start
        for number in np.flatnonzero(late).tolist():
            one = chunk.batches.part(number, number + 1)
            v2.check_crcs(chunk.data, one)
            columns = decode(chunk.data, one, ("timestamp_ms",))
            assert columns.timestamp_ms is not None
            match = (columns.timestamp_ms >= timestamp_ms) & (columns.offset >= log.log_start)
            if match.any():
                return int(columns.offset[int(np.argmax(match))])
    return None
