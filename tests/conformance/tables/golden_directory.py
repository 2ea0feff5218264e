"""Sections 13.7 and 26: the golden directory, whole and with files lacking, as Kafka loaded it."""

from __future__ import annotations

from tests.conformance.case import Case, NotApplicable
from tests.conformance.state_runs import Step
from tests.conformance.steps import BOUNDS, LOAD, LOAD_CLEAN, case, n
from tests.logformat.golden_vectors import DIRECTORY

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

CASES: list[Case] = [
    case("13.7 golden partition directory", (GOLDEN_LOG, LOAD, *WHOLE), WHOLE_EXPECTED),
    case(
        "13.7 golden partition directory",
        (GOLDEN_LOG, LOAD, ("read", 0, None, "read_committed")),
        [[0, 1, 3, 4, 8]],
        "read committed",
    ),
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

NOT_APPLICABLE: list[NotApplicable] = []
