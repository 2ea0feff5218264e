"""Loading a directory: sections 13.7, 16 (recovery), 19 (LogLoaderTest) and 26."""

from __future__ import annotations

from klog.logformat.snapshot import SnapshotEntry, encode_snapshot
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.log_runs import parts, script
from tests.conformance.scenario import T_ABORTED, T_SEGMENTS
from tests.conformance.state_runs import Step
from tests.logformat.golden import DIRECTORY

MAX = 2147483647
CLEAN = {"was_clean": True}
LOAD: Step = ("load",)
LOAD_CLEAN: Step = ("load", CLEAN)
BOUNDS: Step = ("bounds",)


def n(base: int, suffix: str) -> str:
    """Name a segment's file."""
    return f"{base:020d}.{suffix}"


def case(name: str, steps: tuple[Step, ...], expect: list[object], label: str = "") -> Case:
    """Make a case of a script."""
    return Case(name, script, steps, expect, label)


def segments(*counts: int) -> tuple[Step, ...]:
    """Write segments of so many one-record batches, one behind the other."""
    bases = [sum(counts[:number]) for number in range(len(counts))]
    return tuple(
        ("write", base, *[("plain", 1)] * count) for base, count in zip(bases, counts, strict=True)
    )


GOLDEN = b"".join(DIRECTORY)
GOLDEN_LOG: Step = ("put", n(0, "log"), GOLDEN)
GOLDEN_TIMES = bytes.fromhex("00000000000003f20000000a")
GOLDEN_ABORTED = bytes.fromhex(
    "0000000000000000000a0000000000000002000000000000000500000000000000030000000000000000000a"
    "00000000000000060000000000000009000000000000000a"
)
GOLDEN_SNAPSHOT = bytes.fromhex(
    "00011df3cf6f00000004000000000000000a00000000000100000000000000060000000000000000000003f1"
    "00000008ffffffffffffffff000000000000000b000000000001000000000000000400000001000000000000"
    "03ef00000007ffffffffffffffff000000000000000c00000000000000000000000000080000000000000000"
    "000003f0ffffffffffffffffffffffff000000000000000d000200000000000000000000000a000000000000"
    "0000000003f2ffffffff000000000000000a"
)
WHOLE: tuple[Step, ...] = (
    BOUNDS,
    ("epochs",),
    ("file", n(0, "log")),
    ("file", n(0, "index")),
    ("file", n(0, "timeindex")),
    ("file", n(0, "txnindex")),
    ("file", n(11, "snapshot")),
    ("file", "leader-epoch-checkpoint"),
    ("snapshots",),
    ("unstable",),
)
WHOLE_EXPECTED: list[object] = [
    (0, 11),
    [(0, 0), (1, 5)],
    GOLDEN,
    b"",
    GOLDEN_TIMES,
    GOLDEN_ABORTED,
    GOLDEN_SNAPSHOT,
    b"0\n2\n0 0\n1 5\n",
    [11],
    10,
]

OVERFLOW: tuple[Step, ...] = (
    ("plain", 1),
    ("plain", 1),
    ("at", MAX + 2),
    ("plain", 1),
    ("plain", 1),
)
KEPT: tuple[Step, ...] = (("offsets",), ("bases",))
SPLIT: list[object] = [[0, 1, MAX + 2, MAX + 3], [0, MAX + 2]]
PHASE = "19 testRecoveryAfterCrashDuringSplitPhase1..5"
LOW, HIGH = n(0, "log"), n(MAX + 2, "log")
HALVES: tuple[Step, ...] = (("write", 0, *OVERFLOW[:2]), ("write", MAX + 2, *OVERFLOW[3:]))
TRANSACTIONS = (
    "19 testFullTransactionIndexRecovery / testRecoverOnlyLastSegment / "
    "testRecoverLastSegmentWithNoSnapshots"
)
REBUILD = "19 testIndexRebuild / testCorruptIndexRebuild"
FIXES = "16 testRecoveryFixesCorruptIndex / TimeIndex"
REBUILT: tuple[Step, ...] = (
    ("index offsets",),
    ("times",),
    ("read", 0, 4),
    ("at time", 1002),
    ("at time", 1004),
)
REBUILT_EXPECTED: list[object] = [
    [1, 2, 3],
    [(1001, 1), (1002, 2), (1003, 3)],
    [0, 1, 2, 3],
    (2, 0),
    None,
]
EVERY = {"interval_bytes": 0}
OPEN_FROM_75 = encode_snapshot([SnapshotEntry(10, 0, -1, -1, 0, -1, 0, 75)])
TWO_TRANSACTIONS: Step = (
    "write",
    100,
    ("txn", 5, 2),
    ("txn", 10, 2),
    ("plain", 2),
    ("abort", 10),
    ("commit", 5),
)

