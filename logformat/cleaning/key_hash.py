"""Keys as hashes of 128 bits, by which a compaction compares them.

The rule: two keys are equal if their hashes are. Kafka's cleaner uses MD5; this hash is as wide,
mixes a word of all keys at a time, and has a new seed for each run, so that nobody can construct
keys that collide. It never leaves the run: nothing on storage depends on it. Each half is computed
over little-endian words of 8 bytes, the last one padded with zeros,

    h = seed ^ length * P;   each word:  h = rotl(h ^ word * P, r) * Q

with primes P, Q and a rotation r of its own. Keys are sorted by the first half, which ends in
murmur3's fmix64.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from klog.logformat.array_types import UnsignedLongs
from klog.logformat.key_words import KeyWords, key_words

Hashes: TypeAlias = UnsignedLongs


class Seed(NamedTuple):
    """What the hashes of a run start from, 64 bits a half."""

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
    """Return the two halves of each key's hash; of no meaning for a null.

    Args:
        keys: The keys.
        seed: The seed of this cleaning.
    """
    blocks = [_block(words, seed) for words in key_words(keys.cast(pa.large_binary()), np.uint64)]
    if not blocks:
        return np.zeros(len(keys), np.uint64), np.zeros(len(keys), np.uint64)
    first, second = (np.concatenate(halves) for halves in zip(*blocks, strict=True))
    return first, second


def _block(words: KeyWords[np.uint64], seed: Seed) -> tuple[Hashes, Hashes]:
    lengths = words.lengths.astype(np.uint64)
    first, second = (
        np.uint64(seeded) ^ lengths * half.word for seeded, half in zip(seed, _HALVES, strict=True)
    )
    for column in words.columns():
        _mix(first[: len(column)], column, _HALVES[0])
        _mix(second[: len(column)], column, _HALVES[1])
    for key, key_rest in words.remaining():
        for state, half in zip((first, second), _HALVES, strict=True):
            state[key] = _mix_long_key(int(state[key]), key_rest, half)
    last = words.tails()
    _mix(first, last, _HALVES[0])
    _mix(second, last, _HALVES[1])
    _finish(first)
    return words.in_input_order(first), words.in_input_order(second)


def _mix(state: Hashes, words: UnsignedLongs, half: _Half) -> None:
    """Mix a word of each key into its hash, in place."""
    state ^= words * half.word
    rotated = state << half.left
    state >>= half.right
    state |= rotated
    state *= half.state


def _mix_long_key(hashed: int, words: Hashes, half: _Half) -> int:
    """Return the hash of one long key after its words."""
    mask = (1 << 64) - 1
    by_word, by_state, left, right = map(int, half)
    for word in words.tolist():
        hashed ^= word * by_word & mask
        hashed = ((hashed << left | hashed >> right) & mask) * by_state & mask
    return hashed


def _finish(state: Hashes) -> None:
    """Spread each hash over all its bits, in place."""
    for factor in _FINAL:
        state ^= state >> _SHIFT
        state *= factor
    state ^= state >> _SHIFT
