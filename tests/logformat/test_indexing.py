"""Which entries a broker adds (docs/format.md, 8.1, 8.2): an example, an account, properties."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat import batch as v2
from klog.logformat.indexing import (
    UNKNOWN_OFFSET,
    Appends,
    OpenIndexes,
    appends_of,
    entry_rows,
    index_appends,
    index_batches,
    no_entries,
)
from klog.logformat.offset_index import OffsetIndex, encode_offset_index
from klog.logformat.time_index import TimeIndex, TimestampOffset, encode_time_index
from tests import encode_legacy as legacy
from tests.encode import GZIP, LOG_APPEND_TIME, Record, batch, plain
from tests.logformat.golden import DIRECTORY

BASE = 100

Row = tuple[int, int, int, int, int]


def appends(rows: list[Row]) -> Appends:
    """Make appends of rows of their fields."""
    return Appends(*np.array(rows, np.int64).reshape(-1, 5).T)


def entries(index: OffsetIndex | TimeIndex) -> list[tuple[int, int]]:
    return [index.entry(number) for number in range(len(index))]


@st.composite
def several(draw: st.DrawFn) -> list[Row]:
    """Draw appends: offsets rise, timestamps go where they like."""
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


def account(rows: list[Row], interval: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Index as `LogSegment.append` says it, one append after the other, then close."""
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    position = since = 0
    largest = (-1, BASE)
    for size, _, last, timestamp, timestamp_offset in rows:
        if timestamp > largest[0]:
            largest = (timestamp, timestamp_offset)
        if since > interval:
            offsets.append((last, position))
            if largest[0] > (times[-1][0] if times else -1):
                times.append(largest)
            since = 0
        since += size
        position += size
    if largest[0] > (times[-1][0] if times else -1):
        times.append(largest)
    return offsets, times


@given(several(), st.integers(0, 500))
def test_as_the_rule_says_it(rows: list[Row], interval: int) -> None:
    offset_index, time_index = index_appends(appends(rows), BASE, interval)
    assert (entries(offset_index), entries(time_index)) == account(rows, interval)


@given(several(), st.integers(0, 500), st.lists(st.integers(0, 40)))
def test_in_pieces_as_at_once(rows: list[Row], interval: int, cuts: list[int]) -> None:
    at_once = appends(rows)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    indexes = no_entries(BASE)
    for begin, end in pairwise(bounds):
        indexes = indexes.with_appends(at_once.part(begin, end), interval)
    offset_index, time_index = index_appends(at_once, BASE, interval)
    assert entries(indexes.closed()[0]) == entries(offset_index)
    assert entries(indexes.closed()[1]) == entries(time_index)
    assert indexes.size_bytes == sum(row[0] for row in rows)


@given(several(), st.integers(0, 500))
def test_what_is_made_a_broker_appends(rows: list[Row], interval: int) -> None:
    offset_index, time_index = index_appends(appends(rows), BASE, interval)
    made = no_entries(BASE)
    assert entries(made.offset_index.with_entries(entries(offset_index))) == entries(offset_index)
    assert entries(made.time_index.with_entries(entries(time_index))) == entries(time_index)


@given(several(), st.integers(0, 500), st.integers(BASE - 5, BASE + 900))
def test_a_look_up_starts_at_or_before_what_holds_the_target(
    rows: list[Row], interval: int, target: int
) -> None:
    made = appends(rows)
    position = index_appends(made, BASE, interval)[0].position_before(target)
    reaching = made.positions[made.last_offsets >= target]
    assert not len(reaching) or position <= reaching[0]
    assert position == 0 or position in made.positions


@given(several(), st.integers(0, 500), st.integers(0, 70))
def test_no_record_up_to_a_time_entry_is_as_late(
    rows: list[Row], interval: int, timestamp: int
) -> None:
    index = index_appends(appends(rows), BASE, interval)[1]
    number = index.entry_before(timestamp)
    if number >= 0:
        before = [row for row in rows if row[2] <= index.entry(number).offset]
        assert all(row[3] < timestamp for row in before)


def test_the_example_of_seven_appends() -> None:
    timestamps = [1001, 1101, 1051, 1201, 1201, 901, 1301]
    rows = [
        (115, BASE + 2 * n, BASE + 2 * n + 1, timestamp, BASE + 2 * n + 1)
        for n, timestamp in enumerate(timestamps)
    ]
    offset_index, time_index = index_appends(appends(rows), BASE, 200)
    assert encode_offset_index(offset_index).hex() == (
        "00000005000000e600000009000001cc0000000d000002b2"
    )
    assert encode_time_index(time_index).hex() == (
        "000000000000044d0000000300000000000004b10000000700000000000005150000000d"
    )


@pytest.mark.parametrize(
    ("interval", "chosen"),
    [(0, [1, 2, 3]), (99, [1, 2, 3]), (100, [2]), (199, [2]), (200, [3]), (300, [])],
)
def test_strictly_more_than_the_interval(interval: int, chosen: list[int]) -> None:
    assert entry_rows(np.arange(4) * 100, interval).tolist() == chosen


