"""Section 19, LogLoaderTest: segments whose offsets overflow, and crashes while they are split."""

from __future__ import annotations

from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.log_runs import parts
from tests.conformance.state_runs import Step
from tests.conformance.steps import BOUNDS, LOAD, LOAD_CLEAN, MAX, case, n

OVERFLOW: tuple[Step, ...] = (
    ("plain", 1),
    ("plain", 1),
    ("at", MAX + 2),
    ("plain", 1),
    ("plain", 1),
)
KEPT: tuple[Step, ...] = (("offsets",), ("bases",))
SPLIT: list[object] = [[0, 1, MAX + 2, MAX + 3], [0, MAX + 2]]
PHASE = "19 testRecoveryAfterCrashDuringSplitPhase1..5"
LOW, HIGH = n(0, "log"), n(MAX + 2, "log")
HALVES: tuple[Step, ...] = (("write", 0, *OVERFLOW[:2]), ("write", MAX + 2, *OVERFLOW[3:]))

CASES: list[Case] = [
    *[
        case(
            "19 testOverCompactedLogRecovery (+MultiRecord)",
            (
                ("write", 0, ("plain", 1), ("at", MAX + 2), *after),
                LOAD,
                ("bases",),
                BOUNDS,
                ("snapshots",),
            ),
            [[0, MAX + 2], (0, MAX + 5), [MAX + 2, MAX + 5]],
            label,
        )
        for label, after in {
            "single": (("plain", 1), ("plain", 1), ("plain", 1)),
            "several": (("plain", 3),),
        }.items()
    ],
    case(
        "19 testRecoveryOfSegmentWithOffsetOverflow",
        (("write", 0, *OVERFLOW), LOAD, *KEPT, LOAD_CLEAN, *KEPT),
        [*SPLIT, *SPLIT],
    ),
    Case(
        "19 testRecoveryOfSegmentWithOffsetOverflow",
        parts,
        (0, ("plain", 1), ("at", MAX), ("plain", 1)),
        Refused(ValueError, "does not overflow"),
        "again",
    ),
    case(
        PHASE,
        (
            *HALVES,
            ("rename", LOW, f"{LOW}.cleaned"),
            ("rename", HIGH, f"{HIGH}.cleaned"),
            ("write", 0, *OVERFLOW),
            LOAD,
            *KEPT,
        ),
        SPLIT,
        "1, before a swap",
    ),
    case(
        PHASE,
        (
            *HALVES,
            ("rename", LOW, f"{LOW}.cleaned"),
            ("rename", HIGH, f"{HIGH}.swap"),
            ("write", 0, *OVERFLOW),
            LOAD,
            *KEPT,
        ),
        SPLIT,
        "2, partly renamed",
    ),
    case(
        PHASE,
        (
            *HALVES,
            ("rename", LOW, f"{LOW}.swap"),
            ("rename", HIGH, f"{HIGH}.swap"),
            ("write", 0, *OVERFLOW),
            LOAD,
            *KEPT,
        ),
        SPLIT,
        "3, fully renamed",
    ),
    case(
        PHASE,
        (
            *HALVES,
            ("rename", LOW, f"{LOW}.swap"),
            ("rename", HIGH, f"{HIGH}.swap"),
            ("write", 0, *OVERFLOW),
            ("rename", LOW, f"{LOW}.deleted"),
            LOAD,
            *KEPT,
        ),
        SPLIT,
        "4, old one deleted",
    ),
    case(
        PHASE,
        (*HALVES, ("rename", HIGH, f"{HIGH}.swap"), LOAD, *KEPT),
        SPLIT,
        "5, partly promoted",
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
