"""Walk a segment's log to its end, past what is damaged in it.

The rule: one damage is told once, at the batch that has it. A batch whose length was changed leads
astray, and what lies where it points is no batch; so behind a place that is none the batch before
is asked whether it keeps its CRC, and is blamed if it does not. The walk goes on at the next batch:
behind a batch that cannot be but has a believable length there, else where the next intact one is
found. Where CRCs are computed and several batches in a row fail, the first may have led astray too:
it did if an intact batch begins amid what seem to be the next. Offsets are not looked at here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import google_crc32c
import numpy as np

from klog.connector.log.segment import CHUNK_BYTES, Chunk
from klog.connector.store.files import File
from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.index import Mask
from klog.logformat.recovery import plausible_starts

SEARCH_BYTES = 1 << 20
MOST_SEARCHED_BYTES = 1 << 30
"""So much is held to CRCs in search of one intact batch; bytes made for it could cost any time."""


_LED_ASTRAY = "the batch fails its CRC, and no batch is where it ends"


@dataclass(frozen=True, slots=True)
class Piece:
    """Batches that follow each other, and which of them fail their CRC, if it was computed."""

    chunk: Chunk
    failing: Mask


@dataclass(frozen=True, slots=True)
class Fault:
    """Bytes from `position` to before `end` that are no batch; `kind` is that of the finding."""

    position: int
    end: int
    kind: str
    reason: str


def walk(
    file: File, end: int, chunk_bytes: int = CHUNK_BYTES, *, fast: bool = False
) -> Iterator[Piece | Fault]:
    """Give the batches before `end` in pieces of about `chunk_bytes`, and what lies between.

    Pieces and faults follow each other without a gap, but that a fault may take back the last
    batch before it. `fast` computes no CRC but of batches before a place that is none.
    """
    position, wanted = 0, chunk_bytes
    last: tuple[int, int] | None = None
    while position < end:
        data = file.read(position, min(position + wanted, end))
        batches, reason = _frames(data)
        if len(batches):
            failing = np.zeros(len(batches), np.bool_) if fast else _failing(data, batches)
            astray = _astray(file, position, end, batches, failing)
            if astray is not None:
                number, behind = astray
                chunk = Chunk(data, position, batches.part(0, number))
                if number:
                    yield Piece(chunk, failing[:number])
                yield Fault(chunk.end, behind, "crc", _LED_ASTRAY)
                position, wanted, last = behind, chunk_bytes, None
                continue
            yield Piece(Chunk(data, position, batches), failing)
            last = position + int(batches.starts[-1]), position + int(batches.ends[-1])
            position, wanted = last[1], chunk_bytes
        if reason is None:
            if len(batches):
                continue
            size = _size(data)
            if len(data) < min(size, wanted) and position + len(data) < end:
                reason = f"the file ends after {position + len(data)} bytes"
            elif position + size > end:
                reason = f"a batch of {size} bytes where {end - position} are left"
            elif size > MAX_BATCH_BYTES:
                reason = f"a batch of {size} bytes is refused, the limit is {MAX_BATCH_BYTES}"
            else:
                wanted = size
                continue
        fault = _fault(file, position, end, last, reason)
        yield fault
        position, wanted, last = fault.end, chunk_bytes, None


def _frames(data: bytes) -> tuple[v2.Batches, str | None]:
    """Find the batches before the first place that is none, and what is wrong there."""
    end, reason = len(data), None
    found: v2.Batches | None = None
    while found is None:
        try:
            found = v2.frames(data, 0, end)
        except CorruptRecordError as exc:
            end, reason = exc.position, exc.reason
    large = found.ends - found.starts > MAX_BATCH_BYTES
    if large.any():
        first = int(np.argmax(large))
        size = int(found.ends[first] - found.starts[first])
        found = found.part(0, first)
        reason = f"a batch of {size} bytes is refused, the limit is {MAX_BATCH_BYTES}"
    return found, reason


def _size(data: bytes) -> int:
    """Give the size of the batch that begins `data`, so far as it shows it."""
    if len(data) < v2.MIN_FRAME_BYTES:
        return v2.MIN_FRAME_BYTES
    return v2.FRAME_BYTES + int.from_bytes(data[8 : v2.FRAME_BYTES], "big", signed=True)


def _fault(file: File, position: int, end: int, last: tuple[int, int] | None, reason: str) -> Fault:
    """Say who is to blame for a place that is no batch, and where the walk goes on."""
    if last is not None and not _is_intact(file.read(*last), last[1] - last[0]):
        follows = _next_intact(file, last[0] + 1, end)
        return Fault(last[0], follows, "crc", _LED_ASTRAY)
    behind = _behind(file, position, end)
    if behind is None:
        behind = _next_intact(file, position + 1, end)
    return Fault(position, behind, "frame", reason)


def _is_intact(batch: bytes, size: int) -> bool:
    return len(batch) == size and v2.is_intact(batch)


def _behind(file: File, position: int, end: int) -> int | None:
    """Give the end of what stands where a batch should, if a batch or the file's end is there."""
    size = _size(file.read(position, position + v2.MIN_FRAME_BYTES))
    if not v2.HEADER_BYTES <= size <= MAX_BATCH_BYTES or position + size > end:
        return None
    if position + size == end:
        return end
    next_size = _size(head := file.read(position + size, position + size + v2.HEADER_BYTES))
    header = v2.header_of(head)
    is_one = (
        header is not None
        and int(header["magic"]) == v2.MAGIC
        and position + size + next_size <= end
        and 0 <= int(header["count"]) <= int(header["last_offset_delta"]) + 1
    )
    return position + size if is_one else None


