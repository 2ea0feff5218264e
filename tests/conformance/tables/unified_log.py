"""Section 20, UnifiedLogTest: producers and transactions."""

from __future__ import annotations

from tests.conformance.case import Case, NotApplicable
from tests.conformance.scenario import T_ABORTED, T
from tests.conformance.state_runs import Step, producers
from tests.conformance.steps import BOUNDS, CLEAN, LOAD, n
from tests.conformance.steps import case as script_case

GAP, FENCED = "OutOfOrderSequenceError", "ProducerFencedError"
ONE, TWO = ("idem", 1, 1), ("idem", 2, 1)


def case(name: str, steps: tuple[Step, ...], expect: list[object], label: str = "") -> Case:
    """Make a case of a script on a directory."""
    return script_case(f"20 {name}", steps, expect, label)


def state(name: str, *rows: tuple[Step, object], label: str = "") -> Case:
    """Make a case of a script on producer state, each step with its answer."""
    steps, expect = zip(*rows, strict=True)
    return Case(f"20 {name}", producers, steps, list(expect), label)


def client(sequence: int, offset: int, epoch: int = 0, **more: object) -> Step:
    """Append one record of producer 1."""
    return ("client", 1, epoch, sequence, offset, more)


TWO_PRODUCERS: tuple[Step, ...] = (("write", 0, ONE), ("write", 1, TWO), LOAD)
FOLLOWER = "testDuplicateAppendToFollower / testMultipleProducersWithDuplicatesInSingleAppend"
NOT_PAST_START = "testLastStableOffsetDoesNotExceedLogStart… (mid segment, after deletion)"
ZOMBIE = "testZombieCoordinatorFenced (+EmptyTransaction)"
FULLY = "testTruncateFullyAndStart / BelowFirstUnstableOffset"

