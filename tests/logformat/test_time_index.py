"""The time index: golden bytes, look-ups, a broker's rules, and files that are none."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.time_index import (
    TimeIndex,
    check_time_index,
    decode_time_index,
    empty_time_index,
    encode_time_index,
    read_time_index,
)

# docs/format.md, 8.2; the segment's base offset is 100.
TIMES = bytes.fromhex("00000000000003e80000000500000000000007d000000014")
# docs/format.md, 8.2: seven appends of 115 bytes, two records each.
SEVEN_TIMES = bytes.fromhex(
    "000000000000044d0000000300000000000004b10000000700000000000005150000000d"
)


def times(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def test_golden_time_index() -> None:
    index = read_time_index(TIMES, 100)
    assert index is not None
    assert index.timestamps.tolist() == [1000, 2000]
    assert index.offsets.tolist() == [105, 120]


@pytest.mark.parametrize(
    ("timestamp", "entry"),
    [
        (-1, -1),
        (0, -1),
        (1101, -1),
        (1102, 0),
        (1201, 0),
        (1202, 1),
        (1301, 1),
        (1302, 2),
        (1 << 62, 2),
    ],
)
def test_time_look_up(timestamp: int, entry: int) -> None:
    index = read_time_index(SEVEN_TIMES, 100)
    assert index is not None
    assert index.entry_before(timestamp) == entry


@pytest.mark.parametrize("zeros", [0, 12, 120, 12 * 1000])
def test_preallocated_zeros_are_no_time_entries(zeros: int) -> None:
    index = read_time_index(SEVEN_TIMES + bytes(zeros), 100)
    assert index is not None
    assert index.timestamps.tolist() == [1101, 1201, 1301]


def test_an_empty_file_is_an_index_without_entries() -> None:
    index = read_time_index(b"", 100)
    assert index is not None
    assert index.entry_before(5) == -1
    assert index.lookup(5) == (-1, 100)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(times((1000, 5), (1000, 6)), id="timestamp twice"),
        pytest.param(times((1000, 5), (999, 6)), id="timestamps fall"),
        pytest.param(times((1000, 5), (1001, 4)), id="offsets fall"),
        pytest.param(times((1000, -5)), id="negative offset"),
        pytest.param(times((1000, 5), (0, 0), (1001, 6)), id="zeros in the middle"),
        pytest.param(SEVEN_TIMES[:-1], id="a byte less"),
        pytest.param(b"garbage", id="garbage"),
    ],
)
def test_malformed_time_indexes_are_none(data: bytes) -> None:
    assert read_time_index(data, 100) is None


def test_time_entries_may_share_an_offset() -> None:
    assert read_time_index(times((1000, 5), (1001, 5)), 100) is not None


@given(st.binary(max_size=120), st.integers(0, 1 << 40))
def test_any_bytes_are_an_index_or_none(data: bytes, base: int) -> None:
    index = read_time_index(data, base)
    if index is not None:
        assert index.timestamps.tolist() == sorted(set(index.timestamps.tolist()))


def entries_of(index: TimeIndex) -> list[tuple[int, int]]:
    return [index.entry(number) for number in range(len(index))]


MOMENTS = st.lists(st.integers(0, 1 << 62), unique=True, max_size=40).map(sorted)


@given(st.integers(0, 1 << 60), MOMENTS, st.data())
def test_round_trip(base: int, timestamps: list[int], data: st.DataObject) -> None:
    size = len(timestamps)
    relative = data.draw(st.lists(st.integers(0, (1 << 31) - 1), min_size=size, max_size=size))
    relative.sort()
    entries = [(t, base + offset) for t, offset in zip(timestamps, relative, strict=True)]
    encoded = encode_time_index(empty_time_index(base).with_entries(entries))
    assert encoded == times(*zip(timestamps, relative, strict=True))
    assert entries_of(decode_time_index(encoded, base)) == entries
    check_time_index(encoded, base)


@given(MOMENTS)
def test_entries_are_appended_one_by_one(timestamps: list[int]) -> None:
    entries = [(t, 100 + number) for number, t in enumerate(timestamps)]
    index = empty_time_index(100)
    for entry in entries:
        index = index.with_entries([entry])
    assert entries_of(index) == entries


def test_many_single_appends() -> None:
    index = empty_time_index(0)
    for number in range(10_000):  # Reading the entries there would be 50 million steps.
        index = index.with_entries([(number, number)])
    assert len(index) == 10_000


@given(MOMENTS, st.integers(-1, 1 << 62))
def test_looking_up_is_the_floor(timestamps: list[int], target: int) -> None:
    entries = [(t, 100 + number) for number, t in enumerate(timestamps)]
    index = empty_time_index(100).with_entries(entries)
    below = [entry for entry in entries if entry[0] <= target]
    assert index.lookup(target) == (below[-1] if below else (-1, 100))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        pytest.param((2000, 104), "offset 104 behind", id="offset falls"),
        pytest.param((999, 106), "timestamp 999 behind", id="timestamp falls"),
        pytest.param((2000, 101 + (1 << 31)), "does not fit", id="offset too far"),
    ],
)
def test_entries_a_broker_refuses(entry: tuple[int, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        empty_time_index(100).with_entries([(1000, 105), entry])


def test_equal_timestamps_and_none_make_no_entry() -> None:
    assert entries_of(empty_time_index(100).with_entries([(-1, 105)])) == []
    index = empty_time_index(100).with_entries([(1000, 105), (1000, 110)])
    assert entries_of(index) == [(1000, 105)]


def test_one_slot_is_kept_for_the_entry_of_the_roll() -> None:
    index = empty_time_index(0).with_entries([(1, 1), (2, 2)], 36)
    assert index.is_full(36)
    assert not index.is_full(48)
    with pytest.raises(ValueError, match="full with 2 entries"):
        index.with_entries([(3, 3)], 36)
    assert len(index.with_entries([(3, 3)], 36, reserved=0)) == 3


@pytest.mark.parametrize(
    ("data", "position", "words"),
    [
        pytest.param(times((9, 1), (8, 2)), 12, "last timestamp 8", id="timestamps fall"),
        pytest.param(times((8, 1), (9, -1)), 12, "below base offset 100", id="below base"),
        pytest.param(SEVEN_TIMES + b"\0", 36, "not a multiple of 12", id="a byte more"),
        pytest.param(SEVEN_TIMES + bytes(12), 36, "last timestamp 0", id="zeros"),
    ],
)
def test_what_a_broker_finds_corrupt(data: bytes, position: int, words: str) -> None:
    with pytest.raises(CorruptRecordError, match=words) as caught:
        check_time_index(data, 100)
    assert caught.value.position == position


@given(st.binary(max_size=120), st.integers(0, 1 << 40))
def test_any_bytes_pass_the_sanity_check_or_are_corrupt(data: bytes, base: int) -> None:
    try:
        check_time_index(data, base)
    except CorruptRecordError:
        return
    index = decode_time_index(data, base)
    assert len(index) * 12 == len(data)
    assert not len(index) or index.last_entry.timestamp_ms >= index.entry(0).timestamp_ms


def test_offsets_of_another_segment_are_not_written() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        encode_time_index(TimeIndex(np.array([1000]), np.array([99]), 100))
