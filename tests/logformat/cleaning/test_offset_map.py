"""Both maps of keys against a dict: growth, keys given up, the last place of each."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.logformat.cleaning.hashed_map import HashedMap
from klog.logformat.cleaning.offset_map import (
    ABSENT,
    ALL_KEYS,
    LEAST_BYTES,
    LEAST_ROWS,
    ROW_BYTES,
    KeyRange,
    OffsetMap,
)
from klog.logformat.compiled import tables

TOP = ALL_KEYS[1]
EDGES = np.array([0, 1, TOP // 2, TOP - 1, TOP - 2], np.uint64)
Map = OffsetMap | HashedMap
MakeMap = Callable[..., Map]

both = pytest.mark.parametrize(
    "make_map", [OffsetMap, partial(HashedMap, tables)], ids=["sorted", "hashed"]
)


def hashed(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Give as many different keys, as their hashes are."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, TOP, (2, count), np.uint64, endpoint=False)
    return first, second


def puts(
    into: Map,
    first: np.ndarray,
    second: np.ndarray,
    numbers: np.ndarray,
    step: int,
    place: int = 0,
) -> dict[int, int]:
    """Put keys, by number, at rising places, so many a call; gives the last place by number."""
    said: dict[int, int] = {}
    for begin in range(0, len(numbers), step):
        some = numbers[begin : begin + step]
        places = np.arange(place + begin, place + begin + len(some))
        into.put(first[some], second[some], places)
        said.update(zip(some.tolist(), places.tolist(), strict=True))
    return said


def holds(found: Map, first: np.ndarray, second: np.ndarray, said: dict[int, int]) -> None:
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


@both
@settings(max_examples=60)
@given(
    keys=st.integers(1, 20_000),
    records=st.integers(0, 30_000),
    step=st.integers(1, 40_000),
    most=st.sampled_from([LEAST_BYTES, 3 * LEAST_BYTES, 1 << 20, 1 << 24]),
    seed=st.integers(0, 1 << 30),
    looks=st.booleans(),
)
def test_it_is_a_dict(
    make_map: MakeMap, keys: int, records: int, step: int, most: int, seed: int, *, looks: bool
) -> None:
    """Looked into while it is filled, or in the end alone."""
    step = max(step, records // 50)
    first, second = hashed(keys, seed)
    first[: len(EDGES)] = EDGES[:keys]
    numbers = np.random.default_rng(seed + 1).integers(0, keys, records)
    found = make_map(most)
    said: dict[int, int] = {}
    for begin in range(0, records, step * 10):
        said |= puts(found, first, second, numbers[begin : begin + step * 10], step, begin)
        if looks:
            holds(found, first, second, said)
    holds(found, first, second, said)


@both
@pytest.mark.parametrize("bits", [0, 1, 3])
def test_keys_that_agree_in_high_bits(make_map: MakeMap, bits: int) -> None:
    """Rows are sorted by the high bits: here many agree, and half their second halves do."""
    numbers = np.arange(600, dtype=np.uint64)
    first = numbers % np.uint64(1 << bits) << np.uint64(60) | numbers
    second = numbers // np.uint64(2)
    drawn = np.random.default_rng(7).integers(0, 600, 30_000)
    found = make_map(LEAST_BYTES)
    holds(found, first, second, puts(found, first, second, drawn, 400))


@both
def test_keys_with_the_same_first_half_are_two(make_map: MakeMap) -> None:
    first, second = np.full(3, 9, np.uint64), np.array([1, 2, 3], np.uint64)
    found = make_map(LEAST_BYTES)
    found.put(first[:2], second[:2], np.array([4, 5]))
    assert found.find(first, second).tolist() == [4, 5, ABSENT]


@both
def test_of_one_call_the_last_place_stays(make_map: MakeMap) -> None:
    first, second = np.full(1000, 5, np.uint64), np.full(1000, 6, np.uint64)
    found = make_map(LEAST_BYTES)
    found.put(first, second, np.arange(1000))
    assert found.places().tolist() == [999]


@both
def test_a_full_map_gives_up_the_upper_half_until_the_rest_fits(make_map: MakeMap) -> None:
    first, second = hashed(50_000)
    found = make_map(LEAST_BYTES)
    said = puts(found, first, second, np.arange(50_000), 7_000)
    assert found.keys.begin == 0
    assert found.keys.end in [TOP >> by for by in range(3, 8)]
    most = 3 * LEAST_ROWS // 4 if isinstance(found, OffsetMap) else LEAST_BYTES // 52
    assert 0 < len(found) <= most
    holds(found, first, second, said)


@both
def test_ranges_one_after_the_other_hold_every_key_once(make_map: MakeMap) -> None:
    """What one map gave up is another's, up to the last key."""
    first, second = hashed(30_000)
    seen, begin = 0, 0
    while begin < TOP:
        found = make_map(LEAST_BYTES, KeyRange(begin, TOP))
        said = puts(found, first, second, np.arange(30_000), 30_000)
        holds(found, first, second, said)
        assert found.keys.begin == begin
        seen, begin = seen + len(found), found.keys.end
    assert seen == 30_000