def test_an_append_of_many_batches_gets_one_entry() -> None:
    single = appends([(100, n, n, 50 - abs(n - 3), n) for n in range(6)])
    grouped = single.grouped(np.array([0, 2, 5]))
    assert grouped.size_bytes.tolist() == [200, 300, 100]
    assert grouped.first_offsets.tolist() == [0, 2, 5]
    assert grouped.last_offsets.tolist() == [1, 4, 5]
    assert grouped.max_timestamps.tolist() == [48, 50, 48]
    assert grouped.max_timestamp_offsets.tolist() == [1, 3, 5]
    offset_index, time_index = index_appends(grouped, 0, 0)
    assert entries(offset_index) == [(4, 200), (5, 500)]
    assert entries(time_index) == [(50, 3)]


@given(several(), st.data())
def test_grouping_keeps_the_earliest_of_the_largest(rows: list[Row], data: st.DataObject) -> None:
    if rows:
        starts = sorted({0, *data.draw(st.lists(st.integers(0, len(rows) - 1)))})
        grouped = appends(rows).grouped(np.array(starts))
        for number, (begin, end) in enumerate(zip(starts, [*starts[1:], len(rows)], strict=True)):
            one = rows[begin:end]
            most = max(row[3] for row in one)
            first = next(row for row in one if row[3] == most)
            assert grouped.size_bytes[number] == sum(row[0] for row in one)
            assert grouped.last_offsets[number] == one[-1][2]
            assert (grouped.max_timestamps[number], grouped.max_timestamp_offsets[number]) == (
                most,
                first[4],
            )


def test_recovery_goes_by_batches() -> None:
    data = b"".join(
        [
            plain(0, [b"v", b"w"], 1000),
            batch([Record(2, 700)], attributes=LOG_APPEND_TIME, max_timestamp=1500),
            plain(3, [b"x"] * 3, 1200),
            batch([Record(6, -1)]),
        ]
    )
    found = v2.scan(data, 0, len(data))
    offset_index, time_index = index_batches(found, 0, 0)
    starts = found.starts.tolist()
    assert entries(offset_index) == [(2, starts[1]), (5, starts[2]), (6, starts[3])]
    assert entries(time_index) == [(1500, 2)]
    assert appends_of(found).size_bytes.tolist() == (found.ends - found.starts).tolist()


def test_entries_of_old_formats_are_not_opened() -> None:
    many = [Record(7, 20, None, b"x"), Record(9, 40, None, b"y")]
    data = b"".join(
        [
            legacy.plain([Record(4, 50)], 0),
            legacy.plain([Record(5, 30)], 1),
            legacy.wrapper(many, 1, GZIP),
            legacy.wrapper([replace(one, offset=one.offset + 10) for one in many], 0, GZIP),
            plain(30, [b"v", b"w"], 39),
        ]
    )
    found = v2.scan(data, 0, len(data))
    made = appends_of(found)
    assert made.first_offsets.tolist() == [4, 5, UNKNOWN_OFFSET, UNKNOWN_OFFSET, 30]
    assert made.last_offsets.tolist() == [4, 5, 9, 19, 31]
    assert made.max_timestamps.tolist() == [-1, 30, 40, -1, 40]
    offset_index, time_index = index_batches(found, 0, 0)
    starts = found.starts.tolist()
    assert entries(offset_index) == list(zip([5, 9, 19, 31], starts[1:], strict=True))
    assert entries(time_index) == [(30, 5), (40, 9)]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 90), st.integers(-1, 50)), max_size=12),
    st.integers(0, 400),
)
def test_recovery_as_the_rule_says_it(shapes: list[tuple[int, int, int]], interval: int) -> None:
    data, offset = b"", BASE
    for count, size, timestamp in shapes:
        records = [Record(offset + n, timestamp, None, b"v" * size) for n in range(count)]
        data, offset = data + batch(records), offset + count + 2
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    valid = last_indexed = 0
    largest = (-1, BASE)
    found = v2.scan(data, 0, len(data))
    for end, last, header in zip(found.ends, found.next_offsets - 1, found.headers, strict=True):
        if header["max_timestamp"] > largest[0]:
            largest = (int(header["max_timestamp"]), int(last))
        if valid - last_indexed > interval:
            offsets.append((int(last), valid))
            if largest[0] > (times[-1][0] if times else -1):
                times.append(largest)
            last_indexed = valid
        valid = int(end)
    if largest[0] > (times[-1][0] if times else -1):
        times.append(largest)
    offset_index, time_index = index_batches(found, BASE, interval)
    assert (entries(offset_index), entries(time_index)) == (offsets, times)


def test_the_golden_directory() -> None:
    data = b"".join(DIRECTORY)
    offset_index, time_index = index_batches(v2.scan(data, 0, len(data)), 0)
    assert encode_offset_index(offset_index) == b""
    assert encode_time_index(time_index).hex() == "00000000000003f20000000a"


def test_records_without_timestamps_make_no_time_entry() -> None:
    offset_index, time_index = index_appends(appends([(9, n, n, -1, n) for n in range(5)]), 0, 0)
    assert len(offset_index) == 4
    assert entries(time_index) == []


def test_a_segment_opened_again_counts_from_there() -> None:
    first = no_entries(0).with_appends(appends([(100, 0, 0, 7, 0)] * 2), 150)
    closed = first.closed()
    again = OpenIndexes(*closed, first.size_bytes, 0, closed[1].last_entry)
    later = again.with_appends(appends([(100, n, n, 7, n) for n in (2, 3, 4)]), 150)
    assert entries(later.offset_index) == [(4, 400)]
    assert later.largest == TimestampOffset(7, 0)
    assert entries(later.closed()[1]) == [(7, 0)]