def _failing(data: bytes, batches: v2.Batches) -> Mask:
    """Tell which batches fail their CRC."""
    view = np.frombuffer(data, np.uint8)  # The library takes it without a copy.
    spans = zip(batches.starts.tolist(), batches.ends.tolist(), strict=True)
    computed = [google_crc32c.value(view[start + v2.CHECKED_FROM : end]) for start, end in spans]
    bad: Mask = np.array(computed, np.uint32) != batches.headers["crc"]
    for number in np.flatnonzero(batches.is_legacy).tolist():
        bad[number] = not v2.is_intact(data[batches.starts[number] : batches.ends[number]])
    return bad


def _astray(
    file: File, position: int, end: int, batches: v2.Batches, failing: Mask
) -> tuple[int, int] | None:
    """Find a failing batch amid whose seeming followers, failing too, an intact one begins.

    Gives its number and the position of the intact one.
    """
    for number in np.flatnonzero(failing & np.append(True, ~failing[:-1])).tolist():
        rest = np.flatnonzero(~failing[number:])
        behind = number + int(rest[0]) if len(rest) else len(batches)
        until = position + int(batches.ends[behind - 1])
        found = _next_intact(file, position + int(batches.starts[number]) + 1, end, until)
        if found not in position + batches.ends[number:behind]:
            return number, found
    return None


def _next_intact(file: File, begin: int, end: int, until: int | None = None) -> int:
    """Find the next batch of format v2 that keeps its CRC, and begins before `until`.

    Gives `until`, or `end` if it is None, if there is none.
    """
    left, until = MOST_SEARCHED_BYTES, end if until is None else until
    while begin < until:
        data = file.read(begin, min(begin + SEARCH_BYTES, until + v2.HEADER_BYTES - 1, end))
        if len(data) < v2.HEADER_BYTES:
            return until
        starts = plausible_starts(data, 0, end - begin)
        is_v2 = np.frombuffer(data, np.uint8)[starts + v2.MAGIC_AT] == v2.MAGIC
        for start in starts[is_v2].tolist():
            size = _size(data[start : start + v2.HEADER_BYTES])
            left -= size
            if left < 0:
                return until
            if size > MAX_BATCH_BYTES:
                continue
            batch = data[start : start + size]
            if len(batch) < size:
                batch = file.read(begin + start, begin + start + size)
            if v2.keeps_crc32c(batch):
                return begin + int(start)
        begin += len(data) - v2.HEADER_BYTES + 1
    return until
