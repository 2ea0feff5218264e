"""LogCleaner and LogCleanerManager: what is cleaned, in which groups, and how far (21 and 22).

Where klog has it otherwise: there is no active segment, all below the last stable offset may be
cleaned; and what a commit says to be clean is in the topic's log, not in a checkpoint file.
"""

from __future__ import annotations

from tests.conformance import cleaner_runs as cleaner
from tests.conformance.case import Case, NotApplicable

_SEGMENTS = [(n, 100, 0) for n in range(0, 60, 10)]
_HOUR_MS = 3_600_000
_AGED = [(0, 100, 0), (10, 100, 5), (20, 100, _HOUR_MS), (30, 100, _HOUR_MS)]
_GROUPING = "21 testSegmentGrouping / …WithSparseOffsets / …GroupingFollowingLoadOfZeroIndex"
_INT_MAX = (1 << 31) - 1
_ODDS = "21 testLogToClean / …WithUncleanableSection"

CASES = [
    Case(_ODDS, cleaner.shares, (_SEGMENTS, 60, 60), (600, 0, 0.0), "all clean"),
    Case(_ODDS, cleaner.shares, (_SEGMENTS, 40, 20), (200, 200, 0.5), "uncleanable"),
    Case(_GROUPING, cleaner.groups, ([(n, n + 1, 10) for n in range(10)], 1000), [(0, 10)], "one"),
    Case(
        _GROUPING,
        cleaner.groups,
        ([(n, n + 1, 10) for n in range(3)], 1),
        [(0, 1), (1, 2), (2, 3)],
        "each",
    ),
    Case(
        _GROUPING,
        cleaner.groups,
        ([(n, n + 1, 10) for n in range(7)], 30),
        [(0, 3), (3, 6), (6, 7)],
        "size",
    ),
    Case(
        _GROUPING,
        cleaner.groups,
        ([(0, 10, 10), (10, _INT_MAX + 1, 10)], 1000),
        [(0, 2)],
        "span",
    ),
    Case(
        _GROUPING,
        cleaner.groups,
        ([(0, 10, 10), (10, _INT_MAX + 2, 10), (_INT_MAX + 2, _INT_MAX + 3, 10)], 1000),
        [(0, 1), (1, 3)],
        "beyond",
    ),
    Case(
        "22 testDirtyOffsetResetIfLargerThanEndOffset",
        cleaner.bounds,
        (_SEGMENTS, 0, 60, 200),
        (0, 60),
    ),
    Case(
        "22 testDirtyOffsetResetIfSmallerThanStartOffset",
        cleaner.bounds,
        (_SEGMENTS, 10, 60, 0),
        (10, 60),
    ),
    # klog has no active segment: the dirty range follows the clean one, or is empty.
    Case(
        "22 testLogStartOffsetLargerThanActiveSegmentBaseOffset / "
        "testDirtyOffsetLargerThanActiveSegmentBaseOffset",
        cleaner.bounds,
        (_SEGMENTS[:1], 10, 10, 5),
        (10, 10),
    ),
    *(
        Case("22 testLogsWithSegmentsToDelete…", cleaner.policies, (policy,), expect, policy)
        for policy, expect in (
            ("compact", (True, False)),
            ("compact,delete", (True, True)),
            ("delete", (False, True)),
        )
    ),
    Case("22 testCleanableOffsetsForNone", cleaner.bounds, (_SEGMENTS, 0, 50, 0), (0, 50)),
    # Kafka's bound is the base of the active segment; klog cleans the last one as well.
    Case("22 testCleanableOffsetsActiveSegment", cleaner.bounds, (_SEGMENTS, 0, 60, 0), (0, 60)),
    Case(
        "22 testCleanableOffsetsForTime / ShortTime",
        cleaner.bounds,
        (_AGED, 0, 40, 0, _HOUR_MS, _HOUR_MS + 5),
        (0, 20),
        "before",
    ),
    Case(
        "22 testCleanableOffsetsForTime / ShortTime",
        cleaner.bounds,
        (_AGED, 0, 40, 0, _HOUR_MS, 2 * _HOUR_MS),
        (0, 40),
        "after",
    ),
    *(
        Case("22 testCleanableOffsetsNeedsCheckpointReset", cleaner.bounds, args, expect, label)
        for label, args, expect in (
            ("within", (_SEGMENTS[:2], 10, 20, 15), (15, 20)),
            ("below", (_SEGMENTS, 20, 60, 15), (20, 60)),
            ("beyond", (_SEGMENTS[:2], 10, 20, 25), (10, 20)),
        )
    ),
    # An open transaction is no part of what klog has of a log; once it is ended its marker is too.
    Case(
        "22 testUndecidedTransactionalDataNotCleanable",
        cleaner.stable_end,
        (("transactional", 1, 1, 2, 3),),
        0,
        "open",
    ),
    Case(
        "22 testUndecidedTransactionalDataNotCleanable",
        cleaner.stable_end,
        (("transactional", 1, 1, 2, 3), ("abort", 1)),
        4,
        "aborted",
    ),
]

_CHECKPOINT = (
    "How cleaner-offset-checkpoint is kept and moved between directories; klog commits what is "
    "clean with what was cleaned, and reads that file only to show it."
)

NOT_APPLICABLE = [
    NotApplicable(
        "22 testGrabFilthiestCompactedLogReturnsLogWithDirtiestRatio "
        "(+ignoring uncleanable / in-progress)",
        "Which log a thread takes next and which others work on; a run of klog's cleans all that "
        "are due, and of two runs at once the first to commit wins.",
    ),
    NotApplicable(
        "22 testUpdateCheckpointsShouldAddOffsetToPartition / "
        "testUpdateCheckpointsShouldRemovePartitionData / "
        "testHandleLogDirFailureShouldRemoveDirAndData / "
        "testMaybeTruncateCheckpointShouldTruncateData / "
        "testAlterCheckpointDirShouldRemoveDataInSrcDirAndAddInNewDir",
        _CHECKPOINT,
    ),
    NotApplicable(
        "22 testDoneCleaning / testDoneDeleting",
        "The state machine of a broker's cleaner threads; runs of klog's know of each other by "
        "commits.",
    ),
    NotApplicable("22 testCheckpointUpdatedForInvalidOffset…", _CHECKPOINT),
]
