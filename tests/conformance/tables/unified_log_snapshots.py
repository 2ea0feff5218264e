"""Section 20, UnifiedLogTest: producers' snapshots, and producers rebuilt from the log."""

from __future__ import annotations

from klog.logformat.producers.producer_snapshot import encode_snapshot
from tests.conformance.case import NotApplicable
from tests.conformance.steps import BOUNDS, CLEAN, LOAD, LOAD_CLEAN, n, segments
from tests.conformance.tables.unified_log import ONE, TWO_PRODUCERS, case

EMPTY = encode_snapshot(())


COMPACTED = "testRebuildProducerIdMapWithCompactedData / UpdateProducerIdMapWithCompactedData"
UPGRADE = "testInitializationOfProducerSnapshotsUpgradePath"

CASES = [
    case(
        UPGRADE,
        (*segments(1, 1, 1, 1), LOAD, ("remove", ".snapshot"), LOAD_CLEAN, ("snapshots",)),
        [[2, 3, 4]],
        "clean",
    ),
    case(
        UPGRADE,
        (*segments(1, 1, 1, 1), LOAD, ("remove", ".snapshot"), LOAD, ("snapshots",)),
        [[1, 2, 3, 4]],
        "unclean",
    ),
    case(
        COMPACTED,
        (("write", 0, ("at", 23), ("idem", 1, 4, {"kept": [0, 2]})), LOAD, ("producers",)),
        [{1: (3, 26, -1)}],
    ),
    case(
        "testRebuildProducerStateWithEmptyCompactedBatch",
        (("write", 0, ("idem", 1, 2, {"kept": []})), LOAD, ("producers",), BOUNDS),
        [{1: (1, 1, -1)}, (0, 2)],
    ),
    case(
        "testProducerIdMapTruncateTo",
        (
            ("write", 0, ONE),
            ("write", 1, ONE),
            LOAD,
            ("truncate", 2),
            ("snapshots",),
            ("truncate", 1),
            ("snapshots",),
            ("producers",),
            ("truncate", 0),
            ("snapshots",),
            ("producers",),
        ),
        [[1, 2], [1], {1: (0, 0, -1)}, [], {}],
    ),
    case(
        "testProducerIdMapTruncateToWithNoSnapshots",
        (("write", 0, ONE, ONE), LOAD, ("producers",), ("truncate", 1), ("producers",)),
        [{1: (1, 1, -1)}, {1: (0, 0, -1)}],
    ),
    case(
        "testLogStartOffsetMovementDeletesSnapshots",
        (
            *segments(1, 1, 1),
            LOAD,
            ("remove", n(0, "log")),
            ("load", {"log_start": 1, **CLEAN}),
            ("snapshots",),
        ),
        [[2, 3]],
    ),
    # A finished cleaning of three segments into one; the last segment was not cleaned.
    case(
        "testCompactionDeletesProducerStateSnapshots",
        (
            *segments(1, 1, 1, 1),
            LOAD,
            ("snapshots",),
            ("remove", n(0, "log")),
            ("write", 0, ("at", 0), *[("plain", 1)] * 3),
            ("rename", n(0, "log"), n(0, "log.swap")),
            LOAD,
            ("bases",),
            ("snapshots",),
        ),
        [[1, 2, 3, 4], [0, 3], [3, 4]],
    ),
    case(
        "testLoadingLogDeletesProducerStateSnapshotsPastLogEndOffset",
        (*segments(1), LOAD, ("put", n(42, "snapshot"), EMPTY), LOAD_CLEAN, ("snapshots",)),
        [[1]],
    ),
    case(
        "testProducerIdMapTruncateFullyAndStartAt",
        (*TWO_PRODUCERS, ("start_at", 29), ("snapshots",), ("map end",), BOUNDS),
        [[], 29, (29, 29)],
    ),
    case(
        "testProducerIdExpirationOnSegmentDeletion",
        (
            *TWO_PRODUCERS,
            ("remove", n(0, "log")),
            ("load", {"log_start": 1, **CLEAN}),
            ("producers",),
        ),
        [{1: (0, 0, -1), 2: (0, 1, -1)}],
    ),
    case(
        "testDeleteSnapshotsOnIncrementLogStartOffset",
        (
            *TWO_PRODUCERS,
            ("remove", n(0, "log")),
            ("load", {"log_start": 1, **CLEAN}),
            ("snapshots",),
            ("producers",),
        ),
        [[2], {1: (0, 0, -1), 2: (0, 1, -1)}],
    ),
    case(
        "testTakeSnapshotOnRollAndDeleteSnapshotOnRecoveryPointCheckpoint",
        (*segments(1, 1, 1), ("put", n(3, "log"), b""), LOAD, ("snapshots",)),
        [[1, 2, 3]],
    ),
    case(
        "testProducerSnapshotAfterSegmentRollOnAppend",
        (*TWO_PRODUCERS, ("snapshots",), ("truncate", 1), ("producers",)),
        [[1, 2], {1: (0, 0, -1)}],
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
