"""The transaction index: golden bytes, the broker's sanity check, and malformed files."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat.indexes.transaction_index import (
    NO_ABORTED_TRANSACTIONS,
    AbortedTransaction,
    check_aborted,
    decode_aborted,
    encode_aborted,
    parse_aborted,
)
from tests.support.broker_loader.index_updates import aborted_entries

END = 1 << 40
# The first is that of docs/format.md, 8.3; the segment's base offset is 100.
ABORTED = bytes.fromhex(
    "00000000000000000fa00000000000000065000000000000006e0000000000000069"
    "00000000000000000fa1000000000000006900000000000000730000000000000074"
)


def packed(*entries: tuple[int, int, int, int, int]) -> bytes:
    return b"".join(struct.pack(">hqqqq", *entry) for entry in entries)


def test_golden_aborted_transactions() -> None:
    aborted = parse_aborted(ABORTED, 100, 1 << 62)
    assert aborted is not None
    assert aborted.producer_ids.tolist() == [4000, 4001]
    assert aborted.first_offsets.tolist() == [101, 105]
    assert aborted.last_offsets.tolist() == [110, 115]


def test_golden_directory_aborted_transactions() -> None:
    data = bytes.fromhex(  # docs/format.md, 7.1.
        "0000000000000000000a000000000000000200000000000000050000000000000003"
        "0000000000000000000a00000000000000060000000000000009000000000000000a"
    )
    assert data == packed((0, 10, 2, 5, 3), (0, 10, 6, 9, 10))
    aborted = parse_aborted(data, 0, 1 << 62)
    assert aborted is not None
    assert aborted.first_offsets.tolist() == [2, 6]


def test_empty_file_has_no_entries() -> None:
    aborted = parse_aborted(b"", 100, 1 << 62)
    assert aborted is not None
    assert len(aborted) == 0


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(packed((1, 10, 102, 105, 103)), id="version 1"),
        pytest.param(packed((-1, 10, 102, 105, 103)), id="negative version"),
        pytest.param(packed((0, -1, 102, 105, 103)), id="no producer"),
        pytest.param(packed((0, 10, -2, 105, 103)), id="negative offset"),
        pytest.param(packed((0, 10, 105, 105, 103)), id="marker at the first offset"),
        pytest.param(packed((0, 10, 106, 105, 103)), id="marker before the first offset"),
        pytest.param(packed((0, 10, 9, 99, 10)), id="marker before the segment"),
        pytest.param(packed((0, 10, 102, 105, 107)), id="stable past the marker"),
        pytest.param(packed((0, 10, 102, 105, 103), (0, 11, 101, 105, 103)), id="marker twice"),
        pytest.param(packed((0, 10, 102, 105, 103), (0, 11, 101, 104, 103)), id="markers fall"),
        pytest.param(ABORTED[:-1], id="a byte less"),
        pytest.param(ABORTED + b"\0", id="a byte more"),
        pytest.param(bytes(34), id="zeros"),
    ],
)
def test_malformed_transaction_index_is_none(data: bytes) -> None:
    assert parse_aborted(data, 100, 1 << 62) is None


@pytest.mark.parametrize(("end", "is_valid"), [(115, False), (116, True), (110, False)])
def test_markers_lie_in_their_segment(end: int, is_valid: bool) -> None:
    assert (parse_aborted(ABORTED, 100, end) is not None) == is_valid


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param((0, 10, 102, 105, 106), id="stable after the marker"),
        pytest.param((0, 10, 3, 105, 103), id="starts in an earlier segment"),
        pytest.param((0, 1 << 62, 102, 105, 0), id="a large id"),
    ],
)
def test_valid_entries(entry: tuple[int, int, int, int, int]) -> None:
    aborted = parse_aborted(packed(entry), 100, END)
    assert aborted is not None
    assert aborted.producer_ids.tolist() == [entry[1]]


@given(st.binary(max_size=120), st.integers(0, 1 << 40))
def test_any_bytes_are_an_index_or_none(data: bytes, base: int) -> None:
    aborted = parse_aborted(data, base, 1 << 62)
    if aborted is not None:
        assert (aborted.first_offsets < aborted.last_offsets).all()


ROWS = st.lists(
    st.tuples(*[st.integers(0, 1 << 62)] * 4).map(lambda row: AbortedTransaction(*row)),
    unique_by=lambda row: row.last_offset,
    max_size=20,
).map(lambda rows: sorted(rows, key=lambda row: row.last_offset))


@given(ROWS)
def test_round_trip(rows: list[AbortedTransaction]) -> None:
    encoded = encode_aborted(NO_ABORTED_TRANSACTIONS.with_entries(rows))
    assert encoded == packed(*((0, *row) for row in rows))
    assert aborted_entries(decode_aborted(encoded)) == rows


@given(ROWS)
def test_entries_are_appended_one_by_one(rows: list[AbortedTransaction]) -> None:
    index = NO_ABORTED_TRANSACTIONS
    for row in rows:
        index = index.with_entries([row])
    assert aborted_entries(index) == rows


def test_many_single_appends() -> None:
    index = NO_ABORTED_TRANSACTIONS
    for number in range(5000):  # Reading all earlier entries would be 12 million steps.
        index = index.with_entries([AbortedTransaction(1, number, number + 1, number + 2)])
    assert len(index) == 5000


@pytest.mark.parametrize("marker", [105, 104])
def test_markers_must_rise(marker: int) -> None:
    index = NO_ABORTED_TRANSACTIONS.with_entries([AbortedTransaction(10, 102, 105, 106)])
    with pytest.raises(ValueError, match=f"marker at offset {marker} after an entry"):
        index.with_entries([AbortedTransaction(11, 101, marker, 106)])


def test_a_broker_ignores_a_torn_entry() -> None:
    assert len(decode_aborted(ABORTED[:-1])) == 1
    assert len(decode_aborted(ABORTED + b"\1")) == 2


def test_newer_version_is_refused() -> None:
    data = packed((0, 10, 102, 105, 103), (1, 11, 102, 106, 103))
    with pytest.raises(UnsupportedFormatError, match="version 1") as caught:
        decode_aborted(data)
    assert caught.value.position == 34


def test_sanity_check_finds_a_marker_below_the_base_offset() -> None:
    check_aborted(ABORTED, 110)
    with pytest.raises(CorruptRecordError, match="below base offset 111"):
        check_aborted(ABORTED, 111)


@given(st.binary(max_size=120), st.integers(0, 1 << 40))
def test_any_bytes_pass_the_sanity_check_or_are_refused(data: bytes, base: int) -> None:
    try:
        check_aborted(data, base)
    except (CorruptRecordError, UnsupportedFormatError):
        return
    assert (decode_aborted(data).last_offsets >= base).all()
