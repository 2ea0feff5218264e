"""Section 19, LogLoaderTest: loading after a stop, clean or not, and after a crash in a split."""

from __future__ import annotations

from klog.logformat.producers.producer_snapshot import encode_snapshot
from tests.conformance.case import Case, NotApplicable
from tests.conformance.steps import BOUNDS, CLEAN, LOAD, LOAD_CLEAN, case, n, segments

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
        "19 testCleanShutdownFile",
        (
            *segments(4),
            LOAD,
            ("put", n(0, "index"), b"unchanged"),
            LOAD_CLEAN,
            ("file", n(0, "index")),
            LOAD,
            ("file", n(0, "index")),
        ),
        [b"unchanged", b""],
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
