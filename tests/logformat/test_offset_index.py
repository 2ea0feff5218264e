"""The offset index: golden bytes, look-ups, a broker's rules, and files that are none."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.offset_index import (
    OffsetIndex,
    check_offset_index,
    decode_offset_index,
    empty_offset_index,
    encode_offset_index,
    read_offset_index,
)

LARGEST = (1 << 31) - 1
# docs/format.md, 8.1; the segment's base offset is 100.
OFFSETS = bytes.fromhex("000000050000000000000014000010687fffffff7ffffd78")
# docs/format.md, 8.1: seven appends of 115 bytes, two records each.
SEVEN_OFFSETS = bytes.fromhex("00000005000000e600000009000001cc0000000d000002b2")


def offsets(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def test_golden_offset_index() -> None:
    index = read_offset_index(OFFSETS, 100, LARGEST)
    assert index is not None
    assert index.offsets.tolist() == [105, 120, 100 + LARGEST]
    assert index.positions.tolist() == [0, 4200, 2147483000]
    assert offsets((5, 0), (20, 4200), (LARGEST, 2147483000)) == OFFSETS


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
def test_offset_look_up(offset: int, position: int) -> None:
    index = read_offset_index(SEVEN_OFFSETS, 100, 805)
    assert index is not None
    assert index.position_before(offset) == position


@pytest.mark.parametrize("zeros", [0, 8, 80, 8 * 1000])
def test_preallocated_zeros_are_no_offset_entries(zeros: int) -> None:
    index = read_offset_index(SEVEN_OFFSETS + bytes(zeros), 100, 805)
    assert index is not None
    assert index.positions.tolist() == [230, 460, 690]


def test_empty_files_are_indexes_without_entries() -> None:
    for size in (0, 8, 800):
        found = read_offset_index(bytes(size), 100, 0)
        assert found is not None
        assert len(found) == 0
        assert found.position_before(1 << 40) == 0
    assert empty_offset_index(7).lookup(9) == (7, 0)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(offsets((5, 10), (5, 20)), id="offset twice"),
        pytest.param(offsets((5, 10), (4, 20)), id="offsets fall"),
        pytest.param(offsets((5, 20), (6, 20)), id="position twice"),
        pytest.param(offsets((5, 20), (6, 10)), id="positions fall"),
        pytest.param(offsets((-1, 10)), id="negative offset"),
        pytest.param(offsets((5, -10), (6, 20)), id="negative position"),
        pytest.param(offsets((5, 10), (0, 0), (6, 20)), id="zeros in the middle"),
        pytest.param(SEVEN_OFFSETS + b"\0", id="a byte more"),
        pytest.param(b"garbage", id="garbage"),
    ],
)
def test_malformed_offset_indexes_are_none(data: bytes) -> None:
    assert read_offset_index(data, 100, 805) is None


def test_every_cut_of_an_offset_index_is_none_or_shorter() -> None:
    for size in range(len(SEVEN_OFFSETS)):
        found = read_offset_index(SEVEN_OFFSETS[:size], 100, 805)
        if size % 8:
            assert found is None
        else:
            assert found is not None
            assert found.positions.tolist() == [230, 460, 690][: size // 8]


@pytest.mark.parametrize("position", [805, 90000])
def test_entries_past_the_logs_end_are_left_out(position: int) -> None:
    found = read_offset_index(offsets((5, 10), (6, position)), 100, 805)
    assert found is not None
    assert (found.offsets.tolist(), found.positions.tolist()) == ([105], [10])


@given(st.binary(max_size=120), st.integers(0, 1 << 40))
def test_any_bytes_are_an_index_or_none(data: bytes, base: int) -> None:
    index = read_offset_index(data, base, 1000)
    if index is not None:
        assert (index.positions < 1000).all()
        assert index.offsets.tolist() == sorted(set(index.offsets.tolist()))


def index_of(*entries: tuple[int, int], base: int = 100) -> OffsetIndex:
    return empty_offset_index(base).with_entries(entries)


def entries_of(index: OffsetIndex) -> list[tuple[int, int]]:
    return [index.entry(number) for number in range(len(index))]


RISING = st.lists(st.integers(0, LARGEST), unique=True, max_size=40).map(sorted)


@given(st.integers(0, 1 << 60), RISING, st.data())
def test_round_trip(base: int, relative: list[int], data: st.DataObject) -> None:
    size = len(relative)
    at = data.draw(st.lists(st.integers(0, LARGEST), min_size=size, max_size=size))
    entries = [(base + offset, position) for offset, position in zip(relative, at, strict=True)]
    encoded = encode_offset_index(empty_offset_index(base).with_entries(entries))
    assert encoded == offsets(*zip(relative, at, strict=True))
    assert entries_of(decode_offset_index(encoded, base)) == entries
    check_offset_index(encoded, base)


@given(RISING, st.integers(0, LARGEST))
def test_looking_up_is_the_floor(relative: list[int], target: int) -> None:
    index = index_of(*((100 + offset, offset) for offset in relative))
    below = [offset for offset in relative if 100 + offset <= target]
    assert index.lookup(target) == ((100 + below[-1], below[-1]) if below else (100, 0))
    assert entries_of(index.truncated_to(target)) == [
        (100 + offset, offset) for offset in relative if 100 + offset < target
    ]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        pytest.param((105, 300), "behind an index entry", id="offset again"),
        pytest.param((104, 300), "behind an index entry", id="offset falls"),
        pytest.param((101 + LARGEST, 300), "does not fit", id="offset too far"),
    ],
)
def test_entries_a_broker_refuses(entry: tuple[int, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        index_of((105, 230)).with_entries([entry])


def test_offsets_below_the_base_are_refused() -> None:
    with pytest.raises(ValueError, match="does not fit a segment with base offset 100"):
        index_of((99, 230))


def test_full_at_the_entries_that_have_room() -> None:
    index = empty_offset_index(0).with_entries([(n, n) for n in range(10)], 83)
    assert index.is_full(83)
    assert not index.is_full(88)
    with pytest.raises(ValueError, match="full with 10 entries"):
        index.with_entries([(10, 10)], 83)
    with pytest.raises(ValueError, match="below one entry"):
        index.is_full(7)


@pytest.mark.parametrize("position", [-1, LARGEST + 1])
def test_positions_of_no_segment_are_not_written(position: int) -> None:
    index = OffsetIndex(np.array([100]), np.array([position]), 100)
    with pytest.raises(ValueError, match="roll earlier"):
        encode_offset_index(index)


@pytest.mark.parametrize("offset", [99, 101 + LARGEST])
def test_offsets_of_another_segment_are_not_written(offset: int) -> None:
    index = OffsetIndex(np.array([offset]), np.array([0]), 100)
    with pytest.raises(ValueError, match="does not fit"):
        encode_offset_index(index)


def test_zeros_are_entries_to_a_broker() -> None:
    padded = decode_offset_index(SEVEN_OFFSETS + bytes(16), 100)
    assert entries_of(padded)[3:] == [(100, 0), (100, 0)]
    check_offset_index(SEVEN_OFFSETS + bytes(16), 100)


@pytest.mark.parametrize(
    ("data", "position", "words"),
    [
        pytest.param(offsets((5, 10), (-1, 20)), 8, "below base offset 100", id="below base"),
        pytest.param(SEVEN_OFFSETS + b"\0", 24, "not a multiple of 8", id="a byte more"),
    ],
)
def test_what_a_broker_finds_corrupt(data: bytes, position: int, words: str) -> None:
    with pytest.raises(CorruptRecordError, match=words) as caught:
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
