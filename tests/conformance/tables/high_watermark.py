"""Section 20, UnifiedLogTest: how far a log is read while a broker holds it.

What moves a high watermark is a broker; klog is held to what it reads of one, and to the clamp of
one that lies beyond the log.
"""

from __future__ import annotations

from tests.conformance.case import Case, NotApplicable
from tests.conformance.held_runs import held
from tests.conformance.log_runs import script
from tests.conformance.state_runs import Step
from tests.conformance.steps import BOUNDS, LOAD, n, segments

FETCHED = "20 testFetchUpToHighWatermark / LastStableOffset / LogEndOffset"
OUT = "OffsetOutOfRangeError"


def case(name: str, steps: tuple[Step, ...], expect: list[object], label: str = "") -> Case:
    """Make a case of a script on a partition that a broker holds."""
    return Case(name, held, steps, expect, label)


CASES: list[Case] = [
    case(
        "20 testHighWatermarkMaintenance",
        (
            ("write", 0, ("plain", 3)),
            BOUNDS,
            ("watermark", 1),
            BOUNDS,
            ("watermark", 5),
            BOUNDS,
            ("write", 0, ("plain", 3)),
            ("watermark", 6),
            BOUNDS,
            LOAD,
            ("truncate", 3),
            BOUNDS,
            ("start_at", 4),
            BOUNDS,
        ),
        # Log start, high watermark, log end: what is beyond the log is clamped to its end.
        [(0, 0, 3), (0, 1, 3), (0, 3, 3), (0, 6, 6), (0, 3, 3), (4, 4, 4)],
    ),
    case(
        "20 testHighWatermarkMetadataUpdatedAfterSegmentRoll",
        (
            ("write", 0, ("plain", 3)),
            ("read", 0),
            ("put", n(3, "log"), b""),
            ("read", 0),
            ("watermark", 3),
            ("read", 0),
            ("read", 3),
            ("write", 3, ("plain", 3)),
            ("read", 0),
            ("read", 3),
            ("watermark", 6),
            ("read", 3),
        ),
        [[], [], [0, 1, 2], [], [0, 1, 2], [], [3, 4, 5]],
    ),
    # Above the bound Kafka's log gives nothing; klog says that there is no such offset to begin at.
    case(
        FETCHED,
        (*segments(5), ("watermark", 3), *[("read", start) for start in (0, 2, 3, 4, 5)]),
        [[0, 1, 2], [2], [], OUT, OUT],
        "high watermark",
    ),
    case(
        FETCHED,
        (
            ("write", 0, ("plain", 3), ("txn", 1, 2), ("plain", 1)),
            ("watermark", 6),
            *[("read", start, "read_committed") for start in (0, 2, 3)],
            ("read", 0),
        ),
        [[0, 1, 2], [2], [], [0, 1, 2, 3, 4, 5]],
        "last stable offset",
    ),
    Case(
        FETCHED,
        script,
        (*segments(5), LOAD, *[("read", start) for start in (3, 4, 5, 6)]),
        [[3, 4], [4], [], OUT],
        "log end offset",
    ),
    case(
        "20 testFetchUpToLastStableOffset",
        (
            ("write", 0, ("txn", 1, 5), ("plain", 3), ("txn", 2, 2), ("commit", 1), ("abort", 2)),
            *[step for at in (9, 10, 11, 12) for step in (("watermark", at), ("stable",))],
            ("read", 0, "read_committed"),
        ),
        [0, 0, 8, 12, list(range(8))],
        "read of a broker's directory",
    ),
    # Log start, high watermark and log end, then the last stable offset.
    case(
        "20 testOffsetSnapshot",
        (
            *segments(3),
            ("watermark", 2),
            BOUNDS,
            ("stable",),
            ("watermark", 3),
            BOUNDS,
            ("stable",),
        ),
        [(0, 2, 3), 2, (0, 3, 3), 3],
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
