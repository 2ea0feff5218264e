"""Keys as 128 bits, by which a compaction knows them again.

The rule: two keys are one if their 128 bits are. Kafka's cleaner takes MD5 for it; this hash is as
wide, mixes a word of all keys at a time, and is seeded anew for each run, so that nobody can make
keys that meet. It never leaves the run: nothing on storage depends on it. Each half is, over
little-endian words of 8 bytes, the last one filled up with zeros,

    h = seed ^ length * P;   each word:  h = rotl(h ^ word * P, r) * Q

with primes and rotations of its own; the first, by whose bits keys are sorted, ends in murmur3's
fmix64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]

_BLOCK = 1 << 14
"""Keys hashed at a time: their words and hashes stay in cache."""
_LANES = 16
"""Below this many keys a word of each costs more in calls of numpy than one key after another."""


class Seed(NamedTuple):
    """What a run's hashes begin with; 64 bits each."""

    first: int
    second: int


class _Half(NamedTuple):
    word: np.uint64
    state: np.uint64
    left: np.uint64
    right: np.uint64


_HALVES = tuple(
    _Half(*map(np.uint64, constants))
    for constants in (
        (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 31, 33),
        (0x165667B19E3779F9, 0x27D4EB2F165667C5, 27, 37),
    )
)
_SHIFT = np.uint64(33)
_FINAL = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_KEPT = np.array([(1 << 8 * size) - 1 for size in range(8)], np.uint64)
"""What of a last word is a key's, by how many bytes it has there."""


def hash_keys(keys: pa.BinaryArray, seed: Seed) -> tuple[Hashes, Hashes]:
    """Hash each key, as two halves; what is given for a null means nothing."""
    count = len(keys)
    first, second = np.empty((2, count), np.uint64)
    _, offsets, values = keys.buffers()
    if not count or offsets is None:
        return first, second
    bounds = np.frombuffer(offsets, np.int32, count + 1, 4 * keys.offset).astype(np.int64)
    begin, end = int(bounds[0]), int(bounds[-1])
    # Seven bytes more, so that any last word may be read whole.
    buffer = np.zeros(end - begin + 8, np.uint8)
    if values is not None:
        buffer[: end - begin] = np.frombuffer(values, np.uint8, end - begin, begin)
    words: Hashes = np.ndarray((len(buffer) - 7,), "<u8", buffer.data, 0, (1,))
    bounds -= begin
    for at in range(0, count, _BLOCK):
        some = slice(at, at + _BLOCK)
        starts = bounds[some][: count - at]
        behind = bounds[at + 1 : at + 1 + len(starts)]
        first[some], second[some] = _block(words, starts, behind - starts, seed)
    return first, second


def _block(
    words: Hashes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], seed: Seed
) -> tuple[Hashes, Hashes]:
    """Hash the keys that lie at `starts`, longest first, so that who has a word yet is a prefix."""
    order = None
    if int(lengths.min()) != int(lengths.max()):
        order = np.argsort(-lengths, kind="stable")
        starts, lengths = starts[order], lengths[order]
    sizes = lengths.astype(np.uint64)
    states = [
        np.uint64(seeded) ^ sizes * half.word for seeded, half in zip(seed, _HALVES, strict=True)
    ]
    counts = lengths >> 3
    step = 0
    while (active := _longer(counts, step)) >= _LANES:
        some = words[starts[:active] + 8 * step]
        for state, half in zip(states, _HALVES, strict=True):
            _take(state[:active], some, half)
        step += 1
    for one in range(active):
        _take_rest(states, words, one, int(starts[one]) + 8 * step, int(counts[one]) - step)
    tails = words[starts + 8 * counts] & _KEPT[lengths & 7]
    for state, half in zip(states, _HALVES, strict=True):
        _take(state, tails, half)
    _finish(states[0])
    if order is None:
        return states[0], states[1]
    unsorted = np.empty((2, len(starts)), np.uint64)
    unsorted[0, order], unsorted[1, order] = states
    return unsorted[0], unsorted[1]


def _longer(counts: npt.NDArray[np.int64], step: int) -> int:
    """Count the keys that have a word of this number; `counts` fall."""
    return int(np.searchsorted(-counts, -step, "left"))


def _take(state: Hashes, words: Hashes, half: _Half) -> None:
    """Mix a word of each key into its hash, in place."""
    state ^= words * half.word
    turned = state << half.left
    state >>= half.right
    state |= turned
    state *= half.state


def _take_rest(states: list[Hashes], words: Hashes, one: int, start: int, count: int) -> None:
    """Go on with the words of one long key: a few keys, whatever their length."""
    mask = (1 << 64) - 1
    rest = words[start : start + 8 * count : 8].tolist()
    for state, half in zip(states, _HALVES, strict=True):
        by_word, by_state, left, right = map(int, half)
        hashed = int(state[one])
        for word in rest:
            hashed ^= word * by_word & mask
            hashed = ((hashed << left | hashed >> right) & mask) * by_state & mask
        state[one] = hashed


def _finish(state: Hashes) -> None:
    """Spread what was mixed over all bits, in place."""
    for factor in _FINAL:
        state ^= state >> _SHIFT
        state *= factor
    state ^= state >> _SHIFT
