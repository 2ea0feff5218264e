"""What a broker does with indexes: appends in order, full indexes, truncation, fetches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.indexes.offset_index import OffsetIndex, empty_offset_index
from klog.logformat.indexes.time_index import TimeIndex, empty_time_index
from klog.logformat.indexes.transaction_index import NO_ABORTED_TRANSACTIONS, AbortedTransaction
from tests.logformat.indexes.test_offset_index import RISING
from tests.logformat.indexes.test_time_index import TIMESTAMPS
from tests.logformat.indexes.test_transaction_index import ROWS
from tests.support.broker_loader.index_updates import (
    aborted_entries,
    append_offsets,
    append_times,
    collect_aborted,
    is_full_of_offsets,
    is_full_of_times,
    lookup_time,
    truncate_aborted,
    truncate_offsets,
)

LARGEST = (1 << 31) - 1


def offset_index(*entries: tuple[int, int]) -> OffsetIndex:
    return append_offsets(empty_offset_index(100), entries)


def entries_of(index: OffsetIndex | TimeIndex) -> list[tuple[int, int]]:
    return [index.entry(number) for number in range(len(index))]


@given(RISING, st.integers(0, LARGEST))
def test_truncated_offset_index_keeps_the_entries_below(relative: list[int], offset: int) -> None:
    index = offset_index(*((100 + relative_offset, 0) for relative_offset in relative))
    assert entries_of(truncate_offsets(index, offset)) == [
        (100 + relative_offset, 0) for relative_offset in relative if 100 + relative_offset < offset
    ]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        pytest.param((105, 300), "after an index entry", id="offset again"),
        pytest.param((104, 300), "after an index entry", id="offset falls"),
        pytest.param((101 + LARGEST, 300), "does not fit", id="offset too far"),
    ],
)
def test_refused_offset_entries(entry: tuple[int, int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        append_offsets(offset_index((105, 230)), [entry])


def test_offset_below_the_base_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit a segment with base offset 100"):
        offset_index((99, 230))


def test_full_offset_index() -> None:
    index = append_offsets(empty_offset_index(0), [(n, n) for n in range(10)], 83)
    assert is_full_of_offsets(index, 83)
    assert not is_full_of_offsets(index, 88)
    with pytest.raises(ValueError, match="full with 10 entries"):
        append_offsets(index, [(10, 10)], 83)
    with pytest.raises(ValueError, match="below one entry"):
        is_full_of_offsets(index, 7)


@given(TIMESTAMPS)
def test_time_entries_are_appended_one_by_one(timestamps: list[int]) -> None:
    entries = [(timestamp, 100 + number) for number, timestamp in enumerate(timestamps)]
    index = empty_time_index(100)
    for entry in entries:
        index = append_times(index, [entry])
    assert entries_of(index) == entries


def test_many_single_time_appends() -> None:
    index = empty_time_index(0)
    for number in range(10_000):  # Reading all earlier entries would be 50 million steps.
        index = append_times(index, [(number, number)])
    assert len(index) == 10_000


@given(TIMESTAMPS, st.integers(-1, 1 << 62))
def test_time_lookup_is_the_floor(timestamps: list[int], target: int) -> None:
    entries = [(timestamp, 100 + number) for number, timestamp in enumerate(timestamps)]
    index = append_times(empty_time_index(100), entries)
    below = [entry for entry in entries if entry[0] <= target]
    assert lookup_time(index, target) == (below[-1] if below else (-1, 100))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        pytest.param((2000, 104), "offset 104 after", id="offset falls"),
        pytest.param((999, 106), "timestamp 999 after", id="timestamp falls"),
        pytest.param((2000, 101 + (1 << 31)), "does not fit", id="offset too far"),
    ],
)
def test_refused_time_entries(entry: tuple[int, int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        append_times(empty_time_index(100), [(1000, 105), entry])


def test_equal_and_missing_timestamps_add_no_entry() -> None:
    assert entries_of(append_times(empty_time_index(100), [(-1, 105)])) == []
    index = append_times(empty_time_index(100), [(1000, 105), (1000, 110)])
    assert entries_of(index) == [(1000, 105)]


def test_one_slot_is_reserved_for_the_entry_of_the_roll() -> None:
    index = append_times(empty_time_index(0), [(1, 1), (2, 2)], 36)
    assert is_full_of_times(index, 36)
    assert not is_full_of_times(index, 48)
    with pytest.raises(ValueError, match="full with 2 entries"):
        append_times(index, [(3, 3)], 36)
    assert len(append_times(index, [(3, 3)], 36, reserved=0)) == 3


@given(ROWS, st.integers(0, 1 << 62), st.integers(0, 1 << 62))
def test_collecting_stops_at_a_stable_entry(
    rows: list[AbortedTransaction], fetch_offset: int, upper_bound: int
) -> None:
    expected, is_complete = [], False
    for row in rows:
        if row.last_offset >= fetch_offset and row.first_offset < upper_bound:
            expected.append(row)
        if row.last_stable_offset >= upper_bound:
            is_complete = True
            break
    aborted = NO_ABORTED_TRANSACTIONS.with_entries(rows)
    collected, stopped = collect_aborted(aborted, fetch_offset, upper_bound)
    assert (aborted_entries(collected), stopped) == (expected, is_complete)


@given(ROWS, st.integers(0, 1 << 62))
def test_truncated_transaction_index_keeps_the_markers_below(
    rows: list[AbortedTransaction], offset: int
) -> None:
    truncated = truncate_aborted(NO_ABORTED_TRANSACTIONS.with_entries(rows), offset)
    assert aborted_entries(truncated) == [row for row in rows if row.last_offset < offset]