@both
def test_more_memory_knows_more_keys(make_map: MakeMap) -> None:
    """All of which it still knows when it has grown."""
    count = 250_000
    first, second = hashed(count)
    ends = []
    for most in (LEAST_BYTES, 4 * LEAST_BYTES, 16 * LEAST_BYTES, 256 * LEAST_BYTES):
        found = make_map(most)
        said = puts(found, first, second, np.arange(count), 100_000)
        holds(found, first, second, said)
        ends.append(found.keys.end)
    assert ends == sorted(set(ends))
    assert ends[-1] == TOP


@both
@pytest.mark.parametrize("most_bytes", [2 << 20, 5 << 20])
@pytest.mark.parametrize("twins", [0, 1, 1000], ids="{} keys that differ in a low bit".format)
@pytest.mark.parametrize("step", [1, 4000, 400_000])
def test_it_takes_no_more_memory_than_it_was_given(
    make_map: MakeMap, most_bytes: int, twins: int, step: int
) -> None:
    """While it grows, gives keys up and is asked; but for what the call itself gives."""
    count = 400_000 if step > 1 else 40_000  # Calls of one row are slow.
    first, second = hashed(count)
    # In the lower quarter: of keys that are given up none would be sorted.
    first[: 2 * twins] //= np.uint64(4)
    first[:twins] = first[twins : 2 * twins] ^ np.uint64(1)
    places = np.arange(count)
    tracemalloc.start()
    found = make_map(most_bytes)
    for begin in range(0, count, step):
        some = slice(begin, begin + step)
        found.put(first[some], second[some], places[some])
    found.find(first[:1000], second[:1000])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert step == 1 or found.keys.end < TOP
    assert peak < most_bytes


@both
def test_what_finds_keys_takes_no_more_either(make_map: MakeMap) -> None:
    """Nearly as many keys as are held, and just more than a power of two."""
    count, most_bytes = 16_450, 22_000 * ROW_BYTES
    first, second = hashed(count)
    places = np.arange(count)
    tracemalloc.start()
    found = make_map(most_bytes)
    found.put(first, second, places)
    assert found.find(first[:100], second[:100]).tolist() == places[:100].tolist()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < most_bytes


@both
def test_keys_of_other_ranges_take_no_memory(make_map: MakeMap) -> None:
    first, second = hashed(1000)
    first |= np.uint64(TOP // 2)
    tracemalloc.start()
    found = make_map(LEAST_BYTES, KeyRange(0, TOP // 2))
    for begin in range(20_000):
        some = slice(begin % 1000, begin % 1000 + 1)
        found.put(first[some], second[some], np.array([begin]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 0
    assert peak < LEAST_BYTES


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


@both
def test_too_little_memory_is_refused(make_map: MakeMap) -> None:
    with pytest.raises(ValueError, match=f"{LEAST_BYTES - 1} bytes: the least is {LEAST_BYTES}"):
        make_map(LEAST_BYTES - 1)
    assert LEAST_BYTES == LEAST_ROWS * ROW_BYTES


@settings(max_examples=60)
@given(
    keys=st.integers(1, 20_000),
    records=st.integers(0, 30_000),
    step=st.integers(1, 40_000),
    most=st.sampled_from([LEAST_BYTES, 1 << 24]),
    seed=st.integers(0, 1 << 30),
)
def test_a_hashed_map_is_claimed_by_the_last_of_each_key(
    keys: int, records: int, step: int, most: int, seed: int
) -> None:
    """Of what is wanted, given from its end; a map is full only if there is no room for more."""
    step = max(step, records // 50)
    first, second = hashed(keys, seed)
    first[: len(EDGES)] = EDGES[:keys]
    rng = np.random.default_rng(seed + 1)
    numbers, wanted = rng.integers(0, keys, records), rng.random(records) < 0.8
    last = dict(zip(numbers[wanted].tolist(), np.flatnonzero(wanted).tolist(), strict=True))
    expected = np.isin(np.arange(records), list(last.values()))
    found = HashedMap(tables, most)
    for end in range(records, 0, -step):
        rows = slice(max(end - step, 0), end)
        some = numbers[rows]
        if not found.claim(first[some], second[some], wanted[rows]):
            assert most == LEAST_BYTES
            assert len(found) > LEAST_BYTES // 64
            return
        assert (wanted[rows] == expected[rows]).all()
    assert len(found) == len(last)
    known = found.find(first, second) != ABSENT
    assert np.flatnonzero(known).tolist() == sorted(last)
