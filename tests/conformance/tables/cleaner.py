"""LogCleaner and LogCleanerManager: sections 21 and 22. klog does not compact yet."""

from __future__ import annotations

import struct

from klog.errors import CorruptRecordError
from tests.conformance import protocol_runs as runs
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.legacy_runs import offsets
from tests.encode import GZIP, Record, plain
from tests.encode_legacy import wrapper

_TWO = plain(0) + plain(1)
_CORRUPT = (
    "21 testMessageLargerThanMaxMessageSizeWithCorruptHeader / "
    "testCorruptMessageSizeLargerThanBytesAvailable"
)

CASES = [
    # The cleaner's half, to repair such wrappers, is compaction, which klog does not do yet.
    Case(
        "21 testCleanCorruptMessageSet / testClientHandlingOfCorruptMessageSet",
        offsets,
        (wrapper([Record(n, -1, b"%d" % n, b"v") for n in (7, 8, 9)], 1, GZIP, inner_magic=0),),
        [7, 8, 9],
    ),
    Case(
        _CORRUPT,
        runs.scanned,
        (_TWO[:16] + b"\xff" + _TWO[17:],),
        Refused(CorruptRecordError, "magic 255"),
        "header",
    ),
    # A batch that reaches past what is there ends the scan: in the active segment it is a torn
    # append, in any other the reader that knows the file's end refuses it.
    Case(
        _CORRUPT,
        runs.scanned,
        (_TWO[:8] + struct.pack(">i", 1024) + _TWO[12:],),
        [],
        "size",
    ),
]

_KEPT = (
    "Which records and tombstones a cleaning keeps; klog does not compact, it reads what a "
    "broker's cleaner left."
)
_MARKERS = (
    "Which markers, emptied batches and index entries a cleaning keeps of transactions; klog does "
    "not compact, it reads what a broker's cleaner left."
)
_SEQUENCES = (
    "What a cleaning keeps so that a broker still knows a producer's last sequence; klog does not "
    "compact and answers no producer."
)
_WORK = (
    "How the cleaner goes about its work: its offset map, its passes, its buffers and figures; "
    "klog does not compact."
)
_FILES = (
    "How cleaned segments replace their originals on disk; klog does not compact and renames "
    "nothing."
)
_CHOICE = (
    "Which log and which part of it the cleaner's threads take next; klog has no cleaner to "
    "schedule."
)
_CHECKPOINT = (
    "How the cleaner keeps cleaner-offset-checkpoint; klog does not compact, and reads that file "
    "only to show it."
)

_REASONS = {
    "21": {
        _KEPT: (
            "testCleanSegments",
            "testCleaningWithDeletes",
            "testCleaningWithUnkeyedMessages",
            "testCleanTombstone",
            "testDeletedBatchesWithNoMessagesRead",
            "testCleaningBeyondMissingOffsets",
            "testCleaningWithUncleanableSection",
        ),
        _MARKERS: (
            "testMultiPassSegmentCleaningWithAbortedTransactions",
            "testBasicTransactionAwareCleaning",
            "testCleanWithTransactionsSpanningSegments",
            "testCommitMarkerRemoval",
            "testCommitMarkerRetentionWithEmptyBatch",
            "testCleanEmptyControlBatch",
            "testCommittedTransactionSpanningSegments",
            "testAbortedTransactionSpanningSegments",
            "testAbortMarkerRemoval",
            "testAbortMarkerRetentionWithEmptyBatch",
            "testCleaningWithKeysConflictingWithTxnMarkerKeys",
        ),
        _SEQUENCES: (
            "testDuplicateCheckAfterCleaning",
            "testEmptyBatchRemovalWithSequenceReuse",
            "testLogCleanerRetainsProducerLastSequence",
            "testLogCleanerRetainsLastSequenceEvenIfTransactionAborted",
            "testCleanSegmentsRetainingLastEmptyBatch",
        ),
        _WORK: (
            "testLargeMessage / testMessageLargerThanMaxMessageSize",
            "testLogCleanerStats",
            "testPartialSegmentClean",
            "testLogToClean / \u2026WithUncleanableSection",
            "testBuildOffsetMap / \u2026FakeLarge / testBuildPartialOffsetMap",
        ),
        _FILES: (
            "testSizeTrimmedForPreallocatedAndCompactedTopic",
            "testSegmentGrouping / \u2026WithSparseOffsets / "
            "\u2026GroupingFollowingLoadOfZeroIndex",
            "testSegmentWithOffsetOverflow",
            "testRecoveryAfterCrash",
        ),
    },
    "22": {
        _CHOICE: (
            "testGrabFilthiestCompactedLogReturnsLogWithDirtiestRatio "
            "(+ignoring uncleanable / in-progress)",
            "testLogStartOffsetLargerThanActiveSegmentBaseOffset / "
            "testDirtyOffsetLargerThanActiveSegmentBaseOffset",
            "testLogsWithSegmentsToDelete\u2026",
            "testCleanableOffsetsForNone",
            "testCleanableOffsetsActiveSegment",
            "testCleanableOffsetsForTime / ShortTime",
            "testUndecidedTransactionalDataNotCleanable",
            "testDoneCleaning / testDoneDeleting",
        ),
        _CHECKPOINT: (
            "testDirtyOffsetResetIfLargerThanEndOffset",
            "testDirtyOffsetResetIfSmallerThanStartOffset",
            "testUpdateCheckpointsShouldAddOffsetToPartition / "
            "testUpdateCheckpointsShouldRemovePartitionData / "
            "testHandleLogDirFailureShouldRemoveDirAndData / "
            "testMaybeTruncateCheckpointShouldTruncateData / "
            "testAlterCheckpointDirShouldRemoveDataInSrcDirAndAddInNewDir",
            "testCleanableOffsetsNeedsCheckpointReset",
            "testCheckpointUpdatedForInvalidOffset\u2026",
        ),
    },
}

NOT_APPLICABLE = [
    NotApplicable(f"{section} {name}", why)
    for section, reasons in _REASONS.items()
    for why, names in reasons.items()
    for name in names
]
