"""Where a partition's log ends.

The rule: the end is found from the last index entry on, by headers. A torn tail after it is left
out, as a broker's recovery leaves it out; what else lies there is damage (`tail_check`). While a
broker holds the directory, an append may be under way, and nothing after the high watermark is
looked at.

A broker that was killed just after it rolled leaves the torn tail in the segment before an empty
active one. Its recovery goes through all segments from the one that holds the recovery point,
cuts the first that is torn and deletes those after it (docs/format.md, 14; Kafka's
`LogLoader.recoverLog`). klog does the same if those after it have no intact batch.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from klog.connector.kafka_dir.log_bounds import UNKNOWN_POSITION, LogEnd, RecoveryPoint
from klog.connector.kafka_dir.partition_directory import Segment
from klog.connector.kafka_dir.segment_reader import SegmentReader
from klog.connector.kafka_dir.tail_check import check_tail, end_before_torn_batches
from klog.connector.segment_chunks import read_chunks
from klog.errors import CorruptRecordError
from klog.logformat.array_types import Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import has_valid_crc
from klog.logformat.indexes.abstract_index import MAX_RELATIVE_OFFSET
from klog.url_secrets import without_passwords

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecoveredLog:
    """How many segments a broker's recovery would leave, and the end of the last of them."""

    segment_count: int
    end: LogEnd


def find_log_end(
    segments: Sequence[Segment],
    recovery_point: RecoveryPoint,
    find_end: Callable[[Segment], LogEnd],
) -> RecoveredLog:
    """Return what a broker's recovery would leave of a log.

    Nothing is written; segments that it would delete are logged.

    Args:
        segments: All segments, at least one.
        recovery_point: What the broker promises.
        find_end: Finds the end of a segment as `find_segment_end` does.

    Raises:
        CorruptRecordError: If the end of the last segment is damaged. Damage in an earlier segment
            is an error when it is read.
    """
    count, end = len(segments), find_end(segments[-1])
    if recovery_point.is_cleanly_shut_down or recovery_point.is_locked_by_broker:
        return RecoveredLog(count, end)
    bases = [segment.base_offset for segment in segments]
    first_recovered = max(bisect_right(bases, recovery_point.offset) - 1, 0)
    has_batch = end.position > 0
    for number in range(len(segments) - 2, first_recovered - 1, -1):
        if has_batch:
            break
        try:
            earlier_end = find_end(segments[number])
        except CorruptRecordError:
            break
        has_batch = earlier_end.position > 0
        if earlier_end.position < segments[number].log.size_bytes:
            count, end = number + 1, earlier_end
    for segment in segments[count:]:
        _log.warning(
            "%s: left out, as a broker's recovery would delete it: the segment before it ends in "
            "a torn append at offset %d",
            without_passwords(segment.log.path),
            end.next_offset,
        )
    return RecoveredLog(count, end)


def find_segment_end(
    reader: SegmentReader, recovery_point: RecoveryPoint, hint: LogEnd | None = None
) -> LogEnd:
    """Return the end of a segment: no intact batch lies after it.

    Args:
        reader: The segment.
        recovery_point: What the broker promises.
        hint: An end that was found before, from which to go on.

    Raises:
        CorruptRecordError: If what lies after the end is damage, with the position in the file.
    """
    file, base = reader.file, reader.base_offset
    end = hint if hint is not None and _is_still_end(reader, hint) else _last_indexed(reader)
    last_batch: tuple[int, int] | None = None
    damage: CorruptRecordError | None = None
    try:
        for chunk in read_chunks(file, end.position, file.size_bytes, end.next_offset):
            batches = chunk.batches.where(_in_segment(chunk.batches, base))
            if len(batches):
                ends = chunk.position + batches.ends
                last_batch = (chunk.position + int(batches.starts[-1]), int(ends[-1]))
                end = LogEnd(int(batches.next_offsets[-1]), *reversed(last_batch))
            if len(batches) < len(chunk.batches):
                reason = f"a batch's offsets leave the segment of offset {base}"
                raise CorruptRecordError(reason, end.position)
    except CorruptRecordError as exc:
        damage = exc
    if recovery_point.is_locked_by_broker:
        if damage is not None and end.next_offset < recovery_point.offset:
            raise CorruptRecordError(f"{damage.reason}, below the high watermark", end.position)
        return end
    if end.position < file.size_bytes:
        check_tail(reader, end, recovery_point, damage)
    if last_batch is not None and not has_valid_crc(file.read(*last_batch)):
        return end_before_torn_batches(reader, end, recovery_point)
    return end


def _is_still_end(reader: SegmentReader, hint: LogEnd) -> bool:
    """Return whether the batch that ended the log when the hint was made still lies there.

    A file system gives an inode's number to another file as soon as no file has it.
    """
    if hint.last_batch == UNKNOWN_POSITION:
        return False
    return reader.batch_end(hint.last_batch) == hint


def _last_indexed(reader: SegmentReader) -> LogEnd:
    """Start from the last index entry; one past the end is ignored (docs/format.md, seen 28)."""
    positions = reader.index().positions
    return LogEnd(reader.base_offset, int(positions[-1]) if len(positions) else 0)


def _in_segment(batches: v2.Batches, base_offset: int) -> Mask:
    """Return which batches come before any that leaves its segment (docs/format.md, seen 26)."""
    is_inside = batches.next_offsets - 1 <= base_offset + MAX_RELATIVE_OFFSET
    is_inside &= batches.base_offsets >= base_offset
    first_outside = int(np.argmin(is_inside)) if not is_inside.all() else len(is_inside)
    mask: Mask = np.arange(len(is_inside)) < first_outside
    return mask
