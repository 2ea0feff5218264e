"""Section 19, LogLoaderTest: loading after a stop, clean or not, and after a crash in a split."""

from __future__ import annotations

from klog.logformat.snapshot import encode_snapshot
from tests.conformance.case import Case, NotApplicable
from tests.conformance.scenario import T_ABORTED, T_SEGMENTS
from tests.conformance.steps import (
    BOUNDS,
    CLEAN,
    EVERY,
    LOAD,
    LOAD_CLEAN,
    REBUILT,
    REBUILT_EXPECTED,
    case,
    n,
    segments,
)
from tests.encode import GZIP, Record
from tests.encode_legacy import plain, wrapper

TRANSACTIONS = (
    "19 testFullTransactionIndexRecovery / testRecoverOnlyLastSegment / "
    "testRecoverLastSegmentWithNoSnapshots"
)
REBUILD = "19 testIndexRebuild / testCorruptIndexRebuild"

CASES: list[Case] = [
    # The old message format knows no producers, so it has no case here.
    case(
        "19 testProducerSnapshotsRecoveryAfterUncleanShutdown (V1 and current)",
        (
            *segments(1, 1, 1, 1, 1, 1),
            LOAD,
            ("snapshots",),
            ("remove", n(1, "snapshot")),
            ("load", {"recovery_point": 2}),
            ("snapshots",),
        ),
        [[1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6]],
    ),
    case(
        "19 testSkipLoadingIfEmptyProducerStateBeforeTruncation",
        (*segments(5, 5), LOAD, ("truncate", 10), ("snapshots",), ("map end",), ("producers",)),
        [[5, 10], 10, {}],
    ),
    case(
        "19 testRecoverAfterNonMonotonicCoordinatorEpochWrite",
        (
            ("write", 0, ("txn", 1, 1), ("commit", 1, {"coordinator": 5})),
            ("write", 2, ("txn", 1, 1), ("commit", 1, {"coordinator": 3})),
            LOAD,
            ("coordinators",),
            BOUNDS,
        ),
        [{1: 3}, (0, 4)],
    ),
    case(
        "19 testSkipTruncateAndReloadIfOld/NewMessageFormat(AndNo)CleanShutdown",
        (
            ("write", 0, ("idem", 1, 2)),
            ("write", 2, ("idem", 1, 1)),
            LOAD,
            ("producers",),
            ("remove", ".snapshot"),
            LOAD_CLEAN,
            ("producers",),
            ("snapshots",),
            ("map end",),
        ),
        [{1: (2, 2, -1)}, {}, [2, 3], 3],
    ),
    case(
        "19 testLoadProducersAfterDeleteRecordsMidSegment",
        (
            ("write", 0, ("idem", 1, 1), ("idem", 2, 1)),
            LOAD,
            ("load", {"log_start": 1, **CLEAN}),
            ("producers",),
            BOUNDS,
        ),
        [{1: (0, 0, -1), 2: (0, 1, -1)}, (1, 2)],
    ),
    case(
        "19 testLoadProducersAfterDeleteRecordsOnSegment",
        (
            ("write", 0, ("idem", 1, 1)),
            ("write", 1, ("idem", 2, 1)),
            LOAD,
            ("producers",),
            ("remove", n(0, "log")),
            ("load", {"log_start": 1}),
            ("producers",),
        ),
        [{1: (0, 0, -1), 2: (0, 1, -1)}, {2: (0, 1, -1)}],
    ),
    case(
        "19 testLoadingLogKeepsLargestStrayProducerStateSnapshot",
        (
            *segments(1, 1, 2),
            LOAD,
            ("put", n(3, "snapshot"), encode_snapshot(())),
            LOAD_CLEAN,
            ("snapshots",),
        ),
        [[1, 2, 4]],
    ),
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
        "19 testReopenThenTruncate",
        (*segments(5, 5), LOAD, LOAD_CLEAN, ("truncate", 3), ("bases",), BOUNDS, ("offsets",)),
        [[0], (0, 3), [0, 1, 2]],
    ),
    case(
        "19 testOpenDeletesObsoleteFiles",
        (
            *segments(1),
            ("put", n(7, "log.deleted"), b"x"),
            ("put", n(7, "index.deleted"), b""),
            LOAD,
            ("bases",),
            BOUNDS,
        ),
        [[0], (0, 1)],
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
        "19 testCleanShutdownFile",
        (
            *segments(4),
            LOAD,
            ("put", n(0, "index"), b"as it is"),
            LOAD_CLEAN,
            ("file", n(0, "index")),
            LOAD,
            ("file", n(0, "index")),
        ),
        [b"as it is", b""],
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
    case(
        "19 testLogEndLessThanStartAfterReopen",
        (
            *segments(1, 1, 1, 1, 1),
            LOAD,
            ("spoil", 1, 0),
            ("load", {"log_start": 4}),
            ("bases",),
            BOUNDS,
            ("snapshots",),
        ),
        [[4], (4, 4), []],
    ),
    case(
        "19 testRecoverWithEmptyActiveSegment",
        (
            *segments(1),
            LOAD,
            ("put", n(1, "log"), b""),
            LOAD_CLEAN,
            ("bases",),
            ("file", n(1, "index")),
            ("file", n(1, "timeindex")),
        ),
        [[0, 1], b"", b""],
    ),
    # klog has no tiered storage, where the log would begin at the checkpoint.
    case(
        "19 testLogStartOffsetWhenRemoteStorageIsEnabled",
        (("write", 5, ("plain", 1)), LOAD, BOUNDS),
        [(5, 6)],
    ),
]

OLD_FORMAT = (
    "klog writes batches of format v2 alone, and no topic of its is set back to an older one."
)
NOT_APPLICABLE = [
    NotApplicable("19 testLeaderEpochCacheClearedAfterStaticMessageFormatDowngrade", OLD_FORMAT),
    NotApplicable(
        "19 testCorruptedLogRecoveryDoesNotDeleteProducerStateSnapshotsPostRecovery",
        "It is about a running broker's delayed deletions; a directory loaded as a value has none.",
    ),
]
