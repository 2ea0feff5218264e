"""Where the records of many batches begin and end, without a Python loop over records.

A record says where the next one begins, so one batch can only be walked in order; many can be
walked side by side. Step k of the walk moves all batches at hand from their k-th record to the next
one. A long batch that has a good share of all records is entered at several places besides its
start, by its share: places that look like the start of a record, and whose next ones do too. A
guess is believed only if the walk from before it arrives exactly there; else all batches are walked
from their starts alone, as the short ones always are.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from klog.errors import CorruptRecordError
from klog.logformat.sections import Sections
from klog.logformat.varint import TWO_BYTES, Bytes, Longs, pairs, read_varints

MIN_RECORD_BYTES = 7
"""Length, attributes and five empty fields."""

_LANES = 128
"""Walking fewer than this side by side costs more for calling numpy than for walking."""
_LONG_BATCH = 256
"""Batches of more records than this are worth entering at several places."""
_HOPS = 3
_WINDOW_RECORDS = 3
_MAX_WINDOW_BYTES = 16384


def record_bounds(
    buffer: Bytes, sections: Sections, counts: Longs
) -> tuple[Longs, Longs, npt.NDArray[np.intp]]:
    """Find each record's start and end and the number of its batch, in the order of the log.

    Raises `CorruptRecordError`, with the batch's origin, for a batch that its records do not fill.
    """
    too_many = counts * MIN_RECORD_BYTES > sections.ends - sections.starts
    if too_many.any():
        index = int(np.argmax(too_many))
        raise CorruptRecordError(
            f"{counts[index]} records in {sections.ends[index] - sections.starts[index]} bytes",
            int(sections.origins[index]),
        )
    batch_of = np.repeat(np.arange(len(counts)), counts)
    pieces = _pieces(sections, counts)
    long = pieces > 1
    entered = None
    if long.any():
        entered = _walk_entered(buffer, sections.where(long), counts[long], pieces[long])
    if entered is None:
        starts, ends = _walk_from_starts(buffer, sections, counts, batch_of)
    elif long.all():
        starts, ends = entered
    else:
        starts, ends = np.empty((2, len(batch_of)), np.int64)
        inside, short = long[batch_of], counts[~long]
        starts[inside], ends[inside] = entered
        starts[~inside], ends[~inside] = _walk_from_starts(
            buffer, sections.where(~long), short, np.repeat(np.arange(len(short)), short)
        )
    return starts, ends, batch_of


def _pieces(sections: Sections, counts: Longs) -> Longs:
    """Give the number of places at which to enter each batch; 0 and 1 are its start alone.

    All walk about as many records from each place, and a window of bytes to guess in fits between.
    """
    pieces = np.where(counts > _LONG_BATCH, _LANES * counts // max(int(counts.sum()), 1), 1)
    windows = _windows(sections, counts)
    pieces[windows > _MAX_WINDOW_BYTES] = 1
    window = int(windows[pieces > 1].max(initial=1))
    fitting: Longs = np.minimum(pieces, (sections.ends - sections.starts) // window)
    return fitting


def _windows(sections: Sections, counts: Longs) -> Longs:
    """Give the bytes that a few records of each batch take."""
    return (sections.ends - sections.starts) // np.maximum(counts, 1) * _WINDOW_RECORDS


def _walk_from_starts(
    buffer: Bytes, sections: Sections, counts: Longs, batch_of: npt.NDArray[np.intp]
) -> tuple[Longs, Longs]:
    """Walk each batch from its start; longest first, so that those still under way are a prefix."""
    order = np.argsort(-counts, kind="stable")
    starts, ends, falling = sections.starts[order], sections.ends[order], counts[order]
    ends = np.where(falling > 0, ends, starts)  # Kafka does not look at what no record counts.
    stops = _stops(falling)
    walked = _walk(buffer, starts, stops, _quick_step(buffer))
    if (_last_of_each(walked, falling, stops) != ends).any():
        # Long records stop the quick walk; what the careful one finds wrong is wrong.
        walked = _walk(buffer, starts, stops, _careful_step(buffer, sections))
        wrong = _last_of_each(walked, falling, stops) != ends
        if wrong.any():
            batch = int(order[np.argmax(wrong)])
            raise CorruptRecordError(
                f"{counts[batch]} records do not fill their batch", int(sections.origins[batch])
            )
    number = np.arange(len(batch_of)) - (np.cumsum(counts) - counts)[batch_of]
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    at = rank[batch_of]
    return walked[stops[number] + at], walked[stops[number + 1] + at]


def _stops(counts: Longs) -> Longs:
    """Give, for each step of the walk, where its positions begin; `counts` fall.

    A batch of n records is at n + 1 positions: before each record and behind the last.
    """
    steps = int(counts[0]) + 1 if len(counts) else 0
    lanes = np.searchsorted(-counts, -np.arange(steps), side="right")
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lanes)))


def _walk(buffer: Bytes, starts: Longs, stops: Longs, step: Callable[[Longs], Longs]) -> Longs:
    """Walk all batches side by side: their positions, step by step.

    A walk that goes astray stays inside the buffer and ends where its batch does not.
    """
    walked = np.empty(int(stops[-1]), np.int64)
    bounds = stops.tolist()
    limit = len(buffer) - 2
    here = walked[: len(starts)]
    here[:] = starts
    for begin, end in pairwise(bounds[1:]):
        there = walked[begin:end]
        here = here[: end - begin]
        np.add(here, step(here), out=there)
        np.minimum(there, limit, out=there)
        here = there
    return walked


def _last_of_each(walked: Longs, counts: Longs, stops: Longs) -> Longs:
    """Give the position behind the last record of each batch."""
    found: Longs = walked[stops[counts] + np.arange(len(counts))]
    return found


def _quick_step(buffer: Bytes) -> Callable[[Longs], Longs]:
    """Step by lengths of one and two bytes; stay put at a longer one, or one below 1."""
    words = pairs(buffer)
    return lambda here: _JUMPS.take(words[here])


def _careful_step(buffer: Bytes, sections: Sections) -> Callable[[Longs], Longs]:
    """Step by lengths of any size; stay put at one below 1."""

    def step(here: Longs) -> Longs:
        try:
            lengths, behind = read_varints(buffer, here)
        except CorruptRecordError as exc:
            raise CorruptRecordError(exc.reason, sections.origin_of(exc.position)) from exc
        return np.where(lengths > 0, behind - here + lengths, 0)

    return step


def _walk_entered(
    buffer: Bytes, sections: Sections, counts: Longs, pieces: Longs
) -> tuple[Longs, Longs] | None:
    """Walk long batches from several places each: (starts, ends), or None if a guess was wrong.

    It is given up at four times as many positions as there are records, so memory stays a share.
    """
    lanes, batch = _entries(buffer, sections, counts, pieces)
    stops = np.append(lanes[1:], 0)
    last = np.append(batch[1:] != batch[:-1], True)
    stops[last] = sections.ends
    limit = len(buffer) - 2
    step = _quick_step(buffer)
    most = 4 * int(counts.sum()) // len(lanes) + _LANES
    rows = [lanes]
    while len(rows) <= most:
        here = rows[-1]
        if len(rows) % 16 == 0 and (here >= stops).all():
            break
        rows.append(np.minimum(here + step(here), limit))
    walked = np.stack(rows)
    inside = walked < stops
    found = np.bincount(batch, inside.sum(axis=0), len(counts)).astype(np.int64)
    arrived = (walked == stops).any(axis=0).all()
    # A lane that stands still repeats its position: then there are more starts than records.
    if not arrived or (found != counts).any():
        return None
    starts: Longs = walked.T[inside.T]
    ends = np.append(starts[1:], 0)
    ends[np.cumsum(counts) - 1] = sections.ends
    return starts, ends


def _entries(
    buffer: Bytes, sections: Sections, counts: Longs, pieces: Longs
) -> tuple[Longs, npt.NDArray[np.intp]]:
    """Find where to enter the batches: (positions, number of the batch), both rising."""
    batch = np.arange(len(counts))
    owner = np.repeat(batch, pieces - 1)
    number = np.arange(1, len(owner) + 1) - (np.cumsum(pieces - 1) - (pieces - 1))[owner]
    sizes = sections.ends - sections.starts
    targets = sections.starts[owner] + number * sizes[owner] // pieces[owner]
    guesses = _guess(buffer, targets, int(_windows(sections, counts).max()))
    found = guesses >= 0
    lanes = np.concatenate((sections.starts, guesses[found]))
    owner = np.concatenate((batch, owner[found]))
    order = np.argsort(lanes, kind="stable")
    return lanes[order], owner[order]


def _guess(buffer: Bytes, targets: Longs, window: int) -> Longs:
    """Find at or behind each target the first place that seems to begin a record; else -1.

    A record's attributes are a zero byte behind a length of one or two bytes.
    """
    words = pairs(buffer)
    limit = len(buffer) - 2
    windows: npt.NDArray[np.void] = np.ndarray(
        (len(buffer) - window + 1,), f"V{window}", buffer.data, 0, (1,)
    )
    zeros = np.flatnonzero(windows[targets].view(np.uint8) == 0)
    owner = zeros // window
    attributes = targets[owner] + zeros % window
    at = np.concatenate((attributes - 2, attributes - 1))
    owner = np.concatenate((owner, owner))
    like = at >= targets[owner]
    order = np.argsort(at[like], kind="stable")
    at, owner = at[like][order], owner[like][order]
    there = at
    for _ in range(_HOPS):
        entry = TWO_BYTES.take(words[there])
        size = entry & 3
        like = (size > 0) & (entry >= MIN_RECORD_BYTES - 1 << 2)
        like &= buffer.take(there + size) == 0
        at, owner, there = at[like], owner[like], there[like] + _JUMPS.take(words[there[like]])
        np.minimum(there, limit, out=there)
    first = np.full(len(targets), -1, np.int64)
    first[owner[::-1]] = at[::-1]
    return first


def _jumps() -> Longs:
    """For each pair of bytes that may begin a record: bytes to the next one, 0 if unknown."""
    size, length = TWO_BYTES & 3, TWO_BYTES >> 2
    return np.where((size > 0) & (length > 0), size + length, 0).astype(np.int64)


_JUMPS = _jumps()
