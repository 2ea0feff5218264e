"""The time index: golden bytes, lookups, the broker's sanity check, and malformed files."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.indexes.time_index import (
    TimeIndex,
    check_time_index,
    decode_time_index,
    empty_time_index,
    encode_time_index,
    parse_time_index,
)

# docs/format.md, 8.2; the segment's base offset is 100.
TIMES = bytes.fromhex("00000000000003e80000000500000000000007d000000014")
# docs/format.md, 8.2: seven appends of 115 bytes, two records each.
SEVEN_TIMES = bytes.fromhex(
    "000000000000044d0000000300000000000004b10000000700000000000005150000000d"
)


def packed(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def index_of(*entries: tuple[int, int], base: int = 100) -> TimeIndex:
    timestamps, offsets = np.array(entries, np.int64).reshape(-1, 2).T
    return TimeIndex(timestamps, offsets, base)


def entries_of(index: TimeIndex) -> list[tuple[int, int]]:
    return [index.entry(number) for number in range(len(index))]


def test_golden_time_index() -> None:
    index = parse_time_index(TIMES, 100)
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
def test_entry_before_a_timestamp(timestamp: int, entry: int) -> None:
    index = parse_time_index(SEVEN_TIMES, 100)
    assert index is not None
    assert index.entry_before(timestamp) == entry


@pytest.mark.parametrize("zeros", [0, 12, 120, 12 * 1000])
def test_preallocated_zeros_are_not_entries(zeros: int) -> None:
    index = parse_time_index(SEVEN_TIMES + bytes(zeros), 100)
    assert index is not None
    assert index.timestamps.tolist() == [1101, 1201, 1301]


def test_empty_file_is_an_index_without_entries() -> None:
    index = parse_time_index(b"", 100)
    assert index is not None
    assert index.entry_before(5) == -1
    assert index.last_entry == empty_time_index(100).last_entry == (-1, 100)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(packed((1000, 5), (1000, 6)), id="timestamp twice"),
        pytest.param(packed((1000, 5), (999, 6)), id="timestamps fall"),
        pytest.param(packed((1000, 5), (1001, 4)), id="offsets fall"),
        pytest.param(packed((1000, -5)), id="negative offset"),
        pytest.param(packed((1000, 5), (0, 0), (1001, 6)), id="zeros in the middle"),
        pytest.param(SEVEN_TIMES[:-1], id="a byte less"),
        pytest.param(b"garbage", id="garbage"),
    ],
)
def test_malformed_time_index_is_none(data: bytes) -> None:
    assert parse_time_index(data, 100) is None


def test_time_entries_may_share_an_offset() -> None:
    assert parse_time_index(packed((1000, 5), (1001, 5)), 100) is not None


@given(st.binary(max_size=120), st.integers(0, 1 << 40))
def test_any_bytes_are_an_index_or_none(data: bytes, base: int) -> None:
    index = parse_time_index(data, base)
    if index is not None:
        assert index.timestamps.tolist() == sorted(set(index.timestamps.tolist()))


TIMESTAMPS = st.lists(st.integers(0, 1 << 62), unique=True, max_size=40).map(sorted)


@given(st.integers(0, 1 << 60), TIMESTAMPS, st.data())
def test_round_trip(base: int, timestamps: list[int], data: st.DataObject) -> None:
    size = len(timestamps)
    relative = data.draw(st.lists(st.integers(0, (1 << 31) - 1), min_size=size, max_size=size))
    pairs = list(zip(timestamps, sorted(relative), strict=True))
    entries = [(timestamp, base + offset) for timestamp, offset in pairs]
    encoded = encode_time_index(index_of(*entries, base=base))
    assert encoded == packed(*pairs)
    assert entries_of(decode_time_index(encoded, base)) == entries
    check_time_index(encoded, base)


@pytest.mark.parametrize(
    ("data", "position", "reason"),
    [
        pytest.param(packed((9, 1), (8, 2)), 12, "last timestamp 8", id="timestamps fall"),
        pytest.param(packed((8, 1), (9, -1)), 12, "below base offset 100", id="below base"),
        pytest.param(SEVEN_TIMES + b"\0", 36, "not a multiple of 12", id="a byte more"),
        pytest.param(SEVEN_TIMES + bytes(12), 36, "last timestamp 0", id="zeros"),
    ],
)
def test_sanity_check_finds_corruption(data: bytes, position: int, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason) as caught:
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


def test_offset_out_of_range_is_not_written() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        encode_time_index(index_of((1000, 99)))
