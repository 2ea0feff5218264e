"""Where a log rolls: each rule at its bound, and plans that are within the limits and greedy."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.indexing import UNKNOWN_OFFSET, Appends, index_appends
from klog.logformat.rolling import (
    OpenSegment,
    RollLimits,
    RollPlan,
    max_segment_ms,
    plan_rolls,
)

LARGEST = (1 << 31) - 1
NEW = OpenSegment(0, 0)


def appends(
    sizes: list[int], timestamps: list[int] | None = None, lasts: list[int] | None = None
) -> Appends:
    """Make appends of one record each unless told else."""
    last = np.array(range(len(sizes)) if lasts is None else lasts, np.int64)
    first = np.append(0, last + 1)[:-1]
    times = np.array(timestamps or [-1] * len(sizes), np.int64)
    return Appends(np.array(sizes, np.int64), first, last, times, last)


def planned(plan: RollPlan) -> list[tuple[int, int]]:
    """Give (first append, base offset) of each segment."""
    return list(zip(plan.starts.tolist(), plan.base_offsets.tolist(), strict=True))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([50, 50], [(0, 0)]),
        ([50, 51], [(0, 0), (1, 1)]),
        ([100, 1, 99, 1], [(0, 0), (1, 1), (3, 3)]),
        ([], [(0, 0)]),
    ],
)
def test_by_size(sizes: list[int], expected: list[tuple[int, int]]) -> None:
    assert planned(plan_rolls(appends(sizes), NEW, RollLimits(segment_bytes=100))) == expected


@pytest.mark.parametrize(
    ("timestamps", "expected"),
    [
        ([1000, 1100], [(0, 0)]),
        ([1000, 1101], [(0, 0), (1, 1)]),
        ([1000, 900, 1101, 1201, 1202], [(0, 0), (2, 2), (4, 4)]),
        ([1000, -1, 1100], [(0, 0)]),
        ([0, 101], [(0, 0), (1, 1)]),
        ([-1, 5000, 9000], [(0, 0)]),
    ],
    ids=str,
)
def test_by_time(timestamps: list[int], expected: list[tuple[int, int]]) -> None:
    made = appends([1] * len(timestamps), timestamps)
    assert planned(plan_rolls(made, NEW, RollLimits(segment_ms=100))) == expected


def test_by_the_clock_where_the_first_append_has_no_timestamp() -> None:
    made = appends([1] * 5, [-1, -1, 7, -1, -1])
    clock = np.array([1050, 1100, 1101, 1150, 5000])
    plan = plan_rolls(made, OpenSegment(0, 0, 1000), RollLimits(segment_ms=100), clock)
    # The third comes too late for a segment created at 1000; from then on its timestamp counts.
    assert planned(plan) == [(0, 0), (2, 2)]
    assert plan.active.created_ms == 1101


def test_an_empty_segment_does_not_roll_by_time() -> None:
    plan = plan_rolls(appends([1]), NEW, RollLimits(segment_ms=100), np.array([100_000]))
    assert planned(plan) == [(0, 0)]


@pytest.mark.parametrize(
    ("index_bytes", "expected"),
    [
        pytest.param(12, [0, 1, 2, 3, 4, 5, 6, 7], id="no time slot: each append"),
        pytest.param(24, [0, 2, 4, 6], id="one time slot"),
        pytest.param(36, [0, 3, 6], id="two time slots"),
        pytest.param(84, [0, 7], id="six time slots"),
    ],
)
def test_by_a_full_time_index(index_bytes: int, expected: list[int]) -> None:
    limits = RollLimits(segment_index_bytes=index_bytes, index_interval_bytes=0)
    plan = plan_rolls(appends([9] * 8, list(range(8))), NEW, limits)
    assert plan.starts.tolist() == expected


def test_by_a_full_offset_index() -> None:
    limits = RollLimits(segment_index_bytes=36, index_interval_bytes=0)
    plan = plan_rolls(appends([9] * 11, [7] * 11), NEW, limits)
    # Four offset entries fit; equal timestamps make one time entry.
    assert plan.starts.tolist() == [0, 5, 10]


def test_by_the_span_of_offsets() -> None:
    made = appends([1] * 3, lasts=[LARGEST, LARGEST + 1, 2 * LARGEST + 2])
    assert planned(plan_rolls(made, NEW, RollLimits())) == [
        (0, 0),
        (1, LARGEST + 1),
        (2, LARGEST + 2),
    ]


def test_an_empty_segment_is_left_behind_where_the_offset_is_too_far() -> None:
    made = replace(appends([1], lasts=[LARGEST + 200]), first_offsets=np.array([LARGEST + 200]))
    assert planned(plan_rolls(made, NEW, RollLimits())) == [(0, 0), (0, LARGEST + 200)]


def test_the_base_offset_where_the_first_offset_is_not_known() -> None:
    made = appends([1, 1], lasts=[5, 5 + LARGEST])
    unknown = replace(made, first_offsets=np.array([0, UNKNOWN_OFFSET]))
    assert planned(plan_rolls(unknown, NEW, RollLimits())) == [(0, 0), (1, 6)]
    far = replace(appends([1], lasts=[LARGEST + 500]), first_offsets=np.array([UNKNOWN_OFFSET]))
    assert planned(plan_rolls(far, NEW, RollLimits())) == [(0, 0), (0, 500)]


@pytest.mark.parametrize(
    ("made", "limits", "words"),
    [
        (appends([101]), RollLimits(segment_bytes=100), "larger than segment.bytes 100"),
        (appends([1, 1], lasts=[5, 5]), RollLimits(), "last offsets that rise"),
        (appends([1], lasts=[-1]), RollLimits(), "last offsets that rise"),
        (appends([0]), RollLimits(), "must have bytes"),
        (appends([1]), RollLimits(segment_index_bytes=11), "segment.index.bytes 11"),
        (appends([1], lasts=[LARGEST + 1]), RollLimits(), "cut it"),
    ],
)
def test_what_no_segment_takes(made: Appends, limits: RollLimits, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plan_rolls(made, NEW, limits)


@pytest.mark.parametrize(
    ("compacts", "lag", "jitter", "expected"),
    [(False, 10, 0, 100), (True, 10, 0, 10), (True, 0, 0, 100), (True, 1000, 30, 70)],
)
def test_how_long_a_segment_may_span(compacts: bool, lag: int, jitter: int, expected: int) -> None:
    assert max_segment_ms(100, lag, compacts=compacts, jitter_ms=jitter) == expected


LIMITS = st.builds(
    RollLimits,
    segment_bytes=st.integers(40, 300),
    segment_ms=st.integers(1, 60),
    segment_index_bytes=st.integers(12, 80),
    index_interval_bytes=st.integers(0, 60),
)


@st.composite
def several(draw: st.DrawFn) -> Appends:
    sizes = draw(st.lists(st.integers(1, 40), max_size=60))
    steps = draw(st.lists(st.sampled_from([1, 2, 1 << 30]), min_size=60, max_size=60))
    times = draw(st.lists(st.integers(-1, 100), min_size=60, max_size=60))
    return appends(sizes, times[: len(sizes)], np.cumsum(steps).tolist()[: len(sizes)])


@given(several(), LIMITS)
def test_plans_are_within_the_limits_and_greedy(made: Appends, limits: RollLimits) -> None:
    plan = plan_rolls(made, NEW, limits)
    bounds = [*plan.starts.tolist(), len(made)]
    for (begin, end), base in zip(pairwise(bounds), plan.base_offsets.tolist(), strict=True):
        assert fits(made.part(begin, end), base, limits)
        # One append more would not have: the index that is full refuses the next entry at once.
        if end < len(made):
            assert not fits(made.part(begin, end + 1), base, limits)
    taken = np.concatenate([np.arange(begin, end) for begin, end in pairwise(bounds)])
    assert taken.tolist() == list(range(len(made)))


def fits(part: Appends, base: int, limits: RollLimits) -> bool:
    """Tell whether a segment of these appends keeps every limit."""
    if not len(part):
        return True
    first = int(part.max_timestamps[0])
    in_time = first < 0 or int((part.max_timestamps - first).max()) <= limits.segment_ms
    offset_index, time_index = index_appends(
        part.part(0, len(part) - 1), base, limits.index_interval_bytes
    )
    # What was indexed before the last append left room for another entry.
    before_closing = len(time_index) - int(closing_entry(part, limits))
    room = len(part) == 1 or (
        len(offset_index) < limits.segment_index_bytes // 8
        and before_closing < limits.segment_index_bytes // 12 - 1
    )
    in_size = int(part.size_bytes.sum()) <= limits.segment_bytes
    return in_time and room and in_size and int(part.last_offsets[-1]) - base <= LARGEST


def closing_entry(part: Appends, limits: RollLimits) -> bool:
    """Tell whether closing all but the last append would have added a time entry."""
    segment = OpenSegment(0, 0)
    for number in range(len(part) - 1):
        segment.take(
            int(part.size_bytes[number]),
            int(part.last_offsets[number]),
            int(part.max_timestamps[number]),
            limits,
        )
    return segment.largest_timestamp_ms > segment.indexed_timestamp_ms


@given(several(), LIMITS)
def test_the_entries_it_counts_are_those_the_indexes_get(made: Appends, limits: RollLimits) -> None:
    active = plan_rolls(made, NEW, limits).active
    begin = int(plan_rolls(made, NEW, limits).starts[-1])
    part = made.part(begin, len(made))
    offset_index, time_index = index_appends(part, active.base_offset, limits.index_interval_bytes)
    closing = active.largest_timestamp_ms > active.indexed_timestamp_ms
    assert active.offset_entries == len(offset_index)
    assert active.time_entries + closing == len(time_index)
    assert active.size_bytes == part.size_bytes.sum()


@given(several(), LIMITS, st.integers(0, 60))
def test_in_pieces_as_at_once(made: Appends, limits: RollLimits, cut: int) -> None:
    at_once = plan_rolls(made, NEW, limits)
    cut = min(cut, len(made))
    first = plan_rolls(made.part(0, cut), NEW, limits)
    second = plan_rolls(made.part(cut, len(made)), first.active, limits)
    assert second.active == at_once.active
    assert [*planned(first), *((n + cut, base) for n, base in planned(second)[1:])] == planned(
        at_once
    )
    assert OpenSegment(0, 0) == NEW
