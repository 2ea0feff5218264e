"""What a consumer is given at read_committed, and the transaction log: parts of section 24."""

from __future__ import annotations

from klog.logformat.internal_topics import internal_records as topics
from klog.logformat.protocol.message_schema import Fields
from tests.conformance import protocol_runs as runs
from tests.conformance.case import Case, NotApplicable, Refused
from tests.support.batch_bytes import (
    ABORT,
    COMMIT,
    CONTROL,
    TRANSACTIONAL,
    Record,
    batch,
    control,
    marker,
    transactional,
)


def _at(offsets: list[int], producer_id: int) -> bytes:
    """Write one transactional batch with records at these offsets."""
    return batch(
        [Record(offset, 1000, b"k", b"v") for offset in offsets],
        attributes=TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )


_SKIPPED = transactional(0, 1, [b"a", b"b"]) + marker(2, 1, ABORT)
_RETURNED = transactional(0, 1, [b"a", b"b"]) + marker(2, 1, COMMIT)
_BOTH = b"".join(
    [
        transactional(0, 1, [b"commit1-1", b"commit1-2"]),
        transactional(2, 2, [b"abort2-1"]),
        marker(3, 1, COMMIT),
        transactional(4, 2, [b"abort2-2"]),
        marker(5, 2, ABORT),
        transactional(6, 1, [b"abort1-1"]),
        marker(7, 1, ABORT),
        transactional(8, 2, [b"commit2-1"]),
        marker(9, 2, COMMIT),
    ]
)
_TWICE = b"".join(
    [
        transactional(0, 1, [b"abort1-1", b"abort1-2"]),
        marker(2, 1, ABORT),
        marker(3, 1, ABORT),
        transactional(4, 1, [b"commit1-1", b"commit1-2"]),
        marker(6, 1, COMMIT),
    ]
)
_WITHOUT_DATA = marker(5, 1, ABORT) + _at([6, 7, 8], 1) + marker(9, 1, COMMIT)
_COMPACTED = b"".join(
    [
        _at([3, 4], 3),
        _at([15, 16, 17, 18], 2),
        _at([22, 23], 1),
        marker(25, 2, ABORT),
        _at([30, 31, 32], 3),
        marker(35, 1, ABORT),
        marker(39, 3, COMMIT),
    ]
)
_LAST_MISSING = batch(
    [Record(offset, 1000, b"k", b"v") for offset in (0, 1, 2)], last_offset_delta=3
)
_EMPTY = batch([], base_offset=37, last_offset_delta=17)
_EMPTY_CONTROL = batch(
    [],
    base_offset=2,
    attributes=TRANSACTIONAL | CONTROL,
    producer_id=1,
    producer_epoch=0,
)


def _committed(
    name: str,
    log: bytes,
    aborted: list[tuple[int, int, int]],
    expect: tuple[list[int], int],
) -> list[Case]:
    """Decide by the markers in the log, and by the aborted transactions of an index."""
    return [
        Case(f"24 {name}", runs.read_committed, (log,), expect, "by markers"),
        Case(f"24 {name}", runs.read_committed_by_index, (log, aborted), expect, "by index"),
    ]


_STATE: Fields = {
    "producerId": 4000,
    "producerEpoch": 1,
    "transactionTimeoutMs": 60000,
    "transactionStatus": 1,
    "transactionPartitions": [{"topic": "t", "partitionIds": [0, 2]}],
    "transactionLastUpdateTimestampMs": 1000,
    "transactionStartTimestampMs": 900,
}
_STATES = range(6)
_KEY = bytes.fromhex("00000003747831")
_FUTURE = bytes.fromhex(
    # v1 with the fields of _STATE, then unknown tags 100 (3 bytes) and 101 (none)
    "00010000000000000fa000010000ea60010202740300000000000000020000000000000003e80000000000000384"
    "02" "6403ffffff" "6500"
)  # fmt: skip


def _state(status: int) -> Fields:
    return {
        **_STATE,
        "transactionStatus": status,
        "transactionPartitions": None
        if status == topics.EMPTY
        else _STATE["transactionPartitions"],
    }


