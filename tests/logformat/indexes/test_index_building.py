"""Which appends get index entries (docs/format.md, 8.1, 8.2): examples, a model, properties."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.indexes.index_building import (
    UNKNOWN_OFFSET,
    Appends,
    OpenIndexes,
    batches_as_appends,
    build_indexes,
    empty_indexes,
    rows_with_entries,
)
from klog.logformat.indexes.offset_index import OffsetIndex, encode_offset_index
from klog.logformat.indexes.time_index import TimeIndex, TimestampOffset, encode_time_index
from tests.logformat.golden_vectors import DIRECTORY
from tests.support import legacy_bytes as legacy
from tests.support.batch_bytes import GZIP, LOG_APPEND_TIME, Record, batch, plain
from tests.support.broker_loader.index_updates import (
    append_offsets,
    append_times,
    group_appends,
    index_batches,
)

BASE = 100

Row = tuple[int, int, int, int, int]
"""The fields of `Appends`."""
Pairs = list[tuple[int, int]]


def appends_of(rows: list[Row]) -> Appends:
    return Appends(*np.array(rows, np.int64).reshape(-1, 5).T)


def entries(index: OffsetIndex | TimeIndex) -> Pairs:
    return [index.entry(number) for number in range(len(index))]


@st.composite
def append_rows(draw: st.DrawFn) -> list[Row]:
    """Draw appends: offsets rise, timestamps are in any order."""
    rows: list[Row] = []
    offset = BASE
    for _ in range(draw(st.integers(0, 40))):
        first = offset + draw(st.integers(0, 3))
        last = first + draw(st.integers(0, 20))
        timestamp_offset = draw(st.integers(first, last))
        timestamp = draw(st.sampled_from([-1, -1, 0, 5]) | st.integers(-3, 60))
        rows.append((draw(st.integers(1, 300)), first, last, timestamp, timestamp_offset))
        offset = last + 1
    return rows


def indexed_by_model(rows: list[Row], interval: int) -> tuple[Pairs, Pairs]:
    """Index one append after the other, as `LogSegment.append` does, then close the segment."""
    offsets: Pairs = []
    times: Pairs = []
    position = unindexed = 0
    largest = (-1, BASE)
    for size, _, last, timestamp, timestamp_offset in rows:
        if timestamp > largest[0]:
            largest = (timestamp, timestamp_offset)
        if unindexed > interval:
            offsets.append((last, position))
            if largest[0] > (times[-1][0] if times else -1):
                times.append(largest)
            unindexed = 0
        unindexed += size
        position += size
    if largest[0] > (times[-1][0] if times else -1):
        times.append(largest)
    return offsets, times


@given(append_rows(), st.integers(0, 500))
def test_indexes_equal_the_model(rows: list[Row], interval: int) -> None:
    offset_index, time_index = build_indexes(appends_of(rows), BASE, interval)
    assert (entries(offset_index), entries(time_index)) == indexed_by_model(rows, interval)


@given(append_rows(), st.integers(0, 500), st.lists(st.integers(0, 40)))
def test_indexes_are_independent_of_chunks(rows: list[Row], interval: int, cuts: list[int]) -> None:
    appends = appends_of(rows)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    indexes = empty_indexes(BASE)
    for start, end in pairwise(bounds):
        indexes = indexes.with_appends(appends.part(start, end), interval)
    offset_index, time_index = build_indexes(appends, BASE, interval)
    assert entries(indexes.closed()[0]) == entries(offset_index)
    assert entries(indexes.closed()[1]) == entries(time_index)
    assert indexes.size_bytes == sum(row[0] for row in rows)


@given(append_rows(), st.integers(0, 500))
def test_a_broker_can_append_the_entries(rows: list[Row], interval: int) -> None:
    offset_index, time_index = build_indexes(appends_of(rows), BASE, interval)
    empty = empty_indexes(BASE)
    by_broker = append_offsets(empty.offset_index, entries(offset_index))
    assert entries(by_broker) == entries(offset_index)
    assert entries(append_times(empty.time_index, entries(time_index))) == entries(time_index)


@given(append_rows(), st.integers(0, 500), st.integers(BASE - 5, BASE + 900))
def test_lookup_starts_at_or_before_the_target(rows: list[Row], interval: int, target: int) -> None:
    appends = appends_of(rows)
    position = build_indexes(appends, BASE, interval)[0].position_before(target)
    reaching = appends.positions[appends.last_offsets >= target]
    assert not len(reaching) or position <= reaching[0]
    assert position == 0 or position in appends.positions


@given(append_rows(), st.integers(0, 500), st.integers(0, 70))
def test_records_up_to_a_time_entry_are_earlier(
    rows: list[Row], interval: int, timestamp: int
) -> None:
    index = build_indexes(appends_of(rows), BASE, interval)[1]
    number = index.entry_before(timestamp)
    if number >= 0:
        before = [row for row in rows if row[2] <= index.entry(number).offset]
        assert all(row[3] < timestamp for row in before)


def test_seven_appends() -> None:
    timestamps = [1001, 1101, 1051, 1201, 1201, 901, 1301]
    rows = [
        (115, BASE + 2 * n, BASE + 2 * n + 1, timestamp, BASE + 2 * n + 1)
        for n, timestamp in enumerate(timestamps)
    ]
    offset_index, time_index = build_indexes(appends_of(rows), BASE, 200)
    assert encode_offset_index(offset_index).hex() == (
        "00000005000000e600000009000001cc0000000d000002b2"
    )
    assert encode_time_index(time_index).hex() == (
        "000000000000044d0000000300000000000004b10000000700000000000005150000000d"
    )


@pytest.mark.parametrize(
    ("interval", "rows"),
    [(0, [1, 2, 3]), (99, [1, 2, 3]), (100, [2]), (199, [2]), (200, [3]), (300, [])],
)
def test_entry_comes_after_strictly_more_than_the_interval(interval: int, rows: list[int]) -> None:
    assert rows_with_entries(np.arange(4) * 100, interval).tolist() == rows


def test_append_of_many_batches_has_one_entry() -> None:
    single = appends_of([(100, n, n, 50 - abs(n - 3), n) for n in range(6)])
    grouped = group_appends(single, np.array([0, 2, 5]))
    assert grouped.size_bytes.tolist() == [200, 300, 100]
    assert grouped.first_offsets.tolist() == [0, 2, 5]
    assert grouped.last_offsets.tolist() == [1, 4, 5]
    assert grouped.max_timestamps.tolist() == [48, 50, 48]
    assert grouped.max_timestamp_offsets.tolist() == [1, 3, 5]
    offset_index, time_index = build_indexes(grouped, 0, 0)
    assert entries(offset_index) == [(4, 200), (5, 500)]
    assert entries(time_index) == [(50, 3)]


@given(append_rows(), st.data())
def test_grouped_append_has_the_first_of_the_largest_timestamps(
    rows: list[Row], data: st.DataObject
) -> None:
    if not rows:
        return
    starts = sorted({0, *data.draw(st.lists(st.integers(0, len(rows) - 1)))})
    grouped = group_appends(appends_of(rows), np.array(starts))
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(rows)], strict=True)):
        group = rows[start:end]
        max_timestamp = max(row[3] for row in group)
        first = next(row for row in group if row[3] == max_timestamp)
        assert grouped.size_bytes[number] == sum(row[0] for row in group)
        assert grouped.last_offsets[number] == group[-1][2]
        assert grouped.max_timestamps[number] == max_timestamp
        assert grouped.max_timestamp_offsets[number] == first[4]


def test_recovery_takes_batches_for_appends() -> None:
    data = b"".join(
        [
            plain(0, [b"v", b"w"], 1000),
            batch([Record(2, 700)], attributes=LOG_APPEND_TIME, max_timestamp=1500),
            plain(3, [b"x"] * 3, 1200),
            batch([Record(6, -1)]),
        ]
    )
    batches = scan_batches(data, 0, len(data))
    offset_index, time_index = index_batches(batches, 0, 0)
    starts = batches.starts.tolist()
    assert entries(offset_index) == [(2, starts[1]), (5, starts[2]), (6, starts[3])]
    assert entries(time_index) == [(1500, 2)]
    sizes = (batches.ends - batches.starts).tolist()
    assert batches_as_appends(batches).size_bytes.tolist() == sizes


def test_old_formats_are_indexed_by_their_frames() -> None:
    records = [Record(7, 20, None, b"x"), Record(9, 40, None, b"y")]
    data = b"".join(
        [
            legacy.plain([Record(4, 50)], 0),
            legacy.plain([Record(5, 30)], 1),
            legacy.wrapper(records, 1, GZIP),
            legacy.wrapper([replace(row, offset=row.offset + 10) for row in records], 0, GZIP),
            plain(30, [b"v", b"w"], 39),
        ]
    )
    batches = scan_batches(data, 0, len(data))
    appends = batches_as_appends(batches)
    assert appends.first_offsets.tolist() == [4, 5, UNKNOWN_OFFSET, UNKNOWN_OFFSET, 30]
    assert appends.last_offsets.tolist() == [4, 5, 9, 19, 31]
    assert appends.max_timestamps.tolist() == [-1, 30, 40, -1, 40]
    offset_index, time_index = index_batches(batches, 0, 0)
    starts = batches.starts.tolist()
    assert entries(offset_index) == list(zip([5, 9, 19, 31], starts[1:], strict=True))
    assert entries(time_index) == [(30, 5), (40, 9)]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 90), st.integers(-1, 50)), max_size=12),
    st.integers(0, 400),
)
def test_recovery_equals_the_model(shapes: list[tuple[int, int, int]], interval: int) -> None:
    """The model is `LogSegment.recover`, one batch after the other."""
    data, offset = b"", BASE
    for count, size, timestamp in shapes:
        records = [Record(offset + n, timestamp, None, b"v" * size) for n in range(count)]
        data, offset = data + batch(records), offset + count + 2
    offsets: Pairs = []
    times: Pairs = []
    valid_bytes = last_indexed = 0
    largest = (-1, BASE)
    batches = scan_batches(data, 0, len(data))
    for end, last_offset, header in zip(
        batches.ends, batches.next_offsets - 1, batches.headers, strict=True
    ):
        if header["max_timestamp"] > largest[0]:
            largest = (int(header["max_timestamp"]), int(last_offset))
        if valid_bytes - last_indexed > interval:
            offsets.append((int(last_offset), valid_bytes))
            if largest[0] > (times[-1][0] if times else -1):
                times.append(largest)
            last_indexed = valid_bytes
        valid_bytes = int(end)
    if largest[0] > (times[-1][0] if times else -1):
        times.append(largest)
    offset_index, time_index = index_batches(batches, BASE, interval)
    assert (entries(offset_index), entries(time_index)) == (offsets, times)


def test_golden_directory_indexes() -> None:
    data = b"".join(DIRECTORY)
    offset_index, time_index = index_batches(scan_batches(data, 0, len(data)), 0)
    assert encode_offset_index(offset_index) == b""
    assert encode_time_index(time_index).hex() == "00000000000003f20000000a"


def test_records_without_timestamps_have_no_time_entry() -> None:
    rows = [(9, n, n, -1, n) for n in range(5)]
    offset_index, time_index = build_indexes(appends_of(rows), 0, 0)
    assert len(offset_index) == 4
    assert entries(time_index) == []


def test_interval_restarts_when_a_segment_is_opened() -> None:
    before = empty_indexes(0).with_appends(appends_of([(100, 0, 0, 7, 0)] * 2), 150)
    closed = before.closed()
    opened = OpenIndexes(*closed, before.size_bytes, 0, closed[1].last_entry)
    after = opened.with_appends(appends_of([(100, n, n, 7, n) for n in (2, 3, 4)]), 150)
    assert entries(after.offset_index) == [(4, 400)]
    assert after.largest == TimestampOffset(7, 0)
    assert entries(after.closed()[1]) == [(7, 0)]
