"""Hashes of keys: the same bytes give the same 128 bits wherever they lie, other bytes others."""

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
"""Of each half: P, Q and the rotation."""
KEYS_AT_ONCE = 1 << 14


def by_hand(key: bytes, seed: Seed = SEED) -> tuple[int, int]:
    """Hash one key as the module's docstring says, a word at a time."""
    whole = len(key) // 8 * 8
    pieces = [key[at : at + 8] for at in range(0, whole, 8)]
    words = [int.from_bytes(piece, "little") for piece in [*pieces, key[whole:]]]
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
def test_each_length_is_hashed_as_it_is_said(length: int) -> None:
    keys = [key_of(length), bytes(length), b"\xff" * length]
    assert hashes(binary(keys)) == [by_hand(key) for key in keys]
    many = [key_of(length + at)[at:] for at in range(100)]
    assert hashes(binary(many)[1:]) == [by_hand(key) for key in many[1:]]


@given(st.lists(st.none() | st.binary(max_size=40), max_size=40), st.data())
def test_a_place_in_the_buffer_changes_nothing(
    keys: list[bytes | None], data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, len(keys)))
    end = data.draw(st.integers(begin, len(keys)))
    found = hashes(binary(keys).slice(begin, end - begin))
    assert len(found) == end - begin
    for key, hashed in zip(keys[begin:end], found, strict=True):
        if key is not None:
            assert hashed == by_hand(key)


def test_a_column_of_one_length_is_hashed_as_a_mixed_one() -> None:
    same = [b"%08d" % n for n in range(50)]
    mixed = [key for one in same for key in (one, b"x" * 30)]
    assert hashes(binary(mixed))[::2] == hashes(binary(same))


def test_long_keys_among_short_ones() -> None:
    """A few keys of many words are gone through one by one."""
    keys = [key_of(length) for length in (3, 100_001, 8, 70_000, 0, 65_536, 16)]
    assert hashes(binary(keys)) == [by_hand(key) for key in keys]


def test_more_keys_than_are_hashed_at_a_time() -> None:
    keys = [b"%d" % n for n in range(2 * KEYS_AT_ONCE + 5)]
    found = hashes(binary(keys))
    for n in (0, KEYS_AT_ONCE - 1, KEYS_AT_ONCE, 2 * KEYS_AT_ONCE, len(keys) - 1):
        assert found[n] == by_hand(keys[n])


@pytest.mark.parametrize("keys", [[], [None], [None, None], [b""]])
def test_few_keys_or_none(keys: list[bytes | None]) -> None:
    assert len(hashes(binary(keys))) == len(keys)


def test_zeros_behind_a_key_make_it_another() -> None:
    """The last word is filled up with zeros, so the length has to tell them apart."""
    keys = [b"k" + bytes(n) for n in range(20)]
    assert len(set(hashes(binary(keys)))) == len(keys)


def test_a_seed_makes_other_hashes() -> None:
    keys = binary([b"%d" % n for n in range(100)])
    for other in (Seed(SEED.first ^ 1, SEED.second), Seed(SEED.first, SEED.second ^ 1)):
        first, second = hash_keys(keys, SEED)
        their_first, their_second = hash_keys(keys, other)
        assert (first != their_first).all() == (other.first != SEED.first)
        assert (second != their_second).all() == (other.second != SEED.second)


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
    """Rows are sorted and keys are cut into ranges by the high bits of the first half."""
    first, second = hash_keys(binary(keys), SEED)
    assert len(np.unique(first)) == len(np.unique(second)) == len(keys)
    expected = len(keys) / 256
    for shift in (0, 8, 28, 48, 56):
        counts = np.bincount((first >> np.uint64(shift) & np.uint64(255)).astype(np.int64))
        # Chi squared of 255 degrees of freedom: above 420 once in 10 ** 10.
        assert ((counts - expected) ** 2 / expected).sum() < 420


def test_a_flipped_bit_flips_half_of_them() -> None:
    key = key_of(24)
    flipped = [
        bytes(byte ^ (1 << bit) if at == n else byte for n, byte in enumerate(key))
        for at in range(len(key))
        for bit in range(8)
    ]
    first, _ = hash_keys(binary([key, *flipped]), SEED)
    changed = np.array([int(one).bit_count() for one in first[1:] ^ first[0]])
    assert 28 < changed.mean() < 36
    assert changed.min() > 10
