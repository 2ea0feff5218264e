"""Section 15, ProducerStateManagerTest: producer 1, epoch 0 unless stated."""

from __future__ import annotations

from tests.conformance.case import Case, NotApplicable
from tests.conformance.state_runs import producers

MAX = 2147483647
TXN = {"txn": True}
GAP, FENCED, CORRUPT = "OutOfOrderSequenceError", "ProducerFencedError", "CorruptRecordError"
NO_VERIFICATION = (
    "A coordinator's verification of a transaction before its first append is a broker's talk with "
    "another; klog has neither, a commit decides all at once."
)


def first(sequence: int, offset: int, epoch: int = 0, **more: object) -> tuple[object, ...]:
    """Append one record of producer 1 as a client does."""
    return ("client", 1, epoch, sequence, offset, more)


def case(name: str, *rows: tuple[tuple[object, ...], object], label: str = "") -> Case:
    """Make a case of steps, each with its answer."""
    return Case(
        f"15 {name}",
        producers,
        tuple(step for step, _ in rows),
        [answer for _, answer in rows],
        label,
    )


LATE = "testHasLateTransaction (+AfterReload, +PartialTruncation, +FullTruncation)"

CASES = [
    case(
        "testBasicIdMapping",
        (first(0, 0), "ok"),
        (first(1, 1), "ok"),
        (first(1, 1), GAP),
        (first(5, 2), GAP),
        (first(0, 3, epoch=1), "ok"),
        (first(0, 4, epoch=0), FENCED),
    ),
    case(
        "testAppendTxnMarkerWithNoProducerState",
        (("commit", 1, 2, 27), "ok"),
        (("ask", "epoch", 1), 2),
        (("ask", "last sequence", 1), -1),
        (first(0, 28, epoch=0), FENCED),
        (first(17, 28, epoch=2), GAP),
        (first(0, 28, epoch=2), "ok"),
    ),
    case(
        "testProducerSequenceWrapAround",
        (("replica", 1, 15, MAX, 735), "ok"),
        (first(0, 736, epoch=15), "ok"),
        (("ask", "sequences", 1), [(MAX, MAX), (0, 0)]),
    ),
    case(
        "testProducerSequenceWithWrapAroundBatchRecord",
        (("replica", 1, 15, MAX - 10, 2000, {"last": 2020}), "ok"),
        (("ask", "sequences", 1), [(MAX - 10, 9)]),
        (("ask", "offsets", 1), [(2000, 2020)]),
    ),
    case(
        "testProducerSequenceInvalidWrapAround",
        (("replica", 1, 15, MAX, 735), "ok"),
        (first(1, 736, epoch=15), GAP),
    ),
    case(
        "testNoValidationOnFirstEntryWhenLoadingLog",
        (("replica", 1, 5, 16, 735), "ok"),
        (("ask", "sequences", 1), [(16, 16)]),
        (("ask", "offsets", 1), [(735, 735)]),
    ),
    case(
        "testControlRecordBumpsProducerEpoch",
        (first(0, 0), "ok"),
        (("abort", 1, 1, 1), "ok"),
        (("ask", "epoch", 1), 1),
        (("ask", "sequences", 1), []),
        (("ask", "transaction", 1), -1),
        (first(0, 2, epoch=1), "ok"),
    ),
    # Where the offset lies in its segment is for the segment's index to say.
    case(
        "testTxnFirstOffsetMetadataCached",
        (("replica", 1, 0, 0, 992342, TXN), "ok"),
        (("ask", "unstable"), 992342),
    ),
    case(
        LATE,
        (first(0, 100, ts=1, txn=True), "ok"),
        (("late", 600001, 300000), False),
        (("late", 600002, 300000), True),
        (("commit", 1, 0, 101), (100, 101, False, 102)),
        (("late", 600002, 300000), False),
        label="ends with the marker",
    ),
    case(
        LATE,
        (("client", 1, 0, 0, 100, {"ts": 1, "txn": True}), "ok"),
        (("save",), "ok"),
        (("client", 2, 0, 0, 101, {"ts": 500000, "txn": True}), "ok"),
        (("load",), "ok"),
        (("late", 600002, 300000), True),
        (("ask", "known"), [1]),
        label="after a reload and a truncation",
    ),
    case(
        LATE,
        (("save",), "ok"),
        (first(0, 100, ts=1, txn=True), "ok"),
        (("load",), "ok"),
        (("late", 600002, 300000), False),
        label="after a full truncation",
    ),
    case(
        "testPrepareUpdateDoesNotMutate",
        (("on_a_copy", first(0, 15, ts=20)), "ok"),
        (("ask", "known"), []),
        (first(0, 15, ts=20), "ok"),
        (("on_a_copy", first(1, 20)), "ok"),
        (first(5, 20), GAP),
        (("ask", "sequences", 1), [(0, 0)]),
        (("ask", "offsets", 1), [(15, 15)]),
    ),
    case(
        "updateProducerTransactionState",
        (first(0, 9, epoch=5), "ok"),
        (first(1, 16, epoch=5, last=20, txn=True), "ok"),
        (("ask", "transaction", 1), 16),
        (("ask", "sequences", 1), [(0, 0), (1, 5)]),
        (first(6, 26, epoch=5, last=30, txn=True), "ok"),
        (("ask", "transaction", 1), 16),
        (("commit", 1, 5, 40), (16, 40, False, 41)),
        (("ask", "transaction", 1), -1),
        (("ask", "sequences", 1), [(0, 0), (1, 5), (6, 10)]),
        (("ask", "offsets", 1), [(9, 9), (16, 20), (26, 30)]),
    ),
    case(
        "testOutOfSequenceAfterControlRecordEpochBump",
        (first(0, 0, txn=True), "ok"),
        (first(1, 1, txn=True), "ok"),
        (("abort", 1, 1, 2), (0, 2, True, 3)),
        (first(2, 3, epoch=1, txn=True), GAP),
        (first(2, 3, epoch=2, txn=True), GAP),
        (first(0, 3, epoch=1, txn=True), "ok"),
    ),
    # For klog it is bytes that contradict each other: `CorruptRecordError`, nothing changed.
    case(
        "testNonTransactionalAppendWithOngoingTransaction",
        (first(0, 0, txn=True), "ok"),
        (first(1, 1), CORRUPT),
        (("ask", "sequences", 1), [(0, 0)]),
    ),
    case(
        "testProducerStateAfterFencingAbortMarker",
        (("abort", 1, 1, 0, {"ts": 5000}), "ok"),
        (("ask", "offsets", 1), []),
        (("expire", 5001, 86400000), [1]),
        (("ask", "timestamp", 1), 5000),
    ),
    case(
        "testAcceptAppendWithoutProducerStateOnReplica / WithSequenceGapsOnReplica",
        (first(0, 0), "ok"),
        (("replica", 2, 0, 1, 1), "ok"),
        (("ask", "sequences", 2), [(1, 1)]),
        (first(3, 2), GAP),
        (("replica", 1, 0, 3, 2), "ok"),
        (("ask", "sequences", 1), [(0, 0), (3, 3)]),
    ),
    case(
        "testFirstUnstableOffsetAfterTruncation",
        (first(0, 99, txn=True), "ok"),
        (("save",), "ok"),
        (("commit", 1, 0, 105), (99, 105, False, 106)),
        (("watermark", 106), None),
        (("load",), "ok"),
        (("ask", "unstable"), 99),
    ),
    case(
        "testPidExpirationTimeout",
        (first(5, 0, epoch=5, ts=100), "ok"),
        (("expire", 60099, 60000), [1]),
        (("expire", 60100, 60000), []),
        (first(7, 1, epoch=5, ts=60100), "ok"),
        (("ask", "sequences", 1), [(7, 7)]),
    ),
    case(
        "testFirstUnstableOffset",
        (("ask", "undecided"), None),
        (first(0, 99, txn=True), "ok"),
        (("ask", "undecided"), 99),
        (("ask", "unstable"), 99),
        (("client", 2, 0, 0, 105, TXN), "ok"),
        (("ask", "undecided"), 99),
        (("commit", 1, 0, 109), (99, 109, False, 105)),
        (("ask", "undecided"), 105),
        (("ask", "unstable"), 99),
        (("watermark", 100), 99),
        (("watermark", 109), 99),
        (("watermark", 110), 105),
        (("abort", 2, 0, 112), (105, 112, True, 113)),
        (("ask", "undecided"), None),
        (("ask", "unstable"), 105),
        (("watermark", 112), 105),
        (("watermark", 113), None),
    ),
    case(
        "testProducersWithOngoingTransactionsDontExpire",
        (first(0, 99, txn=True), "ok"),
        (("expire", 1 << 40, 60000), [1]),
        (("ask", "undecided"), 99),
    ),
    case(
        "testSequenceNotValidatedForGroupMetadataTopic",
        (("coordinator", 1, 0, -1, 99, TXN), "ok"),
        (("coordinator", 1, 0, -1, 100, TXN), "ok"),
        (("ask", "transaction", 1), 99),
    ),
    case(
        "testOldEpochForControlRecord",
        (first(0, 99, epoch=5, txn=True), "ok"),
        (("commit", 1, 3, 100), FENCED),
        (("ask", "transaction", 1), 99),
    ),
    case(
        "testCoordinatorFencing (+AfterReload)",
        (first(0, 99, txn=True), "ok"),
        (("commit", 1, 0, 100, {"coordinator": 1}), (99, 100, False, 101)),
        (("ask", "coordinator", 1), 1),
        (("abort", 1, 0, 101, {"coordinator": 1}), "ok"),
        (("abort", 1, 0, 102, {"coordinator": 2}), "ok"),
        (("ask", "coordinator", 1), 2),
        (("commit", 1, 0, 103, {"coordinator": 1}), FENCED),
        (("save",), "ok"),
        (("load",), "ok"),
        (("abort", 1, 0, 103, {"coordinator": 1}), FENCED),
    ),
    case(
        "testAppendEmptyControlBatch",
        (("emptied", 1, 0, 15), "ok"),
        (("ask", "undecided"), None),
        (("ask", "known"), []),
    ),
    case(
        "testLastStableOffsetCompletedTxn",
        (first(0, 992342, txn=True), "ok"),
        (("client", 2, 0, 0, 992342 + 25, TXN), "ok"),
        (("client", 3, 0, 0, 992342 + 57, TXN), "ok"),
        (("commit", 1, 0, 992500), (992342, 992500, False, 992342 + 25)),
        (("commit", 3, 0, 992550), (992342 + 57, 992550, False, 992342 + 25)),
        (("commit", 2, 0, 992600), (992342 + 25, 992600, False, 992601)),
    ),
    case(
        "testSkipEmptyTransactions",
        (first(0, 16, last=20, txn=True), "ok"),
        (("ask", "undecided"), 16),
        (("commit", 1, 0, 21), (16, 21, False, 22)),
        (("commit", 1, 0, 22), "ok"),
        (("abort", 1, 0, 23), "ok"),
        (first(5, 24, last=27, txn=True), "ok"),
        (("abort", 1, 0, 28), (24, 28, True, 29)),
        (("abort", 1, 0, 29), "ok"),
        (first(9, 30, last=31, txn=True), "ok"),
        (("ask", "undecided"), 30),
    ),
]

NOT_APPLICABLE = [
    NotApplicable(
        "15 testDeleteSnapshotsBefore",
        "A running broker deletes snapshots together with the segments before them; klog deletes "
        "neither, and what it makes of snapshots below a log's start when it loads is a case of "
        "testTruncateAndReloadRemovesOutOfRangeSnapshots.",
    ),
    NotApplicable("15 testEntryForVerification", NO_VERIFICATION),
    NotApplicable("15 testSequenceAndEpochInVerificationEntry", NO_VERIFICATION),
    NotApplicable("15 testThrowOutOfOrderSequenceWithVerificationSequenceCheck", NO_VERIFICATION),
    NotApplicable("15 testVerificationStateEntryExpiration", NO_VERIFICATION),
]
