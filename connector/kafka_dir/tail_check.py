"""Whether the bytes after a log's end are a torn tail, which is left out, or damage.

The rule: `klog.logformat.segments.torn_tail` says what a torn tail is; here it meets a segment's
file. Bytes after the last complete batch, and complete batches at the end that fail their CRC, are
a torn tail. They are damage, and an error, if an intact batch lies after them, or if the broker had
flushed beyond them (docs/format.md, seen 25, 26, 28, 30). Nothing is left out without a warning,
except padding.
"""

from __future__ import annotations

import logging

from klog.connector.kafka_dir.log_bounds import LogEnd, RecoveryPoint
from klog.connector.kafka_dir.segment_reader import SegmentReader
from klog.connector.segment_chunks import read_chunks
from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import has_valid_crc, has_valid_crc32c
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.segments.torn_tail import is_padding, plausible_starts
from klog.url_secrets import without_passwords

_SEARCH_BYTES = 4 << 20
_SEARCH_FACTOR = 4
"""What may be summed up in a search, as a multiple of the bytes that are searched."""
_log = logging.getLogger(__name__)


def check_tail(
    reader: SegmentReader,
    end: LogEnd,
    recovery_point: RecoveryPoint,
    damage: CorruptRecordError | None,
) -> None:
    """Check that the bytes after a log's end are a torn tail.

    Args:
        reader: The segment, which is longer than its log.
        end: Where the log ends.
        recovery_point: What the broker promises.
        damage: What is wrong there; None if a batch is cut short.

    Raises:
        CorruptRecordError: If the bytes are damage.
    """
    file = reader.file
    reason = damage.reason if damage is not None else "a batch is cut short"
    intact_position = _find_intact_batch(reader, end)
    if intact_position is not None:
        raise CorruptRecordError(
            f"{reason}, but a batch seems to follow at position {intact_position}", end.position
        )
    tail = file.read(end.position, min(end.position + _SEARCH_BYTES, file.size_bytes))
    if _starts_with_valid_crc(tail):
        raise CorruptRecordError(reason, end.position)
    if end.next_offset < recovery_point.offset:
        raise CorruptRecordError(f"{reason}, in bytes that the broker had flushed", end.position)
    if not is_padding(tail):
        _log.warning(
            "%s: %d bytes after position %d are a torn append and left out, as a broker's "
            "recovery would leave them out",
            without_passwords(reader.segment.log.path),
            file.size_bytes - end.position,
            end.position,
        )


def end_before_torn_batches(
    reader: SegmentReader, end: LogEnd, recovery_point: RecoveryPoint
) -> LogEnd:
    """Return the end of a segment without the complete batches at its end that fail their CRC.

    Args:
        reader: The segment.
        end: Where its last complete batch ends, which fails its CRC.
        recovery_point: What the broker promises.

    Raises:
        CorruptRecordError: If the batches are damage.
    """
    intact_end = LogEnd(reader.base_offset, 0)
    for chunk in read_chunks(reader.file, 0, end.position):
        batches = chunk.batches
        for batch_start, batch_end, next_offset in zip(
            batches.starts.tolist(),
            batches.ends.tolist(),
            batches.next_offsets.tolist(),
            strict=True,
        ):
            batch = chunk.data[batch_start:batch_end]
            if has_valid_crc(batch):
                intact_end = LogEnd(next_offset, chunk.position + batch_end)
            elif len(batch) >= v2.HEADER_BYTES and has_valid_crc32c(batch):
                reason = f"magic {batch[v2.MAGIC_AT]} on a batch of format v2"
                raise CorruptRecordError(reason, chunk.position + batch_start)
    if recovery_point.is_cleanly_shut_down or intact_end.next_offset < recovery_point.offset:
        raise CorruptRecordError(
            "the last batch fails its CRC, in bytes that the broker had flushed",
            intact_end.position,
        )
    _log.warning(
        "%s: batches after position %d fail their CRC and are left out as a torn append",
        without_passwords(reader.segment.log.path),
        intact_end.position,
    )
    return intact_end


def _starts_with_valid_crc(tail: bytes) -> bool:
    """Return whether a complete batch with a valid CRC begins here: its damage lies outside it."""
    size = v2.FRAME_BYTES + int.from_bytes(tail[8:12], "big", signed=True)
    if not v2.MIN_BATCH_BYTES <= size <= len(tail):
        return False
    return has_valid_crc(tail[:size])


def _find_intact_batch(reader: SegmentReader, end: LogEnd) -> int | None:
    """Search the bytes after `end` for a complete batch with a valid CRC; return its position.

    What is summed up is bounded: bytes made to look like many batches inside each other are damage.
    """
    file = reader.file
    position = end.position + 1
    budget = _SEARCH_FACTOR * (file.size_bytes - end.position) + _SEARCH_BYTES
    while position + v2.MIN_BATCH_BYTES <= file.size_bytes:
        data = file.read(position, min(position + _SEARCH_BYTES, file.size_bytes))
        room = min(file.size_bytes - position, len(data) + MAX_BATCH_BYTES)
        for start in plausible_starts(data, end.next_offset, room).tolist():
            size = v2.FRAME_BYTES + int.from_bytes(data[start + 8 : start + 12], "big")
            budget -= size
            batch_start = position + start
            if budget < 0 or has_valid_crc(file.read(batch_start, batch_start + size)):
                return int(batch_start)
        if position + len(data) >= file.size_bytes:
            break
        position += max(len(data) - v2.HEADER_BYTES + 1, 1)
    return None
