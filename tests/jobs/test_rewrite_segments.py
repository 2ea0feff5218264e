"""Which neighbours a compaction writes as one segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from klog.jobs.compacting import rewrite_segments
from klog.jobs.shared.segment_grouping import SegmentLimits
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap

LIMITS = SegmentLimits(250, 1 << 20)


@pytest.mark.parametrize(
    ("segments_", "expected"),
    [
        ([], []),
        (["x" * 10], []),
        (["." * 10], [(0, 1)]),
        (["x" * 10, "." * 10], [(1, 2)]),
        (["." * 10, "x" * 10, "." * 10], [(0, 1), (2, 3)]),
        (["x" + "." * 9] * 5, [(0, 2), (2, 4), (4, 5)]),
        (["." * 10, "." * 10, "x" * 10, "." * 10], [(0, 2), (3, 4)]),
        (["!" * 10], [(0, 1)]),
        (["!" * 5 + "." * 5, "x" * 10, "!" * 10], [(0, 1), (2, 3)]),
        ([""], [(0, 1)]),
    ],
)
def test_groups(segments_: Sequence[str], expected: Sequence[tuple[int, int]]) -> None:
    """`x` and `!` stay, `.` goes; a segment with `!` has more than values."""
    entries, marks = [], []
    for number, signs in enumerate(segments_):
        entries.append(entry_of(number, 10 * number, 10 * number + 10))
        marks.append(marks_of(signs))
    assert groups(entries, marks) == list(expected)


def entry_of(number: int, base: int, end: int) -> Mapping[str, Any]:
    return {
        "file": f"{number}",
        "base_offset": base,
        "next_offset": end,
        "size_bytes": 100,
        "index_bytes": 8,
        "time_index_bytes": 12,
        "producer_ids": [],
        "min_timestamp_ms": 0,
        "max_timestamp_ms": 0,
    }


def marks_of(signs: str) -> RetainedBitmap:
    bits = "".join("0" if sign == "." else "1" for sign in signs).ljust(
        -(-len(signs) // 8) * 8, "0"
    )
    packed = int(bits or "0", 2).to_bytes(len(bits) // 8, "big")
    return RetainedBitmap(len(signs), packed, is_plain="!" not in signs and signs != "")


def groups(entries: Sequence[Any], marks: Sequence[RetainedBitmap]) -> list[tuple[int, int]]:
    return [
        (group.start, group.stop)
        for group in rewrite_segments.groups_to_rewrite(entries, marks, LIMITS)
    ]


def test_a_group_spans_no_more_offsets_than_an_index_can_say() -> None:
    max_offset = 2**31
    entries = [
        entry_of(0, 5, 10),
        entry_of(1, 10, 5 + max_offset),
        entry_of(2, 5 + max_offset, 6 + max_offset),
    ]
    assert groups(entries, [marks_of("." * 10)] * 3) == [(0, 2), (2, 3)]
