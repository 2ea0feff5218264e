"""Where a log rolls: cases of sections 17, 19 and 20 that are about plans of appends."""

from __future__ import annotations

from tests.conformance import roll_runs as runs
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.steps import BOUNDS, LOAD, MAX, case, segments
from tests.support.batch_bytes import GZIP, Record
from tests.support.legacy_bytes import wrapper

HOUR = 3_600_000
LATE = HOUR + 1
DURING = "20 testTimeBasedLogRollDuringAppend"
EXISTS = "20 testRollSegmentThatAlreadyExists"
TIMES = "20 testGetFirstBatchTimestampForSegments"

_UNTIMED = [(-1, LATE), (-1, 2 * LATE), (-1, 3 * LATE), (-1, 4 * LATE)]
_TIMED = [
    # The segment's first append has no timestamp, so the clock counts.
    (5 * LATE, 4 * LATE),
    (5 * LATE, 5 * LATE),
    # Now it has: the clock alone does not roll, a record far enough ahead does.
    (5 * LATE, 6 * LATE),
    (6 * LATE, 6 * LATE),
]


def _pair(first: int) -> bytes:
    records = [Record(first + n, 0, b"k", b"v") for n in range(2)]
    return wrapper(records, 1, GZIP)


CASES = [
    Case(DURING, runs.rolled_by_time, (_UNTIMED, HOUR), [0, 1, 2, 3], "the clock"),
    Case(DURING, runs.rolled_by_time, (_UNTIMED + _TIMED, HOUR), [0, 1, 2, 3, 5, 7], "timestamps"),
    Case(EXISTS, runs.rolled, ((0, 0, 0), [0], 12), [(0, 0)]),
    Case(
        "20 testTimeBasedLogRollJitter",
        runs.rolled_by_time,
        ([(-1, 0), (-1, HOUR - 1_200_000), (-1, HOUR - 700_000)], HOUR, 700_000),
        [0],
        "before",
    ),
    Case(
        "20 testTimeBasedLogRollJitter",
        runs.rolled_by_time,
        ([(-1, 0), (-1, HOUR - 1_200_000), (-1, HOUR - 700_000 + 1)], HOUR, 700_000),
        [0, 2],
        "after",
    ),
    Case("20 testSizeBasedLogRoll", runs.rolled_by_size, ([100] * 11, 10 * 99), [0, 9]),
    Case(
        "20 testMessageSetSizeCheck",
        runs.rolled_by_size,
        ([100], 99),
        Refused(ValueError, "larger than segment.bytes 99"),
    ),
    # Kafka says 2^63 - 1 of a segment that is empty, klog that it has none.
    Case(TIMES, runs.first_timestamp, ([],), -1, "empty"),
    Case(TIMES, runs.first_timestamp, ([1000, 900],), 1000, "the first batch's"),
    # A wrapper does not say where it begins, so the base is the lowest that it can be given.
    Case(
        "19 testOverCompactedLogRecoveryMultiRecordV1",
        runs.rolled_by_offsets,
        (wrapper([Record(0, 0)], 1, GZIP) + b"".join(_pair(MAX + n) for n in (2, 4, 6)),),
        [0, 3, MAX + 4],
    ),
    case(
        "17 testTruncateTo",
        (*segments(3, 3, 3, 3), ("write", 12), LOAD, ("truncate", 7), ("bases",), BOUNDS),
        [[0, 3, 6], (0, 7)],
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
