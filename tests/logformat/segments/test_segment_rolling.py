"""When a segment rolls: each rule at its limit, and plans that use the limits fully."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.indexes.index_building import UNKNOWN_OFFSET, Appends, build_indexes
from klog.logformat.segments.segment_rolling import (
    OpenSegment,
    RollLimits,
    RollPlan,
    max_segment_ms,
    plan_rolls,
)

LARGEST = (1 << 31) - 1
NEW = OpenSegment(0, 0)


def appends_of(
    sizes: list[int], timestamps: list[int] | None = None, last_offsets: list[int] | None = None
) -> Appends:
    """Make appends of one record each unless `last_offsets` are given."""
    offsets = np.array(range(len(sizes)) if last_offsets is None else last_offsets, np.int64)
    first_offsets = np.append(0, offsets + 1)[:-1]
    times = np.array(timestamps or [-1] * len(sizes), np.int64)
    return Appends(np.array(sizes, np.int64), first_offsets, offsets, times, offsets)


def segments(plan: RollPlan) -> list[tuple[int, int]]:
    """Return (first append, base offset) of each segment."""
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
def test_size(sizes: list[int], expected: list[tuple[int, int]]) -> None:
    assert segments(plan_rolls(appends_of(sizes), NEW, RollLimits(segment_bytes=100))) == expected


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
def test_time(timestamps: list[int], expected: list[tuple[int, int]]) -> None:
    appends = appends_of([1] * len(timestamps), timestamps)
    assert segments(plan_rolls(appends, NEW, RollLimits(segment_ms=100))) == expected


def test_clock_counts_if_the_first_append_has_no_timestamp() -> None:
    appends = appends_of([1] * 5, [-1, -1, 7, -1, -1])
    clock = np.array([1050, 1100, 1101, 1150, 5000])
    plan = plan_rolls(appends, OpenSegment(0, 0, 1000), RollLimits(segment_ms=100), clock)
    # The third is too late for a segment created at 1000; after that its timestamp counts.
    assert segments(plan) == [(0, 0), (2, 2)]
    assert plan.active.created_ms == 1101


def test_empty_segment_does_not_roll_by_time() -> None:
    plan = plan_rolls(appends_of([1]), NEW, RollLimits(segment_ms=100), np.array([100_000]))
    assert segments(plan) == [(0, 0)]


@pytest.mark.parametrize(
    ("index_bytes", "expected"),
    [
        pytest.param(12, [0, 1, 2, 3, 4, 5, 6, 7], id="no time slot: each append"),
        pytest.param(24, [0, 2, 4, 6], id="one time slot"),
        pytest.param(36, [0, 3, 6], id="two time slots"),
        pytest.param(84, [0, 7], id="six time slots"),
    ],
)
def test_full_time_index(index_bytes: int, expected: list[int]) -> None:
    limits = RollLimits(segment_index_bytes=index_bytes, index_interval_bytes=0)
    plan = plan_rolls(appends_of([9] * 8, list(range(8))), NEW, limits)
    assert plan.starts.tolist() == expected


def test_full_offset_index() -> None:
    limits = RollLimits(segment_index_bytes=36, index_interval_bytes=0)
    plan = plan_rolls(appends_of([9] * 11, [7] * 11), NEW, limits)
    # Four offset entries fit; equal timestamps make one time entry.
    assert plan.starts.tolist() == [0, 5, 10]


def test_offset_too_large_for_the_segment() -> None:
    appends = appends_of([1] * 3, last_offsets=[LARGEST, LARGEST + 1, 2 * LARGEST + 2])
    assert segments(plan_rolls(appends, NEW, RollLimits())) == [
        (0, 0),
        (1, LARGEST + 1),
        (2, LARGEST + 2),
    ]


def test_empty_segment_rolls_if_the_offset_is_too_large() -> None:
    appends = replace(
        appends_of([1], last_offsets=[LARGEST + 200]), first_offsets=np.array([LARGEST + 200])
    )
    assert segments(plan_rolls(appends, NEW, RollLimits())) == [(0, 0), (0, LARGEST + 200)]


def test_base_offset_without_a_known_first_offset() -> None:
    appends = appends_of([1, 1], last_offsets=[5, 5 + LARGEST])
    unknown = replace(appends, first_offsets=np.array([0, UNKNOWN_OFFSET]))
    assert segments(plan_rolls(unknown, NEW, RollLimits())) == [(0, 0), (1, 6)]
    far = replace(
        appends_of([1], last_offsets=[LARGEST + 500]), first_offsets=np.array([UNKNOWN_OFFSET])
    )
    assert segments(plan_rolls(far, NEW, RollLimits())) == [(0, 0), (0, 500)]


@pytest.mark.parametrize(
    ("appends", "limits", "reason"),
    [
        (appends_of([101]), RollLimits(segment_bytes=100), "larger than segment.bytes 100"),
        (appends_of([1, 1], last_offsets=[5, 5]), RollLimits(), "last offsets that rise"),
        (appends_of([1], last_offsets=[-1]), RollLimits(), "last offsets that rise"),
        (appends_of([0]), RollLimits(), "must have bytes"),
        (appends_of([1]), RollLimits(segment_index_bytes=11), "segment.index.bytes 11"),
        (appends_of([1], last_offsets=[LARGEST + 1]), RollLimits(), "split it"),
    ],
)
def test_refused_appends(appends: Appends, limits: RollLimits, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        plan_rolls(appends, NEW, limits)


@pytest.mark.parametrize(
    ("compacts", "lag", "jitter", "expected"),
    [(False, 10, 0, 100), (True, 10, 0, 10), (True, 0, 0, 100), (True, 1000, 30, 70)],
)
def test_compaction_lag_and_jitter_bound_segment_ms(
    compacts: bool, lag: int, jitter: int, expected: int
) -> None:
    assert max_segment_ms(100, lag, compacts=compacts, jitter_ms=jitter) == expected


LIMITS = st.builds(
    RollLimits,
    segment_bytes=st.integers(40, 300),
    segment_ms=st.integers(1, 60),
    segment_index_bytes=st.integers(12, 80),
    index_interval_bytes=st.integers(0, 60),
)


@st.composite
def drawn_appends(draw: st.DrawFn) -> Appends:
    sizes = draw(st.lists(st.integers(1, 40), max_size=60))
    steps = draw(st.lists(st.sampled_from([1, 2, 1 << 30]), min_size=60, max_size=60))
    times = draw(st.lists(st.integers(-1, 100), min_size=60, max_size=60))
    return appends_of(sizes, times[: len(sizes)], np.cumsum(steps).tolist()[: len(sizes)])


@given(drawn_appends(), LIMITS)
def test_segments_keep_the_limits_and_use_them(appends: Appends, limits: RollLimits) -> None:
    plan = plan_rolls(appends, NEW, limits)
    bounds = [*plan.starts.tolist(), len(appends)]
    for (start, end), base_offset in zip(pairwise(bounds), plan.base_offsets.tolist(), strict=True):
        assert fits(appends.part(start, end), base_offset, limits)
        # Another append would not fit: a full index refuses the next entry at once.
        if end < len(appends):
            assert not fits(appends.part(start, end + 1), base_offset, limits)
    assert bounds[0] == 0
    assert bounds == sorted(bounds)


def fits(segment: Appends, base_offset: int, limits: RollLimits) -> bool:
    """Return whether a segment of these appends keeps every limit."""
    if not len(segment):
        return True
    first_ms = int(segment.max_timestamps[0])
    fits_time = first_ms < 0 or int((segment.max_timestamps - first_ms).max()) <= limits.segment_ms
    offset_index, time_index = build_indexes(
        segment.part(0, len(segment) - 1), base_offset, limits.index_interval_bytes
    )
    # The entries before the last append must leave room for another one.
    time_entries = len(time_index) - int(closing_adds_an_entry(segment, limits))
    fits_indexes = len(segment) == 1 or (
        len(offset_index) < limits.segment_index_bytes // 8
        and time_entries < limits.segment_index_bytes // 12 - 1
    )
    fits_size = int(segment.size_bytes.sum()) <= limits.segment_bytes
    fits_offsets = int(segment.last_offsets[-1]) - base_offset <= LARGEST
    return fits_time and fits_indexes and fits_size and fits_offsets


def closing_adds_an_entry(appends: Appends, limits: RollLimits) -> bool:
    """Return whether closing before the last append would have added a time entry."""
    segment = OpenSegment(0, 0)
    for number in range(len(appends) - 1):
        segment.append(
            int(appends.size_bytes[number]),
            int(appends.last_offsets[number]),
            int(appends.max_timestamps[number]),
            limits,
        )
    return segment.largest_timestamp_ms > segment.indexed_timestamp_ms


@given(drawn_appends(), LIMITS)
def test_counted_entries_equal_the_indexes(appends: Appends, limits: RollLimits) -> None:
    active = plan_rolls(appends, NEW, limits).active
    start = int(plan_rolls(appends, NEW, limits).starts[-1])
    part = appends.part(start, len(appends))
    offset_index, time_index = build_indexes(part, active.base_offset, limits.index_interval_bytes)
    closing = active.largest_timestamp_ms > active.indexed_timestamp_ms
    assert active.offset_entries == len(offset_index)
    assert active.time_entries + closing == len(time_index)
    assert active.size_bytes == part.size_bytes.sum()


@given(drawn_appends(), LIMITS, st.integers(0, 60))
def test_plan_is_independent_of_chunks(appends: Appends, limits: RollLimits, cut: int) -> None:
    complete = plan_rolls(appends, NEW, limits)
    cut = min(cut, len(appends))
    first = plan_rolls(appends.part(0, cut), NEW, limits)
    second = plan_rolls(appends.part(cut, len(appends)), first.active, limits)
    assert second.active == complete.active
    later_segments = [(number + cut, base) for number, base in segments(second)[1:]]
    assert [*segments(first), *later_segments] == segments(complete)
    assert OpenSegment(0, 0) == NEW
