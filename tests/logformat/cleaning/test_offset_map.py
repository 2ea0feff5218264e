"""The map of keys against a dict: growth, keys given up, the last place of each."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.logformat.cleaning.offset_map import (
    ABSENT,
    ALL_KEYS,
    LEAST_BYTES,
    LEAST_ROWS,
    ROW_BYTES,
    KeyRange,
    OffsetMap,
)

TOP = ALL_KEYS[1]


def hashed(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Give as many different keys, as their hashes are."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, TOP, (2, count), np.uint64, endpoint=False)
    return first, second


def puts(
    into: OffsetMap, first: np.ndarray, second: np.ndarray, numbers: np.ndarray, step: int
) -> dict[int, int]:
    """Put keys, by number, at rising places, so many a call; gives the last place by number."""
    said: dict[int, int] = {}
    for begin in range(0, len(numbers), step):
        some = numbers[begin : begin + step]
        places = np.arange(begin, begin + len(some))
        into.put(first[some], second[some], places)
        said.update(zip(some.tolist(), places.tolist(), strict=True))
    return said


def holds(found: OffsetMap, first: np.ndarray, second: np.ndarray, said: dict[int, int]) -> None:
    """Hold a map to a dict: of keys that it still knows all, of others none."""
    inside = found.keys.holds(first)
    known = np.ones(len(first), np.bool_) if inside is None else inside
    expected = np.full(len(first), ABSENT, np.int64)
    for number, place in said.items():
        if known[number]:
            expected[number] = place
    assert found.find(first, second).tolist() == expected.tolist()
    places = sorted(expected[expected != ABSENT].tolist())
    assert found.places().tolist() == places
    assert len(found) == len(places)


@settings(max_examples=60)
@given(
    keys=st.integers(1, 20_000),
    records=st.integers(0, 30_000),
    step=st.integers(1, 40_000),
    most=st.sampled_from([LEAST_BYTES, 3 * LEAST_BYTES, 1 << 20, 1 << 24]),
    seed=st.integers(0, 1 << 30),
)
def test_it_is_a_dict(keys: int, records: int, step: int, most: int, seed: int) -> None:
    step = max(step, records // 50)
    first, second = hashed(keys, seed)
    numbers = np.random.default_rng(seed + 1).integers(0, keys, records)
    found = OffsetMap(most)
    said = puts(found, first, second, numbers, step)
    holds(found, first, second, said)


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_keys_that_agree_in_high_bits(bits: int) -> None:
    """Rows are sorted by the high bits: here many agree, and half their second halves do."""
    numbers = np.arange(600, dtype=np.uint64)
    first = numbers % np.uint64(1 << bits) << np.uint64(60) | numbers
    second = numbers // np.uint64(2)
    drawn = np.random.default_rng(7).integers(0, 600, 3000)
    found = OffsetMap(LEAST_BYTES)
    holds(found, first, second, puts(found, first, second, drawn, 400))


def test_keys_with_the_same_first_half_are_two() -> None:
    first, second = np.full(3, 9, np.uint64), np.array([1, 2, 3], np.uint64)
    found = OffsetMap(LEAST_BYTES)
    found.put(first[:2], second[:2], np.array([4, 5]))
    assert found.find(first, second).tolist() == [4, 5, ABSENT]


def test_of_one_call_the_last_place_stays() -> None:
    first, second = np.full(1000, 5, np.uint64), np.full(1000, 6, np.uint64)
    found = OffsetMap(LEAST_BYTES)
    found.put(first, second, np.arange(1000))
    assert found.places().tolist() == [999]


def test_a_full_map_gives_up_the_upper_half_until_the_rest_fits() -> None:
    first, second = hashed(50_000)
    found = OffsetMap(LEAST_BYTES)
    said = puts(found, first, second, np.arange(50_000), 7_000)
    assert found.keys.begin == 0
    assert found.keys.end in [TOP >> by for by in range(3, 8)]
    assert 0 < len(found) <= 3 * LEAST_ROWS // 4
    holds(found, first, second, said)


def test_ranges_one_after_the_other_hold_every_key_once() -> None:
    """What one map gave up is another's, up to the last key."""
    first, second = hashed(30_000)
    seen, begin = 0, 0
    while begin < TOP:
        found = OffsetMap(LEAST_BYTES, KeyRange(begin, TOP))
        said = puts(found, first, second, np.arange(30_000), 30_000)
        holds(found, first, second, said)
        assert found.keys.begin == begin
        seen, begin = seen + len(found), found.keys.end
    assert seen == 30_000


def test_more_memory_knows_more_keys() -> None:
    first, second = hashed(100_000)
    ends = []
    for most in (LEAST_BYTES, 4 * LEAST_BYTES, 16 * LEAST_BYTES, 256 * LEAST_BYTES):
        found = OffsetMap(most)
        puts(found, first, second, np.arange(100_000), 100_000)
        ends.append(found.keys.end)
    assert ends == sorted(set(ends))
    assert ends[-1] == TOP


@pytest.mark.parametrize("most_bytes", [2 << 20, 5 << 20])
def test_it_takes_no_more_memory_than_it_was_given(most_bytes: int) -> None:
    """While it grows, and while it gives keys up; what it is given by the call is the caller's."""
    first, second = hashed(400_000)
    places = np.arange(400_000)
    tracemalloc.start()
    found = OffsetMap(most_bytes)
    for begin in range(0, 400_000, 4000):
        some = slice(begin, begin + 4000)
        found.put(first[some], second[some], places[some])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.keys.end < TOP
    assert peak < most_bytes + (1 << 18)


def test_a_range_holds_what_lies_in_it() -> None:
    first = np.array([1, 99, 100, 199, 200, TOP - 1], np.uint64)
    assert KeyRange().holds(first) is None
    inside = KeyRange(100, 200).holds(first)
    assert inside is not None
    assert inside.tolist() == [False, False, True, True, False, False]
    above = KeyRange(100, TOP).holds(first)
    assert above is not None
    assert above.tolist() == [False, False, True, True, True, True]


def test_halves_are_the_whole() -> None:
    low, high = KeyRange(100, 201).halves()
    assert (low.begin, low.end, high.begin, high.end) == (100, 150, 150, 201)
    with pytest.raises(ValueError, match="one key"):
        KeyRange(7, 8).halves()


def test_too_little_memory_is_refused() -> None:
    with pytest.raises(ValueError, match=f"{LEAST_BYTES - 1} bytes: the least is {LEAST_BYTES}"):
        OffsetMap(LEAST_BYTES - 1)
    assert LEAST_BYTES == LEAST_ROWS * ROW_BYTES
