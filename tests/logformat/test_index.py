"""The three indexes: golden bytes, look-ups, and files that do not say what they should."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.index import (
    EMPTY_OFFSET_INDEX,
    read_aborted,
    read_offset_index,
    read_time_index,
)

LARGEST = (1 << 31) - 1
END = 1 << 40
# Format notes 13.6; the segment's base offset is 100.
OFFSETS = bytes.fromhex("000000050000000000000014000010687fffffff7ffffd78")
TIMES = bytes.fromhex("00000000000003e80000000500000000000007d000000014")
ABORTED = bytes.fromhex(
    "00000000000000000fa00000000000000065000000000000006e0000000000000069"
    "00000000000000000fa1000000000000006900000000000000730000000000000074"
)
# Format notes 4.3 and 4.4: seven appends of 115 bytes, two records each.
SEVEN_OFFSETS = bytes.fromhex("00000005000000e600000009000001cc0000000d000002b2")
SEVEN_TIMES = bytes.fromhex(
    "000000000000044d0000000300000000000004b10000000700000000000005150000000d"
)


def offsets(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def times(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def aborted(*entries: tuple[int, int, int, int, int]) -> bytes:
    return b"".join(struct.pack(">hqqqq", *entry) for entry in entries)


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


def test_golden_aborted_transactions() -> None:
    found = read_aborted(ABORTED, 100, 1 << 62)
    assert found is not None
    assert found.producer_ids.tolist() == [4000, 4001]
    assert found.first_offsets.tolist() == [101, 105]
    assert found.last_offsets.tolist() == [110, 115]


def test_the_golden_directory_s_aborted_transactions() -> None:
    data = bytes.fromhex(  # Format notes 13.7.
        "0000000000000000000a000000000000000200000000000000050000000000000003"
        "0000000000000000000a00000000000000060000000000000009000000000000000a"
    )
    assert data == aborted((0, 10, 2, 5, 3), (0, 10, 6, 9, 10))
    found = read_aborted(data, 0, 1 << 62)
    assert found is not None
    assert found.first_offsets.tolist() == [2, 6]


@pytest.mark.parametrize("zeros", [0, 8, 80, 8 * 1000])
def test_preallocated_zeros_are_no_offset_entries(zeros: int) -> None:
    index = read_offset_index(SEVEN_OFFSETS + bytes(zeros), 100, 805)
    assert index is not None
    assert index.positions.tolist() == [230, 460, 690]


@pytest.mark.parametrize("zeros", [0, 12, 120, 12 * 1000])
def test_preallocated_zeros_are_no_time_entries(zeros: int) -> None:
    index = read_time_index(SEVEN_TIMES + bytes(zeros), 100)
    assert index is not None
    assert index.timestamps.tolist() == [1101, 1201, 1301]


def test_empty_files_are_indexes_without_entries() -> None:
    for size in (0, 8, 800):
        found = read_offset_index(bytes(size), 100, 0)
        assert found is not None
        assert len(found.positions) == 0
        assert found.position_before(1 << 40) == 0
    time_index, no_aborted = read_time_index(b"", 100), read_aborted(b"", 100, 1 << 62)
    assert time_index is not None
    assert no_aborted is not None
    assert time_index.entry_before(5) == -1
    assert len(no_aborted.producer_ids) == 0
    assert EMPTY_OFFSET_INDEX.position_before(7) == 0


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


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(aborted((1, 10, 102, 105, 103)), id="version 1"),
        pytest.param(aborted((-1, 10, 102, 105, 103)), id="negative version"),
        pytest.param(aborted((0, -1, 102, 105, 103)), id="no producer"),
        pytest.param(aborted((0, 10, -2, 105, 103)), id="negative offset"),
        pytest.param(aborted((0, 10, 105, 105, 103)), id="marker at the first offset"),
        pytest.param(aborted((0, 10, 106, 105, 103)), id="marker before the first offset"),
        pytest.param(aborted((0, 10, 9, 99, 10)), id="marker before the segment"),
        pytest.param(aborted((0, 10, 102, 105, 107)), id="stable past the marker"),
        pytest.param(aborted((0, 10, 102, 105, 103), (0, 11, 101, 105, 103)), id="marker twice"),
        pytest.param(aborted((0, 10, 102, 105, 103), (0, 11, 101, 104, 103)), id="markers fall"),
        pytest.param(ABORTED[:-1], id="a byte less"),
        pytest.param(ABORTED + b"\0", id="a byte more"),
        pytest.param(bytes(34), id="zeros"),
    ],
)
def test_malformed_transaction_indexes_are_none(data: bytes) -> None:
    assert read_aborted(data, 100, 1 << 62) is None


@pytest.mark.parametrize(("end", "well_formed"), [(115, False), (116, True), (110, False)])
def test_markers_lie_in_their_segment(end: int, well_formed: bool) -> None:
    assert (read_aborted(ABORTED, 100, end) is not None) == well_formed


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param((0, 10, 102, 105, 106), id="stable behind the marker"),
        pytest.param((0, 10, 3, 105, 103), id="begun in an earlier segment"),
        pytest.param((0, 1 << 62, 102, 105, 0), id="a large id"),
    ],
)
def test_well_formed_transaction_entries(entry: tuple[int, int, int, int, int]) -> None:
    found = read_aborted(aborted(entry), 100, END)
    assert found is not None
    assert found.producer_ids.tolist() == [entry[1]]


@given(st.binary(max_size=120), st.integers(0, 1 << 40))
def test_any_bytes_are_an_index_or_none(data: bytes, base: int) -> None:
    index, time_index = read_offset_index(data, base, 1000), read_time_index(data, base)
    if index is not None:
        assert (index.positions < 1000).all()
        assert index.offsets.tolist() == sorted(set(index.offsets.tolist()))
    if time_index is not None:
        assert time_index.timestamps.tolist() == sorted(set(time_index.timestamps.tolist()))
    found = read_aborted(data, base, 1 << 62)
    if found is not None:
        assert (found.first_offsets < found.last_offsets).all()


@pytest.mark.parametrize("position", [805, 90000])
def test_entries_past_the_logs_end_are_left_out(position: int) -> None:
    found = read_offset_index(offsets((5, 10), (6, position)), 100, 805)
    assert found is not None
    assert (found.offsets.tolist(), found.positions.tolist()) == ([105], [10])