CASES = [
    *_committed("testSkippingAbortedTransactions", _SKIPPED, [(1, 0, 2)], ([], 3)),
    *_committed("testReturnCommittedTransactions", _RETURNED, [], ([0, 1], 3)),
    *_committed(
        "testReadCommittedWithCommittedAndAbortedTransactions",
        _BOTH,
        [(2, 2, 5), (1, 6, 7)],
        ([0, 1, 8], 10),
    ),
    *_committed("testMultipleAbortMarkers", _TWICE, [(1, 0, 2)], ([4, 5], 7)),
    *_committed(
        "testReadCommittedAbortMarkerWithNoData", _WITHOUT_DATA, [(1, 0, 5)], ([6, 7, 8], 10)
    ),
    *_committed(
        "testReadCommittedWithCompactedTopic",
        _COMPACTED,
        [(2, 6, 25), (1, 0, 35)],
        ([3, 4, 30, 31, 32], 40),
    ),
    Case(
        "24 testReturnAbortedTransactionsInUncommittedMode",
        runs.read_uncommitted,
        (_SKIPPED,),
        ([0, 1], 3),
    ),
    *_committed(
        "testConsumerPositionUpdatedWhenSkippingAbortedTransactions",
        _RETURNED + _at([3, 4], 1) + marker(5, 1, ABORT),
        [(1, 3, 5)],
        ([0, 1], 6),
    ),
    *(
        Case(
            "24 testUpdatePositionWithLastRecordMissingFromBatch / testUpdatePositionOnEmptyBatch",
            run,
            (log,),
            expect,
            f"{label}, {run.__name__}",
        )
        for label, log, expect in (
            ("last record missing", _LAST_MISSING, ([0, 1, 2], 4)),
            ("empty batch", _EMPTY, ([], 55)),
        )
        for run in (runs.read_committed, runs.read_uncommitted)
    ),
    *(
        Case(
            "24 testFetcherIgnoresControlRecords / testEmptyControlBatch",
            run,
            (log,),
            expect,
            f"{label}, {run.__name__}",
        )
        for label, log, expect in (
            ("marker", _RETURNED, ([0, 1], 3)),
            (
                "emptied marker",
                _RETURNED[: -len(marker(2, 1, COMMIT))] + _EMPTY_CONTROL,
                ([0, 1], 3),
            ),
            ("of an unknown type", control(0, 337) + _at([1], 1) + marker(2, 1, COMMIT), ([1], 3)),
        )
        for run in (runs.read_committed, runs.read_uncommitted)
    ),
    *(
        Case(
            "24 TransactionLogTest.shouldReadWriteMessages",
            runs.transaction_state_again,
            (_state(status), 2),
            (1, _state(status)),
            topics.TRANSACTION_STATES[status],
        )
        for status in _STATES
    ),
    Case(
        "24 TransactionLogTest.shouldReadWriteMessages",
        runs.transaction_state_again,
        ({**_STATE, "transactionStatus": topics.EMPTY}, 2),
        Refused(ValueError, "Empty must have no partitions"),
        "Empty with partitions",
    ),
    *(
        Case(
            "24 testSerializeTransactionLogValueTo\u2026",
            runs.transaction_state_again,
            (_STATE, transaction_version),
            (version, _STATE),
            f"TV_{transaction_version}",
        )
        for transaction_version, version in ((0, 0), (2, 1))
    ),
    Case(
        "24 testDeserializeFutureTransactionLogValue",
        runs.transaction_record,
        (_KEY, _FUTURE),
        ("TransactionLog", _STATE),
    ),
    Case(
        "24 testReadTxnRecordKeyCanReadUnknownMessage",
        runs.transaction_record,
        (bytes.fromhex("7fff") + b"?", b"?"),
        ("", None),
    ),
]

_COORDINATOR = (
    "The coordinator's answer to a running producer; klog has no coordinator and no producer "
    "connects to it."
)
_STATE_MACHINE = (
    "How a coordinator takes a transaction from state to state and its producer from epoch to "
    "epoch; klog decodes the states that it left and moves none of them."
)

NOT_APPLICABLE = [
    *(
        NotApplicable(f"24 {name}", _STATE_MACHINE)
        for name in (
            "TransactionMetadataTest.testInitializeEpoch / testNormalEpochBump",
            "testBumpEpochNotAllowedIfEpochsExhausted",
            "testEpochBumpWithCurrentEpochProvided",
            "testAttemptedEpochBumpWithLastEpoch",
            "testAttemptedEpochBumpWithFencedEpoch",
            "testAttemptedEpochBumpWithNewlyCreatedMetadata",
            "testFenceProducerAfterEpochsExhausted / testFenceProducerNotAllowedIfItWouldOverflow",
            "testEpochBumpOnEndTxn / \u2026Overflow",
            "testRotateProducerId\u2026",
            "testTolerateTimeShift\u2026",
            "TransactionMetadata state machine",
        )
    ),
    *(
        NotApplicable(f"24 {name}", _COORDINATOR)
        for name in (
            "TransactionCoordinatorTest: init producer id",
            "TransactionCoordinatorTest: end txn TV2",
            "shouldUseLastEpochToFenceWhenEpochsAreExhausted",
        )
    ),
]
