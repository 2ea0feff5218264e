"""LogSegmentTest without recovery (section 16), OffsetMapTest (section 14)."""

from __future__ import annotations

from tests.conformance import roll_runs
from tests.conformance import segment_runs as runs
from tests.conformance.case import Case, NotApplicable, Refused

MAX = (1 << 31) - 1


def single(*offsets: int) -> list[list[tuple[int, int]]]:
    """Make batches of one record each, ten milliseconds an offset."""
    return [[(offset, 10 * offset)] for offset in offsets]


FORTIES = {40: single(*range(40, 50))}
THIRTY = single(*range(40, 70))


CASES = [
    *(
        Case(
            "16 testAppendForLogSegmentOffsetOverflowException",
            runs.relative,
            (base, largest),
            Refused(ValueError, "does not fit a segment"),
            f"({base},{largest})",
        )
        for base, largest in (
            (0, -2147483648),
            (0, 2147483648),
            (1, 0),
            (100, 10),
            (2147483648, 0),
            (-2147483648, 0),
            (2147483648, 4294967296),
        )
    ),
    Case(
        "16 testAppendForLogSegmentOffsetOverflowException",
        runs.relative,
        (2147483648, 2147483648 + MAX),
        MAX,
        "the last that fits",
    ),
    Case("16 testReadOnEmptySegment / ReadAfterLast", runs.read_offsets, ({40: []}, 40, 40), []),
    Case(
        "16 testReadOnEmptySegment / ReadAfterLast",
        runs.read_offsets,
        ({40: single(50, 51)}, 52, 52),
        [],
        "after the last",
    ),
    Case(
        "16 testReadBeforeFirstOffset",
        runs.read_offsets,
        ({40: [[(offset, offset) for offset in range(50, 54)]]}, 41, 54),
        [50, 51, 52, 53],
    ),
    Case(
        "16 testReadFromGap",
        runs.read_offsets,
        ({40: [*single(50, 51), *single(60, 61)]}, 55, 62),
        [60, 61],
    ),
    # Kafka's messages of format v1 lie at 0 and 39; klog's batch 0 and 1 have v2's sizes.
    Case(
        "16 testReadWhenNoMaxPosition",
        runs.batches_reaching,
        (40, single(50, 51), [48, 50, 51, 52, 53]),
        [0, 0, 1, None, None],
    ),
    Case(
        "16 testTruncate (loop of 30)",
        runs.append_and_truncate,
        (40, 30),
        list(range(40, 70)),
    ),
    Case(
        "16 testTruncateEmptySegment",
        roll_runs.rolls_when_empty,
        (0, [(0, 50_000, 50_000), (0, -1, 50_000), (MAX, 0, 0), (MAX + 200, 0, 0)]),
        [False, False, False, True],
    ),
    # A v2 batch of one record has 88 bytes here. The last is the number of offset entries.
    Case(
        "16 testReloadLargestTimestampAndNextOffsetAfterTruncation",
        runs.truncate,
        (40, THIRTY, 2 * 88 - 1, 41),
        (14, 0, 400, 0),
    ),
    Case("16 testTruncateFull", runs.reuse, (40, single(40, 41, 42)), True),
    Case(
        "16 testTruncateFull", runs.truncate, (40, single(40, 41, 42), 0, 0), (2, 0, -1, 0), "cut"
    ),
    *(
        Case(
            "16 testFindOffsetByTimestamp",
            runs.offsets_for_times,
            (40, FORTIES[40], [420, 421, 430, 431, 491, 401, 399, 490], interval),
            [42, 43, 43, 44, None, 41, 40, 49],
            label,
        )
        for interval, label in ((None, "no indexes"), (0, "indexes"))
    ),
    Case("16 testNextOffsetCalculation", runs.log_bounds, ({40: []},), (40, 40), "empty"),
    Case(
        "16 testNextOffsetCalculation",
        runs.log_bounds,
        ({40: [[(50, 1), (51, 1), (52, 1)]]},),
        (40, 53),
    ),
    Case(
        "16 testCreateWithInitFileSizeAppendMessage / ClearShutdown",
        runs.read_offsets,
        (FORTIES, 40, 50, bytes(1 << 20)),
        list(range(40, 50)),
        "preallocated",
    ),
    Case(
        "16 testCreateWithInitFileSizeAppendMessage / ClearShutdown",
        runs.read_offsets,
        (FORTIES, 40, 50),
        list(range(40, 50)),
        "trimmed",
    ),
    Case(
        "16 shouldTruncateEvenIfOffsetPointsToAGapInTheLog",
        runs.truncate,
        (40, single(40, 43), 0, 41),
        (1, 0, 400, 0),
    ),
    Case(
        "16 testAppendFromFile",
        roll_runs.segments_of_offsets,
        ([1, MAX, MAX + 1],),
        [0, 2],
    ),
    # Kafka answers LMAX for an empty segment, klog that there is no timestamp.
    Case("16 testGetFirstBatchTimestamp", roll_runs.first_timestamp, ([],), -1, "empty"),
    Case("16 testGetFirstBatchTimestamp", roll_runs.first_timestamp, ([1000, 1],), 1000),
]

NOT_APPLICABLE = [
    NotApplicable(
        "16 testChangeFileSuffixes",
        "klog renames no segment's files; it reads over those that a broker has renamed.",
    ),
]
