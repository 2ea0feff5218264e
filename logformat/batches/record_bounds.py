"""Where the records of many batches start and end, without a Python loop over records.

The rule: a record says where the next one starts, so one batch can only be walked in order; many
can be walked side by side. Step k of the walk moves all batches from their k-th record to the next
one. A long batch that has a good share of all records is entered at several positions besides its
start, as many as its share: positions that look like the start of a record, and whose next ones do
too. A guess is believed only if the walk from before it arrives exactly there; otherwise all
batches are walked from their starts alone, as the short ones always are. (docs/format.md, 3;
docs/adr/0003.)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Bytes, Indices, Longs, Structs
from klog.logformat.batches.record_sections import RecordSections
from klog.logformat.batches.varint import TWO_BYTES, byte_pairs, decode_varints

MIN_RECORD_BYTES = 7
"""Length, attributes and five empty fields."""

_MIN_LANES = 128
"""To walk fewer batches side by side costs more calls of numpy than it saves steps."""
_MIN_ENTERED_RECORDS = 256
"""Batches of more records than this are worth entering at several positions."""
_CHECKED_RECORDS = 3
"""How many records in a row must look like records where a batch is entered."""
_WINDOW_RECORDS = 3
_MAX_WINDOW_BYTES = 16384


def record_bounds(
    buffer: Bytes, sections: RecordSections, counts: Longs
) -> tuple[Longs, Longs, Indices]:
    """Return the start, the end and the batch number of each record, in the order of the log.

    Args:
        buffer: The bytes of `sections.data`.
        sections: The records of each batch.
        counts: The record count of each batch.

    Raises:
        CorruptRecordError: The records do not fill their batch; the position is the batch's origin.
    """
    too_many = counts * MIN_RECORD_BYTES > sections.ends - sections.starts
    if too_many.any():
        index = int(np.argmax(too_many))
        raise CorruptRecordError(
            f"{counts[index]} records in {sections.ends[index] - sections.starts[index]} bytes",
            int(sections.origins[index]),
        )
    batch_of = np.repeat(np.arange(len(counts)), counts)
    lanes = _lane_counts(sections, counts)
    is_entered = lanes > 1
    bounds = None
    if is_entered.any():
        entered = sections.where(is_entered)
        bounds = _walk_entered(buffer, entered, counts[is_entered], lanes[is_entered])
    if bounds is None:
        starts, ends = _walk_from_starts(buffer, sections, counts, batch_of)
    elif is_entered.all():
        starts, ends = bounds
    else:
        starts, ends = np.empty((2, len(batch_of)), np.int64)
        in_entered, other_counts = is_entered[batch_of], counts[~is_entered]
        starts[in_entered], ends[in_entered] = bounds
        other_batches = np.repeat(np.arange(len(other_counts)), other_counts)
        starts[~in_entered], ends[~in_entered] = _walk_from_starts(
            buffer, sections.where(~is_entered), other_counts, other_batches
        )
    return starts, ends, batch_of


def _lane_counts(sections: RecordSections, counts: Longs) -> Longs:
    """Return the number of positions at which to enter each batch; 0 and 1 are its start alone.

    Walks from all positions take about as many records, and a window of bytes to guess in fits
    between the positions.
    """
    shares = _MIN_LANES * counts // max(int(counts.sum()), 1)
    lanes = np.where(counts > _MIN_ENTERED_RECORDS, shares, 1)
    windows = _window_bytes(sections, counts)
    lanes[windows > _MAX_WINDOW_BYTES] = 1
    max_window = int(windows[lanes > 1].max(initial=1))
    fitting: Longs = np.minimum(lanes, (sections.ends - sections.starts) // max_window)
    return fitting


def _window_bytes(sections: RecordSections, counts: Longs) -> Longs:
    """Return the bytes that a few records of each batch take."""
    return (sections.ends - sections.starts) // np.maximum(counts, 1) * _WINDOW_RECORDS


def _walk_from_starts(
    buffer: Bytes, sections: RecordSections, counts: Longs, batch_of: Indices
) -> tuple[Longs, Longs]:
    """Walk each batch from its start; longest first, so that unfinished batches are a prefix."""
    order = np.argsort(-counts, kind="stable")
    starts, ends, falling = sections.starts[order], sections.ends[order], counts[order]
    ends = np.where(falling > 0, ends, starts)  # Kafka ignores the bytes of a batch that counts 0.
    step_bounds = _step_bounds(falling)
    positions = _walk(buffer, starts, step_bounds, _quick_step(buffer))
    if (_last_positions(positions, falling, step_bounds) != ends).any():
        # Long records stop the quick walk; the careful walk finds whether there is damage.
        positions = _walk(buffer, starts, step_bounds, _careful_step(buffer, sections))
        is_wrong = _last_positions(positions, falling, step_bounds) != ends
        if is_wrong.any():
            batch = int(order[np.argmax(is_wrong)])
            raise CorruptRecordError(
                f"{counts[batch]} records do not fill their batch", int(sections.origins[batch])
            )
    number_in_batch = np.arange(len(batch_of)) - (np.cumsum(counts) - counts)[batch_of]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    lanes = ranks[batch_of]
    return (
        positions[step_bounds[number_in_batch] + lanes],
        positions[step_bounds[number_in_batch + 1] + lanes],
    )


def _step_bounds(counts: Longs) -> Longs:
    """Return, for each step of the walk, where its positions start; `counts` fall.

    A batch of n records is at n + 1 positions: before each record and after the last.
    """
    steps = int(counts[0]) + 1 if len(counts) else 0
    lanes = np.searchsorted(-counts, -np.arange(steps), side="right")
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lanes)))


def _walk(
    buffer: Bytes, starts: Longs, step_bounds: Longs, step: Callable[[Longs], Longs]
) -> Longs:
    """Return the positions of all batches, step by step.

    A walk that goes astray stays inside the buffer and does not end where its batch does.
    """
    positions = np.empty(int(step_bounds[-1]), np.int64)
    bounds = step_bounds.tolist()
    limit = len(buffer) - 2
    current = positions[: len(starts)]
    current[:] = starts
    for start, end in pairwise(bounds[1:]):
        following = positions[start:end]
        current = current[: end - start]
        np.add(current, step(current), out=following)
        np.minimum(following, limit, out=following)
        current = following
    return positions


def _last_positions(positions: Longs, counts: Longs, step_bounds: Longs) -> Longs:
    """Return the position after the last record of each batch."""
    last: Longs = positions[step_bounds[counts] + np.arange(len(counts))]
    return last


def _quick_step(buffer: Bytes) -> Callable[[Longs], Longs]:
    """Step by lengths of one and two bytes; stay at a longer one, or one below 1."""
    pairs = byte_pairs(buffer)
    return lambda positions: _RECORD_BYTES.take(pairs[positions])


def _careful_step(buffer: Bytes, sections: RecordSections) -> Callable[[Longs], Longs]:
    """Step by lengths of any size; stay at one below 1."""

    def step(positions: Longs) -> Longs:
        try:
            lengths, body_starts = decode_varints(buffer, positions)
        except CorruptRecordError as exc:
            raise CorruptRecordError(exc.reason, sections.origin_of(exc.position)) from exc
        return np.where(lengths > 0, body_starts - positions + lengths, 0)

    return step


def _walk_entered(
    buffer: Bytes, sections: RecordSections, counts: Longs, lane_counts: Longs
) -> tuple[Longs, Longs] | None:
    """Return the starts and ends of records of batches entered at several positions each.

    The result is None if a guess was wrong. The walk is given up at four times as many positions as
    there are records, so that memory stays in proportion.
    """
    lanes, batch = _entries(buffer, sections, counts, lane_counts)
    lane_ends = np.append(lanes[1:], 0)
    is_last_lane = np.append(batch[1:] != batch[:-1], True)
    lane_ends[is_last_lane] = sections.ends
    limit = len(buffer) - 2
    step = _quick_step(buffer)
    max_steps = 4 * int(counts.sum()) // len(lanes) + _MIN_LANES
    steps = [lanes]
    while len(steps) <= max_steps:
        current = steps[-1]
        if len(steps) % 16 == 0 and (current >= lane_ends).all():
            break
        steps.append(np.minimum(current + step(current), limit))
    positions = np.stack(steps)
    is_inside = positions < lane_ends
    start_counts = np.bincount(batch, is_inside.sum(axis=0), len(counts)).astype(np.int64)
    has_arrived = (positions == lane_ends).any(axis=0).all()
    # A lane that stays repeats its position: then there are more starts than records.
    if not has_arrived or (start_counts != counts).any():
        return None
    starts: Longs = positions.T[is_inside.T]
    ends = np.append(starts[1:], 0)
    ends[np.cumsum(counts) - 1] = sections.ends
    return starts, ends


def _entries(
    buffer: Bytes, sections: RecordSections, counts: Longs, lane_counts: Longs
) -> tuple[Longs, Indices]:
    """Return where to enter the batches, and the batch of each position, both rising."""
    batch = np.arange(len(counts))
    guesses_each = lane_counts - 1
    owner = np.repeat(batch, guesses_each)
    number = np.arange(1, len(owner) + 1) - (np.cumsum(guesses_each) - guesses_each)[owner]
    sizes = sections.ends - sections.starts
    targets = sections.starts[owner] + number * sizes[owner] // lane_counts[owner]
    guesses = _guess_starts(buffer, targets, int(_window_bytes(sections, counts).max()))
    has_guess = guesses >= 0
    lanes = np.concatenate((sections.starts, guesses[has_guess]))
    owner = np.concatenate((batch, owner[has_guess]))
    order = np.argsort(lanes, kind="stable")
    return lanes[order], owner[order]


def _guess_starts(buffer: Bytes, targets: Longs, window: int) -> Longs:
    """Return, from each target on, the first position that looks like a record's start; else -1.

    A record's attributes are a zero byte after a length of one or two bytes.
    """
    pairs = byte_pairs(buffer)
    limit = len(buffer) - 2
    windows: Structs = np.ndarray((len(buffer) - window + 1,), f"V{window}", buffer.data, 0, (1,))
    zeros = np.flatnonzero(windows[targets].view(np.uint8) == 0)
    owner = zeros // window
    attributes = targets[owner] + zeros % window
    candidates = np.concatenate((attributes - 2, attributes - 1))
    owner = np.concatenate((owner, owner))
    is_candidate = candidates >= targets[owner]
    order = np.argsort(candidates[is_candidate], kind="stable")
    candidates, owner = candidates[is_candidate][order], owner[is_candidate][order]
    positions = candidates
    for _ in range(_CHECKED_RECORDS):
        entry = TWO_BYTES.take(pairs[positions])
        size = entry & 3
        is_candidate = (size > 0) & (entry >= MIN_RECORD_BYTES - 1 << 2)
        is_candidate &= buffer.take(positions + size) == 0
        candidates, owner = candidates[is_candidate], owner[is_candidate]
        positions = positions[is_candidate]
        positions = positions + _RECORD_BYTES.take(pairs[positions])
        np.minimum(positions, limit, out=positions)
    first = np.full(len(targets), -1, np.int64)
    first[owner[::-1]] = candidates[::-1]
    return first


def _record_bytes() -> Longs:
    """Return, for each pair of bytes that a record may start with, its bytes; 0 if unknown."""
    size, length = TWO_BYTES & 3, TWO_BYTES >> 2
    return np.where((size > 0) & (length > 0), size + length, 0).astype(np.int64)


_RECORD_BYTES = _record_bytes()
