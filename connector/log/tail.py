"""Where a partition's log ends, and whether what lies behind that end may be left out.

The end is found from the last index entry on, by headers. Bytes behind the last whole batch, and
whole batches at the end that fail their CRC, are a torn tail, and left out as a broker's recovery
leaves them out. They are damage, and an error, if an intact batch lies behind them, or if the
broker had flushed beyond them (its recovery point says so): nothing is dropped in silence
(docs/format.md, seen 25, 26, 28, 30). While a broker holds the directory, an append may be under
way and nothing behind the high watermark is looked at.

A broker that was killed just after it rolled leaves the torn tail in the segment before an empty
active one. Its recovery goes through all segments from the one that holds the recovery point,
cuts the first that is torn and deletes those behind it (docs/format.md, 14; Kafka's
`LogLoader.recoverLog`). So does klog where those behind have no intact batch.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klog.connector.log.directory import Segment
from klog.connector.log.segment import SegmentReader, chunks
from klog.connector.store.files import File
from klog.errors import CorruptRecordError, without_passwords
from klog.logformat import batch as v2
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.index import MAX_RELATIVE_OFFSET
from klog.logformat.recovery import is_padding, plausible_starts

_SEARCH_BYTES = 4 << 20
_SEARCH_FACTOR = 4
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class End:
    """The end of a log: the offset behind its last record, the position behind its last batch.

    `last_batch` is where that batch begins, -1 where that is not known.
    """

    next_offset: int
    position: int
    last_batch: int = -1


@dataclass(frozen=True, slots=True)
class Flushed:
    """What the broker promised.

    `held` is whether it still runs. Then `offset` is its high watermark, else its recovery point,
    and `clean` is whether it left `.kafka_cleanshutdown`.
    """

    offset: int
    clean: bool
    held: bool


def find_log_end(
    segments: Sequence[Segment], flushed: Flushed, end_of: Callable[[Segment], End]
) -> tuple[int, End]:
    """Return how many segments a broker's recovery would leave, and the end of the last of them.

    `end_of` finds the end of a segment as `find_end` does, and raises what it raises. Only for the
    last segment is that passed on: damage in one before it is an error for who reads there.
    """
    count, end = len(segments), end_of(segments[-1])
    if flushed.clean or flushed.held:
        return count, end
    first_recovered = bisect_right([one.base_offset for one in segments], flushed.offset) - 1
    is_void = not end.position
    for number in range(len(segments) - 2, max(first_recovered, 0) - 1, -1):
        if not is_void:
            break
        try:
            before = end_of(segments[number])
        except CorruptRecordError:
            break
        is_void = not before.position
        if before.position < segments[number].log.size_bytes:
            count, end = number + 1, before
    for left in segments[count:]:
        _log.warning(
            "%s: left out, as a broker's recovery would delete it: the segment before it ends in "
            "a torn append at offset %d",
            left.log.path,
            end.next_offset,
        )
    return count, end


def find_end(reader: SegmentReader, flushed: Flushed, hint: End | None = None) -> End:
    """Find the end of a segment behind which no intact batch lies.

    `hint` is an end found before, from which to go on. Raises `CorruptRecordError` with the
    position in the file.
    """
    file, base = reader.file, reader.segment.base_offset
    end = hint if hint is not None and _still_ends(reader, hint) else _last_indexed(reader)
    last_batch: tuple[int, int] | None = None
    damage: CorruptRecordError | None = None
    try:
        for chunk in chunks(file, end.position, file.size_bytes, end.next_offset):
            inside = chunk.batches.where(_in_segment(chunk.batches, base))
            if len(inside):
                ends = chunk.position + inside.ends
                last_batch = (chunk.position + int(inside.starts[-1]), int(ends[-1]))
                end = End(int(inside.next_offsets[-1]), *reversed(last_batch))
            if len(inside) < len(chunk.batches):
                reason = f"a batch's offsets leave the segment of offset {base}"
                raise CorruptRecordError(reason, end.position)
    except CorruptRecordError as exc:
        damage = exc
    if flushed.held:
        if damage is not None and end.next_offset < flushed.offset:
            raise CorruptRecordError(f"{damage.reason}, below the high watermark", end.position)
        return end
    if end.position < file.size_bytes:
        _judge_tail(reader, end, flushed, damage)
    if last_batch is not None and not _is_intact(file, *last_batch):
        return _without_torn_batches(reader, end, flushed)
    return end


def _still_ends(reader: SegmentReader, hint: End) -> bool:
    """Tell whether the batch that ended the log when the hint was made still lies there.

    A file system gives an inode's number to another file as soon as it is free.
    """
    end = reader.batch_end(hint.last_batch) if hint.last_batch >= 0 else None
    return end == (hint.next_offset, hint.position)


def _last_indexed(reader: SegmentReader) -> End:
    """Start from the last index entry; one past the end is no entry (docs/format.md, seen 28)."""
    index = reader.index()
    base = reader.segment.base_offset
    return End(base, int(index.positions[-1])) if len(index.positions) else End(base, 0)


def _in_segment(batches: v2.Batches, base: int) -> npt.NDArray[np.bool_]:
    """Tell which batches come before any that leaves its segment (docs/format.md, seen 26)."""
    inside = batches.next_offsets - 1 <= base + MAX_RELATIVE_OFFSET
    inside &= batches.base_offsets >= base
    first_outside = int(np.argmin(inside)) if not inside.all() else len(inside)
    return np.arange(len(inside)) < first_outside


def _is_intact(file: File, begin: int, end: int) -> bool:
    return v2.is_intact(file.read(begin, end))


def _judge_tail(
    reader: SegmentReader, end: End, flushed: Flushed, damage: CorruptRecordError | None
) -> None:
    """Pass over bytes that a broker would drop as well; raise if they are damage."""
    file = reader.file
    room = file.size_bytes - end.position
    behind = _intact_batch_behind(reader, end)
    reason = damage.reason if damage is not None else "a batch is cut short"
    if behind is not None:
        raise CorruptRecordError(
            f"{reason}, but a batch seems to follow at position {behind}", end.position
        )
    head = file.read(end.position, min(end.position + _SEARCH_BYTES, file.size_bytes))
    if _keeps_crc(head):
        raise CorruptRecordError(reason, end.position)
    if end.next_offset < flushed.offset:
        raise CorruptRecordError(f"{reason}, in bytes that the broker had flushed", end.position)
    if not is_padding(head):
        _log.warning(
            "%s: %d bytes behind position %d are a torn append and left out, as a broker's "
            "recovery would leave them out",
            without_passwords(reader.segment.log.path),
            room,
            end.position,
        )


def _keeps_crc(head: bytes) -> bool:
    """Tell whether a whole batch begins here whose CRC holds: its damage lies outside the CRC."""
    size = v2.FRAME_BYTES + int.from_bytes(head[8:12], "big", signed=True)
    if not v2.MIN_BATCH_BYTES <= size <= len(head):
        return False
    return v2.is_intact(head[:size])


def _intact_batch_behind(reader: SegmentReader, end: End) -> int | None:
    """Search the bytes behind `end` for a whole batch whose CRC holds; give its position.

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
            if budget < 0 or _is_intact(file, position + start, position + start + size):
                return int(position + start)
        if position + len(data) >= file.size_bytes:
            break
        position += max(len(data) - v2.HEADER_BYTES + 1, 1)
    return None


def _without_torn_batches(reader: SegmentReader, end: End, flushed: Flushed) -> End:
    """Cut whole batches that fail their CRC off the end, back to the last intact one."""
    base, file = reader.segment.base_offset, reader.file
    kept = End(base, 0)
    for chunk in chunks(file, 0, end.position):
        for start, behind, next_offset in zip(
            chunk.batches.starts.tolist(),
            chunk.batches.ends.tolist(),
            chunk.batches.next_offsets.tolist(),
            strict=True,
        ):
            one = chunk.data[start:behind]
            if v2.is_intact(one):
                kept = End(next_offset, chunk.position + behind)
            elif len(one) >= v2.HEADER_BYTES and v2.keeps_crc32c(one):
                reason = f"magic {one[v2.MAGIC_AT]} on a batch of format v2"
                raise CorruptRecordError(reason, chunk.position + start)
    if flushed.clean or kept.next_offset < flushed.offset:
        raise CorruptRecordError(
            "the last batch fails its CRC, in bytes that the broker had flushed", kept.position
        )
    _log.warning(
        "%s: batches behind position %d fail their CRC and are left out as a torn append",
        without_passwords(reader.segment.log.path),
        kept.position,
    )
    return kept
