"""Both offset maps compared to a dict: growth, dropped keys, the last ordinal of each key."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.logformat.cleaning.compiled_offset_map import CompiledOffsetMap
from klog.logformat.cleaning.offset_map import (
    ABSENT,
    ALL_KEYS,
    MIN_MAP_BYTES,
    MIN_ROWS,
    ROW_BYTES,
    KeyRange,
    OffsetMap,
)
from tests.support.kernels import hash_table_kernels

TOP = ALL_KEYS[1]
EDGES = np.array([0, 1, TOP // 2, TOP - 1, TOP - 2], np.uint64)
Map = OffsetMap | CompiledOffsetMap
MakeMap = Callable[..., Map]

BOTH = pytest.mark.parametrize(
    "make_map",
    [OffsetMap, partial(CompiledOffsetMap, hash_table_kernels)],
    ids=["sorted", "hashed"],
)


def hashed(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the hashes of different keys."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, TOP, (2, count), np.uint64, endpoint=False)
    return first, second


def put_keys(
    offset_map: Map,
    first: np.ndarray,
    second: np.ndarray,
    numbers: np.ndarray,
    step: int,
    start_ordinal: int = 0,
) -> dict[int, int]:
    """Put keys, by number, with rising ordinals, `step` a call; returns number to ordinal."""
    last_ordinals: dict[int, int] = {}
    for start in range(0, len(numbers), step):
        chunk = numbers[start : start + step]
        ordinals = np.arange(start_ordinal + start, start_ordinal + start + len(chunk))
        offset_map.put(first[chunk], second[chunk], ordinals)
        last_ordinals.update(zip(chunk.tolist(), ordinals.tolist(), strict=True))
    return last_ordinals


def check_against_dict(
    offset_map: Map, first: np.ndarray, second: np.ndarray, last_ordinals: dict[int, int]
) -> None:
    """Check that a map has all keys of its range, and no others."""
    mask = offset_map.keys.contains(first)
    in_range = np.ones(len(first), np.bool_) if mask is None else mask
    expected = np.full(len(first), ABSENT, np.int64)
    for number, ordinal in last_ordinals.items():
        if in_range[number]:
            expected[number] = ordinal
    assert offset_map.find(first, second).tolist() == expected.tolist()
    ordinals = sorted(expected[expected != ABSENT].tolist())
    assert offset_map.ordinals().tolist() == ordinals
    assert len(offset_map) == len(ordinals)


@BOTH
@settings(max_examples=60)
@given(
    keys=st.integers(1, 20_000),
    records=st.integers(0, 30_000),
    step=st.integers(1, 40_000),
    max_bytes=st.sampled_from([MIN_MAP_BYTES, 3 * MIN_MAP_BYTES, 1 << 20, 1 << 24]),
    seed=st.integers(0, 1 << 30),
    check_often=st.booleans(),
)
def test_map_equals_a_dict(
    make_map: MakeMap,
    keys: int,
    records: int,
    step: int,
    max_bytes: int,
    seed: int,
    *,
    check_often: bool,
) -> None:
    step = max(step, records // 50)
    first, second = hashed(keys, seed)
    first[: len(EDGES)] = EDGES[:keys]
    numbers = np.random.default_rng(seed + 1).integers(0, keys, records)
    offset_map = make_map(max_bytes)
    last_ordinals: dict[int, int] = {}
    for start in range(0, records, step * 10):
        chunk = numbers[start : start + step * 10]
        last_ordinals |= put_keys(offset_map, first, second, chunk, step, start)
        if check_often:
            check_against_dict(offset_map, first, second, last_ordinals)
    check_against_dict(offset_map, first, second, last_ordinals)


@BOTH
@pytest.mark.parametrize("bits", [0, 1, 3])
def test_keys_that_agree_in_high_bits(make_map: MakeMap, bits: int) -> None:
    """Entries are sorted by the high bits; here many agree, and half of the second halves do."""
    numbers = np.arange(600, dtype=np.uint64)
    first = numbers % np.uint64(1 << bits) << np.uint64(60) | numbers
    second = numbers // np.uint64(2)
    drawn = np.random.default_rng(7).integers(0, 600, 30_000)
    offset_map = make_map(MIN_MAP_BYTES)
    check_against_dict(offset_map, first, second, put_keys(offset_map, first, second, drawn, 400))


@BOTH
def test_keys_with_the_same_first_half_differ(make_map: MakeMap) -> None:
    first, second = np.full(3, 9, np.uint64), np.array([1, 2, 3], np.uint64)
    offset_map = make_map(MIN_MAP_BYTES)
    offset_map.put(first[:2], second[:2], np.array([4, 5]))
    assert offset_map.find(first, second).tolist() == [4, 5, ABSENT]


@BOTH
def test_last_ordinal_of_one_call_counts(make_map: MakeMap) -> None:
    first, second = np.full(1000, 5, np.uint64), np.full(1000, 6, np.uint64)
    offset_map = make_map(MIN_MAP_BYTES)
    offset_map.put(first, second, np.arange(1000))
    assert offset_map.ordinals().tolist() == [999]


@BOTH
def test_full_map_drops_the_upper_half_until_the_rest_fits(make_map: MakeMap) -> None:
    first, second = hashed(50_000)
    offset_map = make_map(MIN_MAP_BYTES)
    last_ordinals = put_keys(offset_map, first, second, np.arange(50_000), 7_000)
    assert offset_map.keys.start == 0
    assert offset_map.keys.end in [TOP >> halvings for halvings in range(3, 8)]
    max_keys = 3 * MIN_ROWS // 4 if isinstance(offset_map, OffsetMap) else MIN_MAP_BYTES // 52
    assert 0 < len(offset_map) <= max_keys
    check_against_dict(offset_map, first, second, last_ordinals)


@BOTH
def test_maps_in_a_row_have_every_key_once(make_map: MakeMap) -> None:
    """The keys that one map dropped are in the next, up to the last key."""
    first, second = hashed(30_000)
    count, start = 0, 0
    while start < TOP:
        offset_map = make_map(MIN_MAP_BYTES, KeyRange(start, TOP))
        last_ordinals = put_keys(offset_map, first, second, np.arange(30_000), 30_000)
        check_against_dict(offset_map, first, second, last_ordinals)
        assert offset_map.keys.start == start
        count, start = count + len(offset_map), offset_map.keys.end
    assert count == 30_000


@BOTH
def test_more_memory_holds_more_keys(make_map: MakeMap) -> None:
    count = 250_000
    first, second = hashed(count)
    ends = []
    for max_bytes in (MIN_MAP_BYTES, 4 * MIN_MAP_BYTES, 16 * MIN_MAP_BYTES, 256 * MIN_MAP_BYTES):
        offset_map = make_map(max_bytes)
        last_ordinals = put_keys(offset_map, first, second, np.arange(count), 100_000)
        check_against_dict(offset_map, first, second, last_ordinals)
        ends.append(offset_map.keys.end)
    assert ends == sorted(set(ends))
    assert ends[-1] == TOP


@BOTH
@pytest.mark.parametrize("max_bytes", [2 << 20, 5 << 20])
@pytest.mark.parametrize("twins", [0, 1, 1000], ids="{} keys that differ in a low bit".format)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.full), 4000, 400_000])
def test_map_keeps_to_its_memory(make_map: MakeMap, max_bytes: int, twins: int, step: int) -> None:
    """While it grows, drops keys and is searched; the arguments do not count."""
    count = 400_000 if step > 1 else 40_000  # Calls of one row are slow.
    first, second = hashed(count)
    # In the lower quarter: keys above it may be dropped before they are sorted.
    first[: 2 * twins] //= np.uint64(4)
    first[:twins] = first[twins : 2 * twins] ^ np.uint64(1)
    ordinals = np.arange(count)
    tracemalloc.start()
    offset_map = make_map(max_bytes)
    for start in range(0, count, step):
        chunk = slice(start, start + step)
        offset_map.put(first[chunk], second[chunk], ordinals[chunk])
    offset_map.find(first[:1000], second[:1000])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert step == 1 or offset_map.keys.end < TOP
    assert peak < max_bytes


@BOTH
def test_lookup_keeps_to_the_memory_of_the_map(make_map: MakeMap) -> None:
    """With nearly as many keys as fit, just above a power of two."""
    count, max_bytes = 16_450, 22_000 * ROW_BYTES
    first, second = hashed(count)
    ordinals = np.arange(count)
    tracemalloc.start()
    offset_map = make_map(max_bytes)
    offset_map.put(first, second, ordinals)
    assert offset_map.find(first[:100], second[:100]).tolist() == ordinals[:100].tolist()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < max_bytes


@BOTH
def test_keys_of_other_ranges_take_no_memory(make_map: MakeMap) -> None:
    first, second = hashed(1000)
    first |= np.uint64(TOP // 2)
    tracemalloc.start()
    offset_map = make_map(MIN_MAP_BYTES, KeyRange(0, TOP // 2))
    for ordinal in range(20_000):
        row = slice(ordinal % 1000, ordinal % 1000 + 1)
        offset_map.put(first[row], second[row], np.array([ordinal]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(offset_map) == 0
    assert peak < MIN_MAP_BYTES


def test_key_range_contains_its_keys() -> None:
    first = np.array([1, 99, 100, 199, 200, TOP - 1], np.uint64)
    assert KeyRange().contains(first) is None
    between = KeyRange(100, 200).contains(first)
    assert between is not None
    assert between.tolist() == [False, False, True, True, False, False]
    above = KeyRange(100, TOP).contains(first)
    assert above is not None
    assert above.tolist() == [False, False, True, True, True, True]


def test_key_range_is_split_in_halves() -> None:
    low, high = KeyRange(100, 201).split()
    assert (low.start, low.end, high.start, high.end) == (100, 150, 150, 201)
    with pytest.raises(ValueError, match="one hash cannot be split"):
        KeyRange(7, 8).split()


@BOTH
def test_too_little_memory_is_refused(make_map: MakeMap) -> None:
    with pytest.raises(
        ValueError, match=f"{MIN_MAP_BYTES - 1} bytes is too small: use at least {MIN_MAP_BYTES}"
    ):
        make_map(MIN_MAP_BYTES - 1)
    assert MIN_MAP_BYTES == MIN_ROWS * ROW_BYTES


@settings(max_examples=60)
@given(
    keys=st.integers(1, 20_000),
    records=st.integers(0, 30_000),
    step=st.integers(1, 40_000),
    max_bytes=st.sampled_from([MIN_MAP_BYTES, 1 << 24]),
    seed=st.integers(0, 1 << 30),
)
def test_put_if_absent_takes_the_last_of_each_key(
    keys: int, records: int, step: int, max_bytes: int, seed: int
) -> None:
    """From the last record to the first; it fails only if the memory is full."""
    step = max(step, records // 50)
    first, second = hashed(keys, seed)
    first[: len(EDGES)] = EDGES[:keys]
    rng = np.random.default_rng(seed + 1)
    numbers, is_put = rng.integers(0, keys, records), rng.random(records) < 0.8
    last = dict(zip(numbers[is_put].tolist(), np.flatnonzero(is_put).tolist(), strict=True))
    expected = np.isin(np.arange(records), list(last.values()))
    offset_map = CompiledOffsetMap(hash_table_kernels, max_bytes)
    for end in range(records, 0, -step):
        rows = slice(max(end - step, 0), end)
        chunk = numbers[rows]
        if not offset_map.put_if_absent(first[chunk], second[chunk], is_put[rows]):
            assert max_bytes == MIN_MAP_BYTES
            assert len(offset_map) > MIN_MAP_BYTES // 64
            return
        assert (is_put[rows] == expected[rows]).all()
    assert len(offset_map) == len(last)
    is_present = offset_map.find(first, second) != ABSENT
    assert np.flatnonzero(is_present).tolist() == sorted(last)
