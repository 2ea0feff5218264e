"""Hashes of keys: they depend on the bytes of a key, and not on where it lies."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.cleaning.key_hash import Seed, hash_keys

SEED = Seed(0x0123456789ABCDEF, 0xFEDCBA9876543210)
MASK = (1 << 64) - 1
PRIMES = (
    (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 31),
    (0x165667B19E3779F9, 0x27D4EB2F165667C5, 27),
)
"""P, Q and the rotation of each half."""
BLOCK_KEYS = 1 << 14


def by_hand(key: bytes, seed: Seed = SEED) -> tuple[int, int]:
    """Hash one key by the rule in the module's docstring, a word at a time."""
    end = len(key) // 8 * 8
    chunks = [key[start : start + 8] for start in range(0, end, 8)]
    words = [int.from_bytes(chunk, "little") for chunk in [*chunks, key[end:]]]
    halves = []
    for seeded, (p, q, left) in zip(seed, PRIMES, strict=True):
        hashed = seeded ^ len(key) * p & MASK
        for word in words:
            mixed = hashed ^ word * p & MASK
            hashed = ((mixed << left | mixed >> (64 - left)) & MASK) * q & MASK
        halves.append(hashed)
    first, second = halves
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        first = (first ^ first >> 33) * factor & MASK
    return first ^ first >> 33, second


def hashes(keys: pa.BinaryArray, seed: Seed = SEED) -> list[tuple[int, int]]:
    first, second = hash_keys(keys, seed)
    return list(zip(first.tolist(), second.tolist(), strict=True))


def binary(keys: Sequence[bytes | None]) -> pa.BinaryArray:
    return pa.array(keys, pa.binary())


def key_of(length: int) -> bytes:
    return random.Random(length).randbytes(length)


@pytest.mark.parametrize("length", range(101))
def test_every_length_is_hashed_by_the_rule(length: int) -> None:
    keys = [key_of(length), bytes(length), b"\xff" * length]
    assert hashes(binary(keys)) == [by_hand(key) for key in keys]
    mixed = [key_of(length + number)[number:] for number in range(100)]
    assert hashes(binary(mixed)[1:]) == [by_hand(key) for key in mixed[1:]]


@given(st.lists(st.none() | st.binary(max_size=40), max_size=40), st.data())
def test_position_in_the_buffer_does_not_matter(
    keys: list[bytes | None], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(keys)))
    end = data.draw(st.integers(start, len(keys)))
    hashed_keys = hashes(binary(keys).slice(start, end - start))
    assert len(hashed_keys) == end - start
    for key, hashed in zip(keys[start:end], hashed_keys, strict=True):
        if key is not None:
            assert hashed == by_hand(key)


def test_keys_of_one_length_hash_as_in_a_mixed_column() -> None:
    same = [b"%08d" % n for n in range(50)]
    mixed = [key for short_key in same for key in (short_key, b"x" * 30)]
    assert hashes(binary(mixed))[::2] == hashes(binary(same))


def test_long_keys_among_short_ones() -> None:
    """A few keys of many words are hashed one by one."""
    keys = [key_of(length) for length in (3, 100_001, 8, 70_000, 0, 65_536, 16)]
    assert hashes(binary(keys)) == [by_hand(key) for key in keys]


def test_more_keys_than_one_block() -> None:
    keys = [b"%d" % n for n in range(2 * BLOCK_KEYS + 5)]
    hashed_keys = hashes(binary(keys))
    for n in (0, BLOCK_KEYS - 1, BLOCK_KEYS, 2 * BLOCK_KEYS, len(keys) - 1):
        assert hashed_keys[n] == by_hand(keys[n])


@pytest.mark.parametrize("keys", [[], [None], [None, None], [b""]])
def test_few_keys_or_none(keys: list[bytes | None]) -> None:
    assert len(hashes(binary(keys))) == len(keys)


def test_key_with_trailing_zeros_is_another_key() -> None:
    """The last word is padded with zeros, so the hash includes the length."""
    keys = [b"k" + bytes(n) for n in range(20)]
    assert len(set(hashes(binary(keys)))) == len(keys)


def test_seed_changes_the_hashes() -> None:
    keys = binary([b"%d" % n for n in range(100)])
    for other in (Seed(SEED.first ^ 1, SEED.second), Seed(SEED.first, SEED.second ^ 1)):
        first, second = hash_keys(keys, SEED)
        other_first, other_second = hash_keys(keys, other)
        assert (first != other_first).all() == (other.first != SEED.first)
        assert (second != other_second).all() == (other.second != SEED.second)


@pytest.mark.parametrize(
    "keys",
    [
        [b"%d" % n for n in range(40_000)],
        [n.to_bytes(8, "little") for n in range(40_000)],
        [n.to_bytes(8, "big") for n in range(40_000)],
        [b"user-%010d-suffix" % n for n in range(40_000)],
    ],
    ids=["decimal", "little", "big", "long"],
)
def test_bits_are_spread(keys: list[bytes]) -> None:
    """Entries are sorted, and keys are cut into ranges, by the high bits of the first half."""
    first, second = hash_keys(binary(keys), SEED)
    assert len(np.unique(first)) == len(np.unique(second)) == len(keys)
    expected = len(keys) / 256
    for shift in (0, 8, 28, 48, 56):
        counts = np.bincount((first >> np.uint64(shift) & np.uint64(255)).astype(np.int64))
        # Chi squared of 255 degrees of freedom: above 420 once in 10 ** 10.
        assert ((counts - expected) ** 2 / expected).sum() < 420


def test_flipped_bit_flips_half_of_the_hash() -> None:
    key = key_of(24)
    flipped = [
        bytes(byte ^ (1 << bit) if number == position else byte for number, byte in enumerate(key))
        for position in range(len(key))
        for bit in range(8)
    ]
    first, _ = hash_keys(binary([key, *flipped]), SEED)
    changed = np.array([int(difference).bit_count() for difference in first[1:] ^ first[0]])
    assert 28 < changed.mean() < 36
    assert changed.min() > 10
