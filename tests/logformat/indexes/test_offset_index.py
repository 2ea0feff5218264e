"""The offset index: golden bytes, lookups, the broker's sanity check, and malformed files."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.indexes.offset_index import (
    OffsetIndex,
    check_offset_index,
    decode_offset_index,
    empty_offset_index,
    encode_offset_index,
    parse_offset_index,
)

LARGEST = (1 << 31) - 1
# docs/format.md, 8.1; the segment's base offset is 100.
OFFSETS = bytes.fromhex("000000050000000000000014000010687fffffff7ffffd78")
# docs/format.md, 8.1: seven appends of 115 bytes, two records each.
SEVEN_OFFSETS = bytes.fromhex("00000005000000e600000009000001cc0000000d000002b2")


def packed(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def index_of(*entries: tuple[int, int], base: int = 100) -> OffsetIndex:
    offsets, positions = np.array(entries, np.int64).reshape(-1, 2).T
    return OffsetIndex(offsets, positions, base)


def entries_of(index: OffsetIndex) -> list[tuple[int, int]]:
    return [index.entry(number) for number in range(len(index))]


def test_golden_offset_index() -> None:
    index = parse_offset_index(OFFSETS, 100, LARGEST)
    assert index is not None
    assert index.offsets.tolist() == [105, 120, 100 + LARGEST]
    assert index.positions.tolist() == [0, 4200, 2147483000]
    assert packed((5, 0), (20, 4200), (LARGEST, 2147483000)) == OFFSETS


@pytest.mark.parametrize(
    ("offset", "position"),
    [
        (0, 0),
        (100, 0),
        (104, 0),
        (105, 230),
        (108, 230),
        (109, 460),
        (112, 460),
        (113, 690),
        (114, 690),
        (1 << 62, 690),
    ],
)
def test_position_before_an_offset(offset: int, position: int) -> None:
    index = parse_offset_index(SEVEN_OFFSETS, 100, 805)
    assert index is not None
    assert index.position_before(offset) == position


@pytest.mark.parametrize("zeros", [0, 8, 80, 8 * 1000])
def test_preallocated_zeros_are_not_entries(zeros: int) -> None:
    index = parse_offset_index(SEVEN_OFFSETS + bytes(zeros), 100, 805)
    assert index is not None
    assert index.positions.tolist() == [230, 460, 690]


def test_empty_files_are_indexes_without_entries() -> None:
    for size in (0, 8, 800):
        index = parse_offset_index(bytes(size), 100, 0)
        assert index is not None
        assert len(index) == 0
        assert index.position_before(1 << 40) == 0
    assert empty_offset_index(7).lookup(9) == (7, 0)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(packed((5, 10), (5, 20)), id="offset twice"),
        pytest.param(packed((5, 10), (4, 20)), id="offsets fall"),
        pytest.param(packed((5, 20), (6, 20)), id="position twice"),
        pytest.param(packed((5, 20), (6, 10)), id="positions fall"),
        pytest.param(packed((-1, 10)), id="negative offset"),
        pytest.param(packed((5, -10), (6, 20)), id="negative position"),
        pytest.param(packed((5, 10), (0, 0), (6, 20)), id="zeros in the middle"),
        pytest.param(SEVEN_OFFSETS + b"\0", id="a byte more"),
        pytest.param(b"garbage", id="garbage"),
    ],
)
def test_malformed_offset_index_is_none(data: bytes) -> None:
    assert parse_offset_index(data, 100, 805) is None


def test_cut_offset_index_is_none_or_shorter() -> None:
    for size in range(len(SEVEN_OFFSETS)):
        index = parse_offset_index(SEVEN_OFFSETS[:size], 100, 805)
        if size % 8:
            assert index is None
        else:
            assert index is not None
            assert index.positions.tolist() == [230, 460, 690][: size // 8]


@pytest.mark.parametrize("position", [805, 90000])
def test_entries_past_the_log_end_are_left_out(position: int) -> None:
    index = parse_offset_index(packed((5, 10), (6, position)), 100, 805)
    assert index is not None
    assert (index.offsets.tolist(), index.positions.tolist()) == ([105], [10])


@given(st.binary(max_size=120), st.integers(0, 1 << 40))
def test_any_bytes_are_an_index_or_none(data: bytes, base: int) -> None:
    index = parse_offset_index(data, base, 1000)
    if index is not None:
        assert (index.positions < 1000).all()
        assert index.offsets.tolist() == sorted(set(index.offsets.tolist()))


RISING = st.lists(st.integers(0, LARGEST), unique=True, max_size=40).map(sorted)


@given(st.integers(0, 1 << 60), RISING, st.data())
def test_round_trip(base: int, relative: list[int], data: st.DataObject) -> None:
    size = len(relative)
    positions = data.draw(st.lists(st.integers(0, LARGEST), min_size=size, max_size=size))
    pairs = list(zip(relative, positions, strict=True))
    entries = [(base + offset, position) for offset, position in pairs]
    encoded = encode_offset_index(index_of(*entries, base=base))
    assert encoded == packed(*pairs)
    assert entries_of(decode_offset_index(encoded, base)) == entries
    check_offset_index(encoded, base)


@given(RISING, st.integers(0, LARGEST))
def test_lookup_is_the_floor(relative: list[int], target: int) -> None:
    index = index_of(*((100 + offset, offset) for offset in relative))
    below = [offset for offset in relative if 100 + offset <= target]
    assert index.lookup(target) == ((100 + below[-1], below[-1]) if below else (100, 0))


def test_no_entry_has_a_number_out_of_range() -> None:
    index = index_of((105, 0))
    for number in (-1, 1):
        with pytest.raises(ValueError, match=f"no entry {number} in an index of 1 entries"):
            index.entry(number)


@pytest.mark.parametrize("position", [-1, LARGEST + 1])
def test_position_out_of_range_is_not_written(position: int) -> None:
    with pytest.raises(ValueError, match="roll earlier"):
        encode_offset_index(index_of((100, position)))


@pytest.mark.parametrize("offset", [99, 101 + LARGEST])
def test_offset_out_of_range_is_not_written(offset: int) -> None:
    with pytest.raises(ValueError, match="does not fit a segment with base offset 100"):
        encode_offset_index(index_of((offset, 0)))


def test_a_broker_takes_zeros_for_entries() -> None:
    padded = decode_offset_index(SEVEN_OFFSETS + bytes(16), 100)
    assert entries_of(padded)[3:] == [(100, 0), (100, 0)]
    check_offset_index(SEVEN_OFFSETS + bytes(16), 100)


@pytest.mark.parametrize(
    ("data", "position", "reason"),
    [
        pytest.param(packed((5, 10), (-1, 20)), 8, "below base offset 100", id="below base"),
        pytest.param(SEVEN_OFFSETS + b"\0", 24, "not a multiple of 8", id="a byte more"),
    ],
)
def test_sanity_check_finds_corruption(data: bytes, position: int, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        check_offset_index(data, 100)
    assert caught.value.position == position


@given(st.binary(max_size=120), st.integers(0, 1 << 40))
def test_any_bytes_pass_the_sanity_check_or_are_corrupt(data: bytes, base: int) -> None:
    try:
        check_offset_index(data, base)
    except CorruptRecordError:
        return
    index = decode_offset_index(data, base)
    assert len(index) * 8 == len(data)
    assert index.last_offset >= base