CASES = [
    case("13.7 golden partition directory", (GOLDEN_LOG, LOAD, *WHOLE), WHOLE_EXPECTED),
    case(
        "13.7 golden partition directory",
        (GOLDEN_LOG, LOAD, ("read", 0, None, "read_committed")),
        [[0, 1, 3, 4, 8]],
        "read committed",
    ),
    # 16. LogSegmentTest
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
    # 19. LogLoaderTest. The old message format knows no producers, so it has no case here.
    case(
        "19 testProducerSnapshotsRecoveryAfterUncleanShutdown (V1 and current)",
        (
            *segments(1, 1, 1, 1, 1, 1),
            LOAD,
            ("snapshots",),
            ("remove", n(1, "snapshot")),
            ("load", {"recovery_point": 2}),
            ("snapshots",),
        ),
        [[1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6]],
    ),
    case(
        "19 testSkipLoadingIfEmptyProducerStateBeforeTruncation",
        (*segments(5, 5), LOAD, ("truncate", 10), ("snapshots",), ("map end",), ("producers",)),
        [[5, 10], 10, {}],
    ),
    case(
        "19 testRecoverAfterNonMonotonicCoordinatorEpochWrite",
        (
            ("write", 0, ("txn", 1, 1), ("commit", 1, {"coordinator": 5})),
            ("write", 2, ("txn", 1, 1), ("commit", 1, {"coordinator": 3})),
            LOAD,
            ("coordinators",),
            BOUNDS,
        ),
        [{1: 3}, (0, 4)],
    ),
    case(
        "19 testSkipTruncateAndReloadIfOld/NewMessageFormat(AndNo)CleanShutdown",
        (
            ("write", 0, ("idem", 1, 2)),
            ("write", 2, ("idem", 1, 1)),
            LOAD,
            ("producers",),
            ("remove", ".snapshot"),
            LOAD_CLEAN,
            ("producers",),
            ("snapshots",),
            ("map end",),
        ),
        [{1: (2, 2, -1)}, {}, [2, 3], 3],
    ),
    case(
        "19 testLoadProducersAfterDeleteRecordsMidSegment",
        (
            ("write", 0, ("idem", 1, 1), ("idem", 2, 1)),
            LOAD,
            ("load", {"log_start": 1, **CLEAN}),
            ("producers",),
            BOUNDS,
        ),
        [{1: (0, 0, -1), 2: (0, 1, -1)}, (1, 2)],
    ),
    case(
        "19 testLoadProducersAfterDeleteRecordsOnSegment",
        (
            ("write", 0, ("idem", 1, 1)),
            ("write", 1, ("idem", 2, 1)),
            LOAD,
            ("producers",),
            ("remove", n(0, "log")),
            ("load", {"log_start": 1}),
            ("producers",),
        ),
        [{1: (0, 0, -1), 2: (0, 1, -1)}, {2: (0, 1, -1)}],
    ),
    case(
        "19 testLoadingLogKeepsLargestStrayProducerStateSnapshot",
        (
            *segments(1, 1, 2),
            LOAD,
            ("put", n(3, "snapshot"), encode_snapshot(())),
            LOAD_CLEAN,
            ("snapshots",),
        ),
        [[1, 2, 4]],
    ),
    case(
        "19 testLogRecoversToCorrectOffset",
        (
            *segments(*[10] * 10),
            ("load", EVERY),
            BOUNDS,
            ("index offsets",),
            ("times",),
            ("load", {"recovery_point": 100, **CLEAN, **EVERY}),
            BOUNDS,
            ("index offsets",),
            ("load", {"recovery_point": 10, **EVERY}),
            BOUNDS,
            ("index offsets",),
            ("times",),
        ),
        [
            (0, 100),
            [offset for offset in range(100) if offset % 10],
            [(1000 + offset, offset) for offset in range(100) if offset % 10],
            (0, 100),
            [offset for offset in range(100) if offset % 10],
            (0, 100),
            [offset for offset in range(100) if offset % 10],
            [(1000 + offset, offset) for offset in range(100) if offset % 10],
        ],
    ),
    case(
        REBUILD,
        (
            *segments(4),
            ("load", EVERY),
            ("remove", "index"),
            ("load", {**EVERY, **CLEAN}),
            *REBUILT,
        ),
        REBUILT_EXPECTED,
        "deleted",
    ),
    case(
        REBUILD,
        (
            *segments(4),
            ("load", EVERY),
            ("put", n(0, "index"), b"  "),
            ("put", n(0, "timeindex"), b"  "),
            ("load", EVERY),
            *REBUILT,
        ),
        REBUILT_EXPECTED,
        "overwritten",
    ),
    # A batch of format v2 without timestamps stands for the old messages, which had none.
    case(
        "19 testRebuildTimeIndexForOldMessages",
        (
            ("write", 0, *[("plain", 1, {"ts": [-1]})] * 4),
            ("load", EVERY),
            ("index offsets",),
            ("times",),
        ),
        [[1, 2, 3], []],
    ),
    case(
        "19 testBogusIndexSegmentsAreRemoved",
        (
            *segments(1),
            ("put", n(5, "index"), b""),
            ("put", n(5, "timeindex"), b""),
            LOAD,
            ("files",),
        ),
        [
            [
                n(0, "index"),
                n(0, "log"),
                n(0, "timeindex"),
                n(1, "snapshot"),
                "leader-epoch-checkpoint",
            ]
        ],
    ),
    case(
        "19 testReopenThenTruncate",
        (*segments(5, 5), LOAD, LOAD_CLEAN, ("truncate", 3), ("bases",), BOUNDS, ("offsets",)),
        [[0], (0, 3), [0, 1, 2]],
    ),
    case(
        "19 testOpenDeletesObsoleteFiles",
        (
            *segments(1),
            ("put", n(7, "log.deleted"), b"x"),
            ("put", n(7, "index.deleted"), b""),
            LOAD,
            ("bases",),
            BOUNDS,
        ),
        [[0], (0, 1)],
    ),
    case(
        "19 testCorruptLog",
        (
            *segments(10),
            LOAD,
            ("add", n(0, "log"), b"\x07" * 500),
            ("add", n(0, "index"), b"\x07" * 33),
            LOAD,
            ("offsets",),
            BOUNDS,
            ("index",),
        ),
        [list(range(10)), (0, 10), []],
    ),
    *[
        case(
            "19 testOverCompactedLogRecovery (+MultiRecord)",
            (
                ("write", 0, ("plain", 1), ("at", MAX + 2), *after),
                LOAD,
                ("bases",),
                BOUNDS,
                ("snapshots",),
            ),
            [[0, MAX + 2], (0, MAX + 5), [MAX + 2, MAX + 5]],
            label,
        )
        for label, after in {
            "single": (("plain", 1), ("plain", 1), ("plain", 1)),
            "several": (("plain", 3),),
        }.items()
    ],
    case(
        "19 testRecoveryOfSegmentWithOffsetOverflow",
        (("write", 0, *OVERFLOW), LOAD, *KEPT, LOAD_CLEAN, *KEPT),
        [*SPLIT, *SPLIT],
    ),
    Case(
        "19 testRecoveryOfSegmentWithOffsetOverflow",
        parts,
        (0, ("plain", 1), ("at", MAX), ("plain", 1)),
        Refused(ValueError, "does not overflow"),
        "again",
    ),
    case(
        PHASE,
        (
            *HALVES,
            ("rename", LOW, f"{LOW}.cleaned"),
            ("rename", HIGH, f"{HIGH}.cleaned"),
            ("write", 0, *OVERFLOW),
            LOAD,
            *KEPT,
        ),
        SPLIT,
        "1, before a swap",
    ),
    case(
        PHASE,
        (
            *HALVES,
            ("rename", LOW, f"{LOW}.cleaned"),
            ("rename", HIGH, f"{HIGH}.swap"),
            ("write", 0, *OVERFLOW),
            LOAD,
            *KEPT,
        ),
        SPLIT,
        "2, partly renamed",
    ),
    case(
        PHASE,
        (
            *HALVES,
            ("rename", LOW, f"{LOW}.swap"),
            ("rename", HIGH, f"{HIGH}.swap"),
            ("write", 0, *OVERFLOW),
            LOAD,
            *KEPT,
        ),
        SPLIT,
        "3, fully renamed",
    ),
    case(
        PHASE,
        (
            *HALVES,
            ("rename", LOW, f"{LOW}.swap"),
            ("rename", HIGH, f"{HIGH}.swap"),
            ("write", 0, *OVERFLOW),
            ("rename", LOW, f"{LOW}.deleted"),
            LOAD,
            *KEPT,
        ),
        SPLIT,
        "4, old one deleted",
    ),
    case(
        PHASE,
        (*HALVES, ("rename", HIGH, f"{HIGH}.swap"), LOAD, *KEPT),
        SPLIT,
        "5, partly promoted",
    ),
    case(
        "19 testCleanShutdownFile",
        (
            *segments(4),
            LOAD,
            ("put", n(0, "index"), b"as it is"),
            LOAD_CLEAN,
            ("file", n(0, "index")),
            LOAD,
            ("file", n(0, "index")),
        ),
        [b"as it is", b""],
    ),
    case(
        "19 testLogRecoversForLeaderEpoch",
        (
            (
                "write",
                0,
                ("epoch", 1),
                ("plain", 1),
                ("epoch", 2),
                ("plain", 2),
                ("epoch", 3),
                ("plain", 1),
            ),
            LOAD,
            ("put", "leader-epoch-checkpoint", b"0\n1\n1 0\n"),
            LOAD,
            ("epochs",),
        ),
        [[(1, 0), (2, 1), (3, 3)]],
    ),
    case(
        TRANSACTIONS,
        (*T_SEGMENTS, LOAD, ("remove", "index"), LOAD, ("aborted",), BOUNDS),
        [T_ABORTED, (0, 90)],
        "all indexes deleted",
    ),
    case(
        TRANSACTIONS,
        (
            *T_SEGMENTS,
            LOAD,
            ("remove", n(74, "txnindex")),
            ("load", {"recovery_point": 74}),
            ("aborted",),
        ),
        [T_ABORTED],
        "only the last segment",
    ),
    case(
        TRANSACTIONS,
        (
            *T_SEGMENTS,
            LOAD,
            ("remove", n(74, "txnindex")),
            ("remove", ".snapshot"),
            ("load", {"recovery_point": 74}),
            ("aborted",),
        ),
        [T_ABORTED],
        "without snapshots",
    ),
    case(
        "19 testLogEndLessThanStartAfterReopen",
        (
            *segments(1, 1, 1, 1, 1),
            LOAD,
            ("spoil", 1, 0),
            ("load", {"log_start": 4}),
            ("bases",),
            BOUNDS,
            ("snapshots",),
        ),
        [[4], (4, 4), []],
    ),
    case(
        "19 testRecoverWithEmptyActiveSegment",
        (
            *segments(1),
            LOAD,
            ("put", n(1, "log"), b""),
            LOAD_CLEAN,
            ("bases",),
            ("file", n(1, "index")),
            ("file", n(1, "timeindex")),
        ),
        [[0, 1], b"", b""],
    ),
    # klog has no tiered storage, where the log would begin at the checkpoint.
    case(
        "19 testLogStartOffsetWhenRemoteStorageIsEnabled",
        (("write", 5, ("plain", 1)), LOAD, BOUNDS),
        [(5, 6)],
    ),
    # 26. Seen with Kafka's loader
    *[
        case(
            "26 directory with only `.log`, unclean or clean flag",
            (GOLDEN_LOG, step, *WHOLE),
            WHOLE_EXPECTED,
            label,
        )
        for label, step in {"unclean": LOAD, "clean": LOAD_CLEAN}.items()
    ],
    case(
        "26 `_SUCCESS`, `.….crc`, `notes.txt`, a sub-directory present",
        (
            GOLDEN_LOG,
            *[
                ("put", name, b"?")
                for name in ("_SUCCESS", f".{n(0, 'log')}.crc", "notes.txt", "sub")
            ],
            LOAD,
            *WHOLE,
        ),
        WHOLE_EXPECTED,
    ),
    case("26 complete aux files, clean", (GOLDEN_LOG, LOAD, LOAD_CLEAN, *WHOLE), WHOLE_EXPECTED),
    # So a broker loads it; klog, reading, lets the markers decide.
    case(
        "26 `.txnindex` removed, clean",
        (
            GOLDEN_LOG,
            LOAD,
            ("remove", "txnindex"),
            LOAD_CLEAN,
            ("aborted",),
            ("read", 0, None, "read_committed"),
        ),
        [[], [0, 1, 3, 4, 8]],
    ),
    case(
        "26 snapshots removed, clean",
        (
            GOLDEN_LOG,
            LOAD,
            ("remove", ".snapshot"),
            LOAD_CLEAN,
            ("producers",),
            ("unstable",),
            ("snapshots",),
        ),
        [{}, None, [11]],
    ),
    case(
        "26 zero-padded `.index`, clean",
        (
            GOLDEN_LOG,
            ("put", n(0, "index"), bytes(80)),
            LOAD_CLEAN,
            BOUNDS,
            ("epochs",),
            ("producers",),
            ("times",),
            ("file", n(0, "index")),
        ),
        [(0, 11), [], {}, [], bytes(80)],
    ),
    # A broker falls back to position 0; klog passes over the zeros and goes by the entries.
    case(
        "26 index with trailing zeros",
        (
            GOLDEN_LOG,
            ("put", n(0, "index"), bytes.fromhex("00000004000000950000000600000132") + bytes(64)),
            LOAD_CLEAN,
            ("position", 0, 3),
            ("position", 0, 5),
            ("position", 0, 10),
        ),
        [0, 149, 306],
    ),
]

OLD_FORMAT = (
    "klog writes batches of format v2 alone, and no topic of its is set back to an older one."
)
NOT_APPLICABLE = [
    NotApplicable("19 testOverCompactedLogRecoveryMultiRecordV1", OLD_FORMAT),
    NotApplicable("19 testLeaderEpochCacheClearedAfterStaticMessageFormatDowngrade", OLD_FORMAT),
    NotApplicable(
        "19 testCorruptedLogRecoveryDoesNotDeleteProducerStateSnapshotsPostRecovery",
        "It is about a running broker's delayed deletions; a directory loaded as a value has none.",
    ),
]
