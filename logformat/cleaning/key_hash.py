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

from klog.logformat.key_words import KeyWords, key_words

Hashes = npt.NDArray[np.uint64]


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


def hash_keys(keys: pa.BinaryArray, seed: Seed) -> tuple[Hashes, Hashes]:
    """Hash each key, as two halves; what is given for a null means nothing."""
    blocks = [_block(words, seed) for words in key_words(keys.cast(pa.large_binary()), np.uint64)]
    if not blocks:
        return np.zeros(len(keys), np.uint64), np.zeros(len(keys), np.uint64)
    first, second = (np.concatenate(halves) for halves in zip(*blocks, strict=True))
    return first, second


def _block(words: KeyWords[np.uint64], seed: Seed) -> tuple[Hashes, Hashes]:
    sizes = words.lengths.astype(np.uint64)
    first, second = (
        np.uint64(seeded) ^ sizes * half.word for seeded, half in zip(seed, _HALVES, strict=True)
    )
    for some in words.whole():
        _take(first[: len(some)], some, _HALVES[0])
        _take(second[: len(some)], some, _HALVES[1])
    for key, rest in words.rest():
        for state, half in zip((first, second), _HALVES, strict=True):
            state[key] = _taken(int(state[key]), rest, half)
    last = words.last()
    _take(first, last, _HALVES[0])
    _take(second, last, _HALVES[1])
    _finish(first)
    return words.as_given(first), words.as_given(second)


def _take(state: Hashes, words: Hashes, half: _Half) -> None:
    """Mix a word of each key into its hash, in place."""
    state ^= words * half.word
    turned = state << half.left
    state >>= half.right
    state |= turned
    state *= half.state


def _taken(hashed: int, words: Hashes, half: _Half) -> int:
    """Mix the words of one long key into its hash."""
    mask = (1 << 64) - 1
    by_word, by_state, left, right = map(int, half)
    for word in words.tolist():
        hashed ^= word * by_word & mask
        hashed = ((hashed << left | hashed >> right) & mask) * by_state & mask
    return hashed


def _finish(state: Hashes) -> None:
    """Spread what was mixed over all bits, in place."""
    for factor in _FINAL:
        state ^= state >> _SHIFT
        state *= factor
    state ^= state >> _SHIFT