CASES = [
    case(
        "testTransactionIndexUpdated / …ThroughReplication",
        (
            ("write", 0, *T),
            LOAD,
            ("aborted",),
            ("running unstable", 30),
            ("running unstable", 75),
            ("unstable",),
        ),
        [T_ABORTED, 8, 36, None],
    ),
    case(
        FULLY,
        (
            ("write", 0, ("txn", 1, 3)),
            LOAD,
            ("unstable",),
            ("start_at", 0),
            ("unstable",),
            ("producers",),
        ),
        [0, None, {}],
        "fully",
    ),
    case(
        FULLY,
        (
            ("write", 0, ("plain", 1), ("plain", 1), ("txn", 1, 3)),
            LOAD,
            ("truncate", 1),
            ("unstable",),
            ("producers",),
        ),
        [None, {}],
        "below",
    ),
    case(
        "testFetchUpToLastStableOffset",
        (
            ("write", 0, ("txn", 1, 5), ("plain", 3), ("txn", 2, 2), ("commit", 1), ("abort", 2)),
            LOAD,
            ("lso", 9),
            ("lso", 10),
            ("lso", 11),
            ("lso", 12),
        ),
        [0, 0, 8, 12],
    ),
    case(
        "testActiveProducers",
        (
            ("write", 0, ("txn", 1, 5)),
            LOAD,
            ("producers",),
            ("write", 0, ("commit", 1, {"coordinator": 15}), ("idem", 2, 3)),
            LOAD,
            ("producers",),
            ("coordinators",),
        ),
        [{1: (4, 4, 0)}, {1: (4, 4, -1), 2: (2, 8, -1)}, {1: 15, 2: -1}],
    ),
    state("testNonSequentialAppend", (client(0, 0), "ok"), (client(2, 1), GAP)),
    case(
        "testRebuildTransactionalState",
        (
            ("write", 0, ("txn", 1, 3), ("abort", 1)),
            LOAD,
            ("unstable",),
            ("aborted",),
        ),
        [None, [(1, 0, 3, 4)]],
    ),
    state(
        "testDuplicateAppends",
        *[(client(sequence, sequence), "ok") for sequence in range(6)],
        (client(6, 6, last=8), "ok"),
        (("duplicate", 1, 0, 6, 8), (6, 8)),
        (("duplicate", 1, 0, 7, 8), None),
        (client(7, 9, last=10), GAP),
        (("ask", "sequences", 1), [(2, 2), (3, 3), (4, 4), (5, 5), (6, 8)]),
        (("duplicate", 1, 0, 2, 2), (2, 2)),
        (("duplicate", 1, 0, 1, 1), None),
        (client(1, 9), GAP),
        (client(9, 9), "ok"),
        (("duplicate", 1, 0, 9, 9), (9, 9)),
        (("duplicate", 1, 1, 9, 9), None),
    ),
    case(
        FOLLOWER,
        (
            ("write", 0, ("idem", 1, 2, {"sequence": 0}), ("idem", 1, 2, {"sequence": 0})),
            LOAD,
            BOUNDS,
            ("producers",),
        ),
        [(0, 4), {1: (1, 3, -1)}],
        "one",
    ),
    case(
        FOLLOWER,
        (
            ("write", 0, *[("idem", pid, 1, {"sequence": 0}) for pid in (1, 2, 1, 2, 1)]),
            LOAD,
            BOUNDS,
            ("read", 0),
        ),
        [(0, 5), [0, 1, 2, 3, 4]],
        "several",
    ),
    state("testOldProducerEpoch", (client(0, 0, epoch=1), "ok"), (client(0, 1, epoch=0), FENCED)),
    state(
        ZOMBIE,
        (client(0, 0, txn=True), "ok"),
        (("abort", 1, 0, 1, {"coordinator": 1}), (0, 1, True, 2)),
        (client(1, 2, txn=True), "ok"),
        (("abort", 1, 0, 3, {"coordinator": 0}), FENCED),
    ),
    state(
        ZOMBIE,
        (("abort", 1, 0, 0, {"coordinator": 1}), "ok"),
        (("abort", 1, 0, 1, {"coordinator": 0}), FENCED),
        label="empty",
    ),
    state(
        "testEndTxnWithFencedProducerEpoch",
        (client(0, 0, epoch=5, txn=True), "ok"),
        (("abort", 1, 4, 1, {"coordinator": 1}), FENCED),
    ),
    case(
        NOT_PAST_START,
        (
            ("write", 0, ("txn", 1, 5), ("txn", 1, 3)),
            LOAD,
            ("unstable",),
            ("load", {"log_start": 5, **CLEAN}),
            ("unstable",),
        ),
        [0, 5],
        "mid segment",
    ),
    case(
        NOT_PAST_START,
        (
            ("write", 0, ("txn", 1, 8)),
            ("write", 8, ("txn", 1, 3)),
            LOAD,
            ("remove", n(0, "log")),
            ("load", {"log_start": 8, **CLEAN}),
            ("unstable",),
        ),
        [8],
        "after deletion",
    ),
    case(
        "testAppendToTransactionIndexFailure",
        (
            ("write", 0, ("txn", 1, 10), ("abort", 1)),
            LOAD,
            ("remove", "txnindex"),
            ("lso", 10),
            LOAD,
            ("aborted",),
            ("lso", 11),
        ),
        [0, [(1, 0, 10, 11)], 11],
    ),
    case(
        "testAbortedTransactionSpanningMultipleSegments",
        (
            ("write", 0, ("txn", 1, 5)),
            ("write", 5, ("txn", 1, 5)),
            ("write", 10, ("abort", 1), ("plain", 1)),
            LOAD,
            ("aborted",),
            ("read", 0, None, "read_committed"),
            ("read", 0),
        ),
        [[(1, 0, 10, 11)], [11], [*range(10), 11]],
    ),
    state("testAllowNonZeroSequenceOnFirstAppendNonZeroEpoch", (client(3, 0, epoch=1), "ok")),
]

NOT_APPLICABLE: list[NotApplicable] = []
