"""Section 19, LogLoaderTest: indexes, epochs and aborted transactions rebuilt from the log."""

from __future__ import annotations

from tests.conformance.case import Case, NotApplicable
from tests.conformance.scenario import T_ABORTED, T_SEGMENTS
from tests.conformance.steps import (
    BOUNDS,
    CLEAN,
    EVERY,
    LOAD,
    REBUILT,
    REBUILT_EXPECTED,
    case,
    n,
    segments,
)
from tests.support.batch_bytes import GZIP, Record
from tests.support.legacy_bytes import plain, wrapper

TRANSACTIONS = (
    "19 testFullTransactionIndexRecovery / testRecoverOnlyLastSegment / "
    "testRecoverLastSegmentWithNoSnapshots"
)
REBUILD = "19 testIndexRebuild / testCorruptIndexRebuild"

CASES: list[Case] = [
    case(
        "19 testLogRecoversToCorrectOffset",
        (
            *segments(*[10] * 10),
            ("load", EVERY),
            BOUNDS,
            ("index offsets",),
            ("times",),
            ("load", {"recovery_point": 100, **CLEAN, **EVERY}),
            BOUNDS,
            ("index offsets",),
            ("load", {"recovery_point": 10, **EVERY}),
            BOUNDS,
            ("index offsets",),
            ("times",),
        ),
        [
            (0, 100),
            [offset for offset in range(100) if offset % 10],
            [(1000 + offset, offset) for offset in range(100) if offset % 10],
            (0, 100),
            [offset for offset in range(100) if offset % 10],
            (0, 100),
            [offset for offset in range(100) if offset % 10],
            [(1000 + offset, offset) for offset in range(100) if offset % 10],
        ],
    ),
    case(
        REBUILD,
        (
            *segments(4),
            ("load", EVERY),
            ("remove", "index"),
            ("load", {**EVERY, **CLEAN}),
            *REBUILT,
        ),
        REBUILT_EXPECTED,
        "deleted",
    ),
    case(
        REBUILD,
        (
            *segments(4),
            ("load", EVERY),
            ("put", n(0, "index"), b"  "),
            ("put", n(0, "timeindex"), b"  "),
            ("load", EVERY),
            *REBUILT,
        ),
        REBUILT_EXPECTED,
        "overwritten",
    ),
    # Messages of v0 have no time, those of v1 may lack it; the offset index is made all the same.
    *[
        case(
            "19 testRebuildTimeIndexForOldMessages",
            (
                ("write", 0, ("raw", *old)),
                ("load", EVERY),
                ("offsets",),
                ("index offsets",),
                ("times",),
                ("file", n(0, "timeindex")),
            ),
            [[0, 1, 2, 3], [1, 2, 3], [], b""],
            label,
        )
        for label, old in (
            ("v0", [plain([Record(at, -1, b"k", b"v")], 0) for at in range(4)]),
            ("v0 in wrappers", [wrapper([Record(at, -1, b"k", b"v")], 0, GZIP) for at in range(4)]),
            ("v1", [plain([Record(at, -1, b"k", b"v")], 1) for at in range(4)]),
        )
    ],
    case(
        "19 testBogusIndexSegmentsAreRemoved",
        (
            *segments(1),
            ("put", n(5, "index"), b""),
            ("put", n(5, "timeindex"), b""),
            LOAD,
            ("files",),
        ),
        [
            [
                n(0, "index"),
                n(0, "log"),
                n(0, "timeindex"),
                n(1, "snapshot"),
                "leader-epoch-checkpoint",
            ]
        ],
    ),
    case(
        "19 testCorruptLog",
        (
            *segments(10),
            LOAD,
            ("add", n(0, "log"), b"\x07" * 500),
            ("add", n(0, "index"), b"\x07" * 33),
            LOAD,
            ("offsets",),
            BOUNDS,
            ("index",),
        ),
        [list(range(10)), (0, 10), []],
    ),
    case(
        "19 testLogRecoversForLeaderEpoch",
        (
            (
                "write",
                0,
                ("epoch", 1),
                ("plain", 1),
                ("epoch", 2),
                ("plain", 2),
                ("epoch", 3),
                ("plain", 1),
            ),
            LOAD,
            ("put", "leader-epoch-checkpoint", b"0\n1\n1 0\n"),
            LOAD,
            ("epochs",),
        ),
        [[(1, 0), (2, 1), (3, 3)]],
    ),
    case(
        TRANSACTIONS,
        (*T_SEGMENTS, LOAD, ("remove", "index"), LOAD, ("aborted",), BOUNDS),
        [T_ABORTED, (0, 90)],
        "all indexes deleted",
    ),
    case(
        TRANSACTIONS,
        (
            *T_SEGMENTS,
            LOAD,
            ("remove", n(74, "txnindex")),
            ("load", {"recovery_point": 74}),
            ("aborted",),
        ),
        [T_ABORTED],
        "only the last segment",
    ),
    case(
        TRANSACTIONS,
        (
            *T_SEGMENTS,
            LOAD,
            ("remove", n(74, "txnindex")),
            ("remove", ".snapshot"),
            ("load", {"recovery_point": 74}),
            ("aborted",),
        ),
        [T_ABORTED],
        "without snapshots",
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
