"""Section 16, LogSegmentTest: what recovery makes of one segment."""

from __future__ import annotations

from klog.logformat.producers.producer_snapshot import ProducerEntry, encode_snapshot
from tests.conformance.case import Case, NotApplicable
from tests.conformance.state_runs import Step
from tests.conformance.steps import (
    BOUNDS,
    EVERY,
    LOAD,
    REBUILT,
    REBUILT_EXPECTED,
    case,
    n,
    segments,
)

FIXES = "16 testRecoveryFixesCorruptIndex / TimeIndex"
OPEN_FROM_75 = encode_snapshot([ProducerEntry(10, 0, -1, -1, 0, -1, 0, 75)])
TWO_TRANSACTIONS: Step = (
    "write",
    100,
    ("txn", 5, 2),
    ("txn", 10, 2),
    ("plain", 2),
    ("abort", 10),
    ("commit", 5),
)

CASES: list[Case] = [
    *[
        case(
            FIXES,
            (
                ("write", 0, *[("plain", 1)] * 4),
                ("put", n(0, suffix), b"garbage!" * 7),
                ("load", EVERY),
                *REBUILT,
            ),
            REBUILT_EXPECTED,
            suffix,
        )
        for suffix in ("index", "timeindex")
    ],
    case(
        "16 testRecoverTransactionIndex",
        (TWO_TRANSACTIONS, LOAD, ("aborted",), ("map end",)),
        [[(10, 102, 106, 100)], 108],
    ),
    case(
        "16 testRecoverTransactionIndex",
        (
            TWO_TRANSACTIONS,
            ("put", n(100, "snapshot"), OPEN_FROM_75),
            LOAD,
            ("aborted",),
            ("map end",),
        ),
        [[(10, 75, 106, 100)], 108],
        "open before",
    ),
    case(
        "16 testRecoveryRebuildsEpochCache",
        (
            (
                "write",
                104,
                ("epoch", 0),
                ("plain", 2),
                ("epoch", 1),
                ("plain", 2),
                ("plain", 2),
                ("epoch", 2),
                ("plain", 2),
            ),
            LOAD,
            ("epochs",),
        ),
        [[(0, 104), (1, 106), (2, 110)]],
    ),
    *[
        case(
            "16 testRecoveryWithCorruptMessage",
            (*segments(20), ("spoil", 0, number), LOAD, ("offsets",), BOUNDS),
            [list(range(number)), (0, number)],
            f"in batch {number}",
        )
        for number in (0, 1, 7, 19)
    ],
]

NOT_APPLICABLE: list[NotApplicable] = []
