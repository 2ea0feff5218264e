"""Walk a segment's log to its end, past what is damaged in it.

The rule: one damage is reported once, at the batch that has it. A batch whose length was changed
points to a place where no batch is. So if there is no batch at a place, the batch before it is
blamed if its CRC fails. The walk goes on at the next batch: after bytes that cannot be a batch but
have a believable length, or at the next intact batch. If CRCs are computed and several batches in a
row fail, the length of the first may have been changed too: it was if an intact batch begins within
what seem to be the next ones. Offsets are not checked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import google_crc32c
import numpy as np

from klog.connector.segment_chunks import CHUNK_BYTES, Chunk
from klog.connector.store.readable_store import File
from klog.errors import CorruptRecordError
from klog.logformat.array_types import Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import has_valid_crc, has_valid_crc32c
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.batches.scan_batches import decode_batch_header, scan_frames
from klog.logformat.segments.torn_tail import plausible_starts

SEARCH_BYTES = 1 << 20
MAX_SEARCHED_BYTES = 1 << 30
"""The CRCs of so many bytes are computed to find one intact batch: hostile bytes could cost any
time."""
_WRONG_LENGTH = "the batch fails its CRC, and no batch is where it ends"


@dataclass(frozen=True, slots=True)
class WalkedBatches:
    """Batches that follow each other, and which of them fail their CRC, if it was computed."""

    chunk: Chunk
    fails_crc: Mask


@dataclass(frozen=True, slots=True)
class DamagedBytes:
    """Bytes from `position` to before `end` that are no batch; `kind` is that of the finding."""

    position: int
    end: int
    kind: str
    reason: str


def walk_damaged_log(
    file: File, end: int, chunk_bytes: int = CHUNK_BYTES, *, fast: bool = False
) -> Iterator[WalkedBatches | DamagedBytes]:
    """Yield the batches of a log and the damaged bytes between them.

    They follow each other without a gap, but damaged bytes may include the last batch before them.

    Args:
        file: The log.
        end: The position to walk to.
        chunk_bytes: About how many bytes are read at a time.
        fast: Compute a CRC only of a batch before a place that has no batch.
    """
    position, read_bytes = 0, chunk_bytes
    last: tuple[int, int] | None = None
    while position < end:
        data = file.read(position, min(position + read_bytes, end))
        batches, reason = _scan_frames(data)
        if len(batches):
            fails_crc = np.zeros(len(batches), np.bool_) if fast else _fails_crc(data, batches)
            wrong_length = _find_wrong_length(file, position, end, batches, fails_crc)
            if wrong_length is not None:
                number, next_position = wrong_length
                chunk = Chunk(data, position, batches.slice(0, number))
                if number:
                    yield WalkedBatches(chunk, fails_crc[:number])
                yield DamagedBytes(chunk.end_position, next_position, "crc", _WRONG_LENGTH)
                position, read_bytes, last = next_position, chunk_bytes, None
                continue
            yield WalkedBatches(Chunk(data, position, batches), fails_crc)
            last = position + int(batches.starts[-1]), position + int(batches.ends[-1])
            position, read_bytes = last[1], chunk_bytes
        if reason is None:
            if len(batches):
                continue
            size = _batch_bytes(data)
            reason = _refused(position, end, len(data), size, read_bytes)
            if reason is None:
                read_bytes = size
                continue
        damage = _damage(file, position, end, last, reason)
        yield damage
        position, read_bytes, last = damage.end, chunk_bytes, None


def _refused(position: int, end: int, data_bytes: int, size: int, read_bytes: int) -> str | None:
    """Return why no batch of `size` bytes can be at a position; None if it is only to be read."""
    if data_bytes < min(size, read_bytes) and position + data_bytes < end:
        return f"the file ends after {position + data_bytes} bytes"
    if position + size > end:
        return f"a batch of {size} bytes where {end - position} are left"
    if size > MAX_BATCH_BYTES:
        return f"a batch of {size} bytes is refused, the limit is {MAX_BATCH_BYTES}"
    return None


def _scan_frames(data: bytes) -> tuple[v2.Batches, str | None]:
    """Return the batches before the first place without one, and what is wrong there."""
    end, reason = len(data), None
    batches: v2.Batches | None = None
    while batches is None:
        try:
            batches = scan_frames(data, 0, end)
        except CorruptRecordError as exc:
            end, reason = exc.position, exc.reason
    sizes = batches.ends - batches.starts
    is_too_large = sizes > MAX_BATCH_BYTES
    if is_too_large.any():
        first = int(np.argmax(is_too_large))
        batches = batches.slice(0, first)
        reason = f"a batch of {sizes[first]} bytes is refused, the limit is {MAX_BATCH_BYTES}"
    return batches, reason


def _batch_bytes(data: bytes) -> int:
    """Return the size of the batch that `data` begins with, as far as it shows it."""
    if len(data) < v2.MIN_FRAME_BYTES:
        return v2.MIN_FRAME_BYTES
    return v2.FRAME_BYTES + int.from_bytes(data[8 : v2.FRAME_BYTES], "big", signed=True)


def _damage(
    file: File, position: int, end: int, last: tuple[int, int] | None, reason: str
) -> DamagedBytes:
    """Return which bytes are damaged if there is no batch at a position.

    `last` are start and end of the batch before it, if there is one.
    """
    if last is not None and not _is_intact(file.read(*last), last[1] - last[0]):
        return DamagedBytes(last[0], _next_intact(file, last[0] + 1, end), "crc", _WRONG_LENGTH)
    damaged_end = _believable_end(file, position, end)
    if damaged_end is None:
        damaged_end = _next_intact(file, position + 1, end)
    return DamagedBytes(position, damaged_end, "frame", reason)


def _is_intact(batch: bytes, size: int) -> bool:
    return len(batch) == size and has_valid_crc(batch)


def _believable_end(file: File, position: int, end: int) -> int | None:
    """Return where the bytes at a position end, if a batch or the end of the file is there."""
    size = _batch_bytes(file.read(position, position + v2.MIN_FRAME_BYTES))
    if not v2.HEADER_BYTES <= size <= MAX_BATCH_BYTES or position + size > end:
        return None
    if position + size == end:
        return end
    head = file.read(position + size, position + size + v2.HEADER_BYTES)
    next_size = _batch_bytes(head)
    header = decode_batch_header(head)
    is_batch = (
        header is not None
        and int(header["magic"]) == v2.MAGIC
        and position + size + next_size <= end
        and 0 <= int(header["count"]) <= int(header["last_offset_delta"]) + 1
    )
    return position + size if is_batch else None


def _fails_crc(data: bytes, batches: v2.Batches) -> Mask:
    """Return which batches fail their CRC."""
    view = np.frombuffer(data, np.uint8)  # The library takes it without a copy.
    bounds = zip(batches.starts.tolist(), batches.ends.tolist(), strict=True)
    computed = [google_crc32c.value(view[start + v2.CRC_START : end]) for start, end in bounds]
    fails: Mask = np.array(computed, np.uint32) != batches.headers["crc"]
    for number in np.flatnonzero(batches.is_legacy).tolist():
        fails[number] = not has_valid_crc(data[batches.starts[number] : batches.ends[number]])
    return fails


def _find_wrong_length(
    file: File, position: int, end: int, batches: v2.Batches, fails_crc: Mask
) -> tuple[int, int] | None:
    """Find a failing batch whose length was changed.

    An intact batch begins within what seem to be the next batches, which fail too.

    Returns:
        Its number and the position of the intact batch; None if there is no such batch.
    """
    is_first_failing = fails_crc & np.append(True, ~fails_crc[:-1])
    for number in np.flatnonzero(is_first_failing).tolist():
        valid = np.flatnonzero(~fails_crc[number:])
        stop = number + int(valid[0]) if len(valid) else len(batches)
        search_end = position + int(batches.ends[stop - 1])
        start = position + int(batches.starts[number]) + 1
        next_position = _next_intact(file, start, end, search_end)
        if next_position not in position + batches.ends[number:stop]:
            return number, next_position
    return None


def _next_intact(file: File, start: int, end: int, search_end: int | None = None) -> int:
    """Return the position of the next batch of format v2 whose CRC is right.

    Args:
        file: The log.
        start: Where the search begins.
        end: Where the log ends.
        search_end: Before which the batch must begin; by default `end`.

    Returns:
        Its position; `search_end` if there is none.
    """
    remaining_bytes, search_end = MAX_SEARCHED_BYTES, end if search_end is None else search_end
    while start < search_end:
        data = file.read(start, min(start + SEARCH_BYTES, search_end + v2.HEADER_BYTES - 1, end))
        if len(data) < v2.HEADER_BYTES:
            return search_end
        starts = plausible_starts(data, 0, end - start)
        is_v2 = np.frombuffer(data, np.uint8)[starts + v2.MAGIC_AT] == v2.MAGIC
        for batch_start in starts[is_v2].tolist():
            size = _batch_bytes(data[batch_start : batch_start + v2.HEADER_BYTES])
            remaining_bytes -= size
            if remaining_bytes < 0:
                return search_end
            if size > MAX_BATCH_BYTES:
                continue
            batch = data[batch_start : batch_start + size]
            if len(batch) < size:
                batch = file.read(start + batch_start, start + batch_start + size)
            if has_valid_crc32c(batch):
                return start + int(batch_start)
        start += len(data) - v2.HEADER_BYTES + 1
    return search_end
