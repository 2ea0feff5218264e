"""Section 20, UnifiedLogTest: offsets that must rise, leader epochs, truncation and splitting."""

from __future__ import annotations

from klog.errors import CorruptRecordError
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.log_runs import parts, scanned
from tests.conformance.roll_runs import first_offsets
from tests.conformance.state_runs import epochs
from tests.conformance.steps import BOUNDS, LOAD, LOAD_CLEAN, MAX, n, segments
from tests.conformance.tables.unified_log import case

DELETING = "shouldTruncate/UpdateLeaderEpochsWhenDeletingSegments"
BELOW = "testAppendBelowExpectedOffsetThrowsException / EmptyLogBelowLogStartOffset"

CASES: list[Case] = [
    case(
        "testTruncateToEndOffsetClearsEpochCache",
        (
            ("write", 27, ("epoch", 19), ("plain", 2)),
            LOAD,
            ("assign", 20, 29),
            ("epochs",),
            ("truncate", 29),
            ("epochs",),
            ("assign", 24, 29),
            ("truncate", 30),
            ("epochs",),
            BOUNDS,
        ),
        [[(19, 27), (20, 29)], [(19, 27)], [(19, 27)], (27, 29)],
    ),
    case(
        "testLogReinitializeAfterManualDelete",
        (("load", {"log_start": 500}), BOUNDS, ("bases",)),
        [(500, 500), [500]],
    ),
    case(
        "testLoadEmptyLog",
        (
            ("put", n(0, "log"), b""),
            ("put", n(0, "index"), b""),
            LOAD_CLEAN,
            BOUNDS,
            ("write", 0, ("plain", 2)),
            LOAD,
            BOUNDS,
        ),
        [(0, 0), (0, 2)],
    ),
    # Appended with offsets given, as followers and the Raft leader do, they must rise.
    Case(
        "20 testAppendAsLeaderWithRaftLeader", scanned, (("plain", 3), ("plain", 2)), [0, 3], "rise"
    ),
    Case(
        "20 testAppendAsLeaderWithRaftLeader",
        scanned,
        (("plain", 3), ("at", 1), ("plain", 1)),
        Refused(CorruptRecordError, "after offset 2"),
        "fall",
    ),
    # Two such batches fill a segment, so that the third rolls it.
    Case(
        "20 testAppendInfoFirstOffset",
        first_offsets,
        ([[(first + n, 1) for n in range(3)] for first in (0, 3, 6)], 2),
        [(0, 0), (3, 0), (6, 6)],
    ),
    Case(
        "20 testAppendWithOutOfOrderOffsetsThrowsException",
        scanned,
        tuple(step for offset in (0, 1, 3, 2, 4) for step in (("at", offset), ("plain", 1))),
        Refused(CorruptRecordError, "offset 2 and 0 more after offset 3"),
    ),
    *[
        Case(
            f"20 {BELOW}",
            scanned,
            (("at", 7), ("plain", 2, more), ("at", 6), ("plain", 1, more)),
            Refused(CorruptRecordError, "after offset 8"),
            f"codec {codec}",
        )
        for codec, more in ((codec, {"fields": {"attributes": codec}}) for codec in range(5))
    ],
    case(
        BELOW,
        (("write", 7, ("at", 4), ("plain", 1)), LOAD, BOUNDS, ("sizes",)),
        [(7, 7), [0]],
        "empty log",
    ),
    case(
        "testTruncateTo",
        (
            *segments(10, 10),
            LOAD,
            ("truncate", 20),
            BOUNDS,
            ("truncate", 21),
            BOUNDS,
            ("truncate", 5),
            BOUNDS,
            ("bases",),
            ("truncate", 0),
            BOUNDS,
            ("sizes",),
            ("write", 0, *[("plain", 1)] * 10),
            LOAD,
            BOUNDS,
            ("start_at", 1),
            BOUNDS,
            ("bases",),
            ("sizes",),
        ),
        [(0, 20), (0, 20), (0, 5), [0], (0, 0), [0], (0, 10), (1, 1), [1], [0]],
    ),
    # What a broker preallocates is not written by klog: an index is as long as its entries.
    case(
        "testIndexResizingAtTruncation",
        (
            *segments(10, 1),
            ("load", {"interval_bytes": 1}),
            ("index offsets",),
            ("times",),
            ("truncate", 0),
            ("file", n(0, "index")),
            ("file", n(0, "timeindex")),
        ),
        [list(range(1, 10)), [*[(1000 + i, i) for i in range(1, 10)], (1010, 10)], b"", b""],
    ),
    case(
        "testAsyncDelete",
        (*segments(1, 1), LOAD, ("rename", n(0, "log"), n(0, "log.deleted")), LOAD, ("bases",)),
        [[1]],
    ),
    case(
        "testSplitOnOffsetOverflow",
        (
            ("write", 0, ("plain", 1), ("at", MAX + 2), ("plain", 1)),
            ("write", MAX + 10, ("plain", 1), ("at", 2 * MAX + 20), ("plain", 1)),
            LOAD,
            ("bases",),
            ("offsets",),
        ),
        [
            [0, MAX + 2, MAX + 10, 2 * MAX + 20],
            [0, MAX + 2, MAX + 10, 2 * MAX + 20],
        ],
    ),
    Case(
        "20 testDegenerateSegmentSplit",
        parts,
        (0, ("at", MAX + 5), ("plain", 1), ("plain", 1)),
        [(MAX + 5, [MAX + 5, MAX + 6])],
    ),
    case(
        "shouldApplyEpochToMessageOnAppendIfLeader",
        (("write", 0, ("epoch", 72), ("plain", 3), ("plain", 2)), LOAD, ("epochs",)),
        [[(72, 0)]],
    ),
    case(
        "followerShouldSaveEpochInformation…",
        (("write", 0, ("epoch", 42), ("plain", 3)), LOAD, ("epochs",)),
        [[(42, 0)]],
    ),
    *[
        Case(
            f"20 {DELETING}",
            epochs,
            (*[("assign", *entry) for entry in entries], ("truncate_from_start", 5), ("entries",)),
            [left],
            label,
        )
        for label, entries, left in (
            ("at its start", ((0, 0), (1, 5), (2, 10)), [(1, 5), (2, 10)]),
            ("inside", ((0, 0), (1, 7), (2, 10)), [(0, 5), (1, 7), (2, 10)]),
        )
    ],
    case(
        "shouldTruncateLeaderEpochCheckpointFileWhenTruncatingLog",
        (
            (
                "write",
                0,
                ("epoch", 0),
                *[("plain", 1)] * 10,
                ("epoch", 1),
                *[("plain", 1)] * 6,
                ("epoch", 2),
                ("plain", 1),
            ),
            LOAD,
            ("epochs",),
            ("truncate", 11),
            ("epochs",),
            ("truncate", 10),
            ("epochs",),
            ("truncate", 0),
            ("epochs",),
        ),
        [[(0, 0), (1, 10), (2, 16)], [(0, 0), (1, 10)], [(0, 0)], []],
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
