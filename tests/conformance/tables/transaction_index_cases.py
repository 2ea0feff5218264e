"""TransactionIndexTest, and the vector of its file."""

from __future__ import annotations

from klog.errors import CorruptRecordError
from tests.conformance import index_runs as runs
from tests.conformance.case import Case, NotApplicable, Refused

A, B, C, D = ROWS = [(0, 0, 10, 11), (1, 5, 15, 13), (2, 18, 35, 25), (3, 32, 50, 40)]

CASES = [
    Case(
        "13 testPositionSetCorrectlyWhenOpened",
        runs.transactions,
        (ROWS, [(3, 50, 60, 55)]),
        [*ROWS, (3, 50, 60, 55)],
    ),
    Case(
        "13 testSanityCheck",
        runs.check_transactions,
        (100, ROWS),
        Refused(CorruptRecordError, "below base offset 100"),
    ),
    Case("13 testSanityCheck", runs.check_transactions, (0, ROWS), None, "sane"),
    Case(
        "13 testLastOffsetMustIncrease / CannotDecrease",
        runs.transactions,
        ([B], [(0, 0, 15, 11)]),
        Refused(ValueError, "marker at offset 15 after"),
        "same",
    ),
    Case(
        "13 testLastOffsetMustIncrease / CannotDecrease",
        runs.transactions,
        ([B], [A]),
        Refused(ValueError, "marker at offset 10 after"),
        "below",
    ),
    *(
        Case(
            "13 testCollectAbortedTransactions",
            runs.collect,
            (ROWS, fetch_offset, upper_bound),
            (expected, complete),
            f"({fetch_offset},{upper_bound})",
        )
        for fetch_offset, upper_bound, expected, complete in (
            (0, 100, [A, B, C, D], False),
            (0, 32, [A, B, C], True),
            (0, 35, [A, B, C, D], True),
            (10, 35, [A, B, C, D], True),
            (11, 35, [B, C, D], True),
            (20, 41, [C, D], False),
        )
    ),
    *(
        Case(
            "13 testTruncate",
            runs.truncate_transactions,
            ([(0, 0, 10, 2), (1, 5, 15, 16), (2, 18, 35, 25), (3, 32, 50, 40)], offset),
            [(0, 0, 10, 2), (1, 5, 15, 16), (2, 18, 35, 25), (3, 32, 50, 40)][:kept],
            f"to {offset}",
        )
        for offset, kept in ((51, 4), (50, 3), (0, 0))
    ),
    Case(
        "13 testAbortedTxnSerde",
        runs.transactions,
        ([(983493, 137, 299, 200)],),
        [(983493, 137, 299, 200)],
    ),
    Case(
        "13 testAbortedTxnSerde",
        runs.transactions_hex,
        ([(983493, 137, 299, 200)],),
        "000000000000000f01c50000000000000089000000000000012b00000000000000c8",
        "bytes, version 0",
    ),
    # An index without entries has no bytes, so there is no file to make.
    Case("13 testFlush", runs.transactions_hex, ([],), "", "nothing appended"),
    Case(
        "13 testFlush",
        runs.transactions_hex,
        ([A],),
        "000000000000000000000000000000000000000000000000000a000000000000000b",
        "one appended",
    ),
    Case(
        "13.6 txn index: (4000,101,110,105),(4001,105,115,116)",
        runs.transactions_hex,
        ([(4000, 101, 110, 105), (4001, 105, 115, 116)],),
        "00000000000000000fa00000000000000065000000000000006e0000000000000069"
        "00000000000000000fa1000000000000006900000000000000730000000000000074",
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
