"""Section 15, ProducerStateManagerTest: snapshots of producers, and states loaded from them."""

from __future__ import annotations

from klog.logformat.producers.producer_snapshot import ProducerEntry, encode_snapshot
from tests.conformance.case import Case, NotApplicable
from tests.conformance.log_runs import script
from tests.conformance.state_runs import reloaded, snapshot_round_trip, snapshots_kept
from tests.conformance.steps import CLEAN, LOAD, n
from tests.conformance.tables.producer_state_cases import case, first

ONE_PRODUCER = encode_snapshot([ProducerEntry(1, 0, 0, 0, 0, 1000, -1, -1)])


CASES = [
    Case(
        "15 testTruncateAndReloadRemovesOutOfRangeSnapshots",
        snapshots_kept,
        ("in range", [1, 2, 3, 4, 5], 1, 3),
        [2, 3],
    ),
    case(
        "testRecoverFromSnapshotUnfinishedTransaction",
        (first(0, 0, txn=True), "ok"),
        (first(1, 1, txn=True), "ok"),
        (("save",), "ok"),
        (("load",), "ok"),
        (("ask", "sequences", 1), [(1, 1)]),
        (("ask", "offsets", 1), [(1, 1)]),
        (("ask", "transaction", 1), 0),
        (first(2, 2, txn=True), "ok"),
    ),
    case(
        "testRecoverFromSnapshotFinishedTransaction",
        (first(0, 0, txn=True), "ok"),
        (first(1, 1, txn=True), "ok"),
        (("abort", 1, 0, 2), (0, 2, True, 3)),
        (("save",), "ok"),
        (("load",), "ok"),
        (("ask", "offsets", 1), [(1, 1)]),
        (("ask", "transaction", 1), -1),
        (("ask", "unstable"), None),
    ),
    case(
        "testRecoverFromSnapshotEmptyTransaction",
        (("abort", 1, 0, 0, {"ts": 5000}), "ok"),
        (("save",), "ok"),
        (("load",), "ok"),
        (("ask", "timestamp", 1), 5000),
        (("ask", "transaction", 1), -1),
    ),
    case(
        "testRemoveExpiredPidsOnReload",
        (first(0, 0, ts=0), "ok"),
        (first(1, 1, ts=1), "ok"),
        (("save",), "ok"),
        (("load", 70000, 60000), "ok"),
        (("ask", "known"), []),
        (first(2, 2, ts=70001), "ok"),
        (("ask", "known"), [1]),
        (("ask", "sequences", 1), [(2, 2)]),
        (("ask", "end"), 3),
    ),
    Case(
        "15 testTruncateFullyAndStartAt / testReloadSnapshots",
        snapshots_kept,
        ("emptied", 0),
        [],
        "fully",
    ),
    Case(
        "15 testTruncateFullyAndStartAt / testReloadSnapshots",
        snapshots_kept,
        ("in range", [3, 5], 3, 5),
        [5],
        "to a range",
    ),
    Case(
        "15 testTruncateFullyAndStartAt / testReloadSnapshots",
        snapshots_kept,
        ("listed", "00000000000000000003.snapshot"),
        [3],
        "from a listing",
    ),
    case(
        "testLoadFromSnapshotRetainsNonExpiredProducers",
        (first(0, 0, ts=1), "ok"),
        (("client", 2, 0, 0, 1, {"ts": 2}), "ok"),
        (("save",), "ok"),
        (("load", 1000, 60000), "ok"),
        (("ask", "known"), [1, 2]),
        (("ask", "sequences", 1), [(0, 0)]),
        (("ask", "sequences", 2), [(0, 0)]),
        (("ask", "offsets", 2), [(1, 1)]),
    ),
    # The second snapshot of the same offset would be of no producers, for they have expired: it is
    # not taken, the first stays as it was.
    Case(
        "15 testSkipSnapshotIfOffsetUnchanged",
        script,
        (
            ("write", 0, ("idem", 1, 1)),
            LOAD,
            ("file", n(1, "snapshot")),
            ("load", {**CLEAN, "now_ms": 1 << 40}),
            ("file", n(1, "snapshot")),
            ("producers",),
        ),
        [ONE_PRODUCER, ONE_PRODUCER, {}],
    ),
    *[
        Case(
            "15 testLoadFromEmpty/Truncated/CorruptSnapshotFile",
            reloaded,
            ({1: (0, 0), 2: damaged}, 2, 1),
            ([1], 0),
            label,
        )
        for label, damaged in {
            "empty": b"",
            "truncated": bytes.fromhex("000148674bc7000000"),
            "corrupt": bytes.fromhex("000148674bc700000100"),
        }.items()
    ],
    Case(
        "15 testRemoveStraySnapshotsKeepCleanShutdownSnapshot",
        snapshots_kept,
        ("stray", [2, 5, 42], [5]),
        [5, 42],
    ),
    Case("15 testRemoveAllStraySnapshots", snapshots_kept, ("stray", [2, 5, 42], [42]), [42]),
    Case(
        "15 testRemoveAndMarkSnapshotForDeletion (+AlreadyDeleted)",
        snapshots_kept,
        ("listed", "00000000000000000005.snapshot.deleted", "00000000000000000009.snapshot"),
        [9],
    ),
    Case(
        "15 testReadWriteSnapshot",
        snapshot_round_trip,
        ((1, 2, 1, 2, 3, -1, 3, 100), (11, 12, -1, -1, 0, 123456, 13, -1)),
        [(1, 2, 1, 2, 3, -1, 3, 100), (11, 12, -1, -1, 0, 123456, 13, -1)],
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
