"""Section 20, UnifiedLogTest: reading by offset and by time; and what klog has nothing of."""

from __future__ import annotations

from tests.conformance.case import Case, NotApplicable
from tests.conformance.checkpoint_runs import partition_metadata
from tests.conformance.log_runs import script
from tests.conformance.state_runs import Step
from tests.conformance.steps import BOUNDS, LOAD, segments
from tests.conformance.tables.unified_log import case

GZIP = {"fields": {"attributes": 1}}
OUT = "OffsetOutOfRangeError"
SEQUENTIAL = "testAppendAndReadWithSequentialOffsets / NonSequentialOffsets"
TEN: tuple[Step, ...] = segments(*[10] * 10)
METADATA = "20 testLogFlushesPartitionMetadataOnAppend/OnClose, testLogRecoversTopicId"

CASES = [
    case(
        "testLogSegmentsCallCorrect",
        (
            *segments(10, 10, 10),
            LOAD,
            ("segments read", 0, 21),
            ("segments read", 1, 5),
            ("segments read", 13, 21),
            ("segments read", 13, 17),
            ("segments read", 10, 10),
            ("segments read", 10, 9),
        ),
        [[0, 10, 20], [0], [10, 20], [10], [], OUT],
    ),
    case(
        "testMultipleProducerIdsPerMemoryRecord",
        (
            ("write", 0, *[("idem", pid, 1) for pid in (1, 2, 3, 4)]),
            LOAD,
            ("read", 0),
            ("producers",),
        ),
        [[0, 1, 2, 3], {pid: (0, pid - 1, -1) for pid in (1, 2, 3, 4)}],
    ),
    case(
        SEQUENTIAL,
        (*segments(10, 10), LOAD, *[("read", offset, offset + 1) for offset in range(20)]),
        [[offset] for offset in range(20)],
        "sequential",
    ),
    case(
        SEQUENTIAL,
        (
            ("write", 0, *[step for at in range(0, 20, 4) for step in (("at", at), ("plain", 1))]),
            LOAD,
            ("read", 0, 4),
            ("read", 1, 5),
            ("read", 5, 13),
        ),
        [[0], [4], [8, 12]],
        "with gaps",
    ),
    case(
        "testReadAtLogGap",
        (("write", 0, ("plain", 1)), ("write", 5, ("plain", 2)), LOAD, ("read", 1, 6), ("read", 1)),
        [[5], [5, 6]],
    ),
    case(
        "testReadOutOfRange",
        (
            ("write", 1024, ("plain", 1)),
            LOAD,
            BOUNDS,
            ("read", 1024),
            ("read", 1025),
            ("read", 0),
            ("read", 1026),
        ),
        [(1024, 1025), [1024], [], OUT, OUT],
    ),
    case(
        "testLogRolls",
        (*TEN, LOAD, BOUNDS, ("read", 0), ("read", 37, 38)),
        [(0, 100), list(range(100)), [37]],
    ),
    # A fetch returns whole batches; klog drops the records before the offset asked for.
    case(
        "testCompressedMessages",
        (
            ("write", 0, ("plain", 2, GZIP), ("plain", 2, GZIP)),
            LOAD,
            ("read", 0, 2),
            ("read", 1, 2),
            ("read", 2, 4),
            ("read", 3, 4),
        ),
        [[0, 1], [1], [2, 3], [3]],
    ),
    case(
        "testBuildTimeIndexWhenNotAssigningOffsets",
        (*segments(100), ("load", {"interval_bytes": 1}), ("times",)),
        [[(1000 + offset, offset) for offset in range(1, 100)]],
    ),
    case(
        "testFetchOffsetByTimestampIncludesLeaderEpoch",
        (
            ("write", 0, ("epoch", 0), ("plain", 1), ("epoch", 1), ("plain", 1)),
            LOAD,
            ("at time", 1000),
            ("at time", 1001),
            ("at time", 1002),
            BOUNDS,
            ("assign", 2, 2),
            ("epochs",),
        ),
        [(0, 0), (1, 1), None, (0, 2), [(0, 0), (1, 1), (2, 2)]],
    ),
    # The last entry of a closed segment's time index is its largest timestamp.
    *[
        Case(
            f"20 {name}",
            script,
            (
                ("write", 0, *[("plain", 1, {"ts": [at]}) for at in times]),
                LOAD,
                ("times",),
                ("at time", largest[0]),
            ),
            [[largest], (largest[1], 0)],
        )
        for name, times, largest in (
            (
                "testFetchOffsetByTimestampWithMaxTimestampIncludesTimestamp",
                (5000, 5001, 5000),
                (5001, 1),
            ),
            (
                "LogOffsetTest testFetchOffsetByTimestampForMaxTimestampWithUnorderedTimestamps",
                (0, 1, 2, 3, 4, 6, 5),
                (6, 5),
            ),
        )
    ],
    Case(
        METADATA,
        partition_metadata,
        (b"version: 0\ntopic_id: ASNFZ4mrze_-3LqYdlQyEA",),
        "ASNFZ4mrze_-3LqYdlQyEA",
    ),
]

RETENTION = "Retention is not built yet: nothing in klog decides which segments are to be deleted."
APPENDING = "No request to append reaches klog that it could refuse for its size or its keys."
VERIFICATION = (
    "No coordinator verifies a transaction before klog appends: a commit decides at once."
)

EXCUSED = {
    RETENTION: (
        "testRetentionDeletesProducerStateSnapshots",
        "testRetentionIdempotency",
        "testThatGarbageCollectingSegmentsDoesntChangeOffset",
        "testDeleteOldSegments",
        "testLogDeletionAfterDeleteRecords",
        "shouldDeleteSizeBasedSegments",
        "shouldNotDeleteSizeBased…/shouldNotDeleteTimeBased…",
        "shouldDeleteTimeBasedSegmentsReadyToBeDeleted",
        "shouldNotDeleteSegmentsWhenPolicyDoesNotIncludeDelete",
        "shouldDeleteSegmentsReadyToBeDeletedWhenCleanupPolicyIsCompactAndDelete",
        "shouldDeleteStartOffsetBreachedSegmentsWhenPolicyDoesNotIncludeDelete",
        "testCannotDeleteSegmentsAtOrAboveHighWatermark",
        "testDeletableSegmentsFilter / Iteration",
    ),
    APPENDING: (
        "testMessageSizeCheck / …AppendAsFollower",
        "testCompactedTopicConstraints",
    ),
    VERIFICATION: (
        "testTransactionIsOngoingAndVerificationGuard",
        "testEmptyTransactionStillClearsVerificationGuard / "
        "testDisabledVerificationClearsVerificationGuard",
        "testEnablingVerificationWhenRequestIsAtLogLayer",
    ),
    "A fetch's limits on bytes are a broker's protocol; klog reads whole slices.": (
        "testReadWithMinMessage / TooSmallMaxLength",
    ),
    "klog takes a topic's id from its file and gives it none that could differ.": (
        "testLogFailsWhenInconsistentTopicIdSet",
    ),
    "Deleting records is not built yet: nothing in klog raises a log's start.": (
        "testCannotIncrementLogStartOffsetPastHighWatermark",
    ),
    "It is about a disk that fails while a running broker flushes; these are values in memory.": (
        "testRecoveryPointNotIncrementedOnProducerStateSnapshotFlushFailure",
    ),
}
NOT_APPLICABLE = [
    NotApplicable(f"20 {name}", why) for why, names in EXCUSED.items() for name in names
]
