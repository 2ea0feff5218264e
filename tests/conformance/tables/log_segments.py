"""LogSegmentsTest and LocalLogTest (section 17), and the segment of section 26."""

from __future__ import annotations

from klog.errors import OffsetOutOfRangeError
from tests.conformance import roll_runs
from tests.conformance import segment_runs as runs
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.directory_runs import offsets_found, partitions_found
from tests.conformance.tables.segments import FORTIES, single

MAX = (1 << 31) - 1
HEX_UUID = "0123456789abcdef" * 2
LONGEST = "n" * 249
LONGEST_DELETED = f"{LONGEST[:213]}-3.{HEX_UUID}-delete"


FOUR = {base: single(base) for base in (1, 2, 3, 4)}
ODD = {base: [[(base, base), (base + 1, base)]] for base in (1, 3, 5, 7)}

# docs/format.md, 8.1 and 8.2: seven appends of two records; the second one is the later.
LATEST = [1001, 1101, 1051, 1201, 1201, 901, 1301]
SEVEN = [[(100 + 2 * n, t - 1), (101 + 2 * n, t)] for n, t in enumerate(LATEST)]
SIZE = 115

CASES = [
    # Kafka's `values(from, to)` is what a read of these offsets touches. klog names the end, which
    # Kafka's segments 1 to 4 have at 5.
    *(
        Case("17 testSegmentAccess", runs.segments_read, (FOUR, *args), expect, str(args))
        for args, expect in (
            ((1, 1), []),
            ((1, 2), [1]),
            ((1, 3), [1, 2]),
            ((1, 4), [1, 2, 3]),
            ((2, 4), [2, 3]),
            ((4, 5), [4]),
            ((4, 4), []),
        )
    ),
    Case(
        "17 testSegmentAccess",
        runs.segments_read,
        (FOUR, 2, 1),
        Refused(OffsetOutOfRangeError, "after the end"),
        "(2, 1)",
    ),
    # A read of one offset begins in the segment at or below it; lower and higher ones have no
    # reader in klog.
    Case("17 testClosestMatchOperations", runs.segments_read, (ODD, 2, 3), [1], "floor(2)"),
    Case("17 testClosestMatchOperations", runs.segments_read, (ODD, 3, 4), [3], "floor(3)"),
    Case(
        "17 testHigherSegments",
        runs.segments_read,
        ({base: single(base) for base in range(1, 10)}, 9, 10),
        [9],
        "only 9",
    ),
    Case(
        "17 testHigherSegments",
        runs.segments_read,
        ({base: single(base) for base in range(1, 10)}, 10, 10),
        [],
        "none",
    ),
    Case("17 testSizeForLargeLogs", runs.total_bytes, ([MAX, MAX],), 2 * MAX),
    Case(
        "17 testOffsetFromFile",
        runs.named_offsets,
        (23423423, ["log", "index", "timeindex"]),
        [(23423423, "log"), (23423423, "index"), (23423423, "timeindex")],
    ),
    Case(
        "17 testParseTopicPartitionName…",
        runs.directory,
        ("test_topic-143",),
        ("test_topic", 143),
        "legal",
    ),
    # Kafka throws; klog answers that the directory is not a partition. Nor is a deleted one:
    # a broker parses its name to delete it.
    *(
        Case("17 testParseTopicPartitionName…", runs.directory, (name,), None, name or "nothing")
        for name in (
            f"foo.bar-testtopic-42.{HEX_UUID}-delete",
            "",
            "test_topic143",
            "-0",
            "test_topic-",
            "test_topic-1a",
            "non_kafka_dir",
            "non_kafka_dir-delete",
        )
    ),
    # klog deletes no log; it skips replicas that a broker is about to delete and lists the others.
    # A deleted replica must not be taken for the live one of the same partition.
    Case(
        "17 testLogDeleteDirName",
        offsets_found,
        ("foo", [("foo-3", 0, 2), (f"foo-3.{HEX_UUID}-delete", 0, 9)]),
        [0, 1],
        "read",
    ),
    Case(
        "17 testLogDeleteDirName",
        partitions_found,
        (f"{LONGEST}-3", LONGEST_DELETED, "foo-1"),
        [("foo", 1), (LONGEST, 3)],
        "cut topic",
    ),
    Case("17 testLogDeleteDirName", len, (LONGEST_DELETED,), 255, "the longest that there is"),
    Case("17 testTruncateFullyAndStartAt", runs.log_bounds, ({10: []},), (10, 10)),
    Case(
        "17 testRollSegmentThatAlreadyExists / testNewSegmentsAfterRoll",
        roll_runs.rolled,
        ((0, 0, 0), [0, 1], 12),
        [(0, 0), (1, 1)],
        "an empty segment is re-created",
    ),
    Case(
        "17 testRollSegmentThatAlreadyExists / testNewSegmentsAfterRoll",
        roll_runs.rolled,
        ((0, 2, 100), [2]),
        [(0, 0), (0, 2)],
        "base at the log's end",
    ),
    Case(
        "17 testRollSegmentErrorWhenNextOffsetIsIllegal",
        roll_runs.rolled,
        ((5, 5, 0), [4]),
        Refused(ValueError, "offsets that rise"),
    ),
    Case(
        "17 testWhenFetchOffsetHigherThanMaxOffset",
        runs.read_offsets,
        (FORTIES, 45, 45),
        [],
        "at the bound",
    ),
    # Kafka's log answers with no data; klog, asked for a range that ends before it begins, refuses.
    Case(
        "17 testWhenFetchOffsetHigherThanMaxOffset",
        runs.read_offsets,
        (FORTIES, 46, 45),
        Refused(OffsetOutOfRangeError, "startingOffsets 46 is after the end"),
        "above the bound",
    ),
    Case(
        "26 segment base 100, 7 appends of 115 bytes, interval 200",
        runs.index_hex,
        (100, SEVEN, 200),
        (
            "00000005000000e600000009000001cc0000000d000002b2",
            "000000000000044d0000000300000000000004b10000000700000000000005150000000d",
        ),
        "bytes",
    ),
    Case(
        "26 segment base 100, 7 appends of 115 bytes, interval 200",
        runs.index_sizes,
        (100, SEVEN, 200),
        (SIZE, 105, 109, 113, 230, 460, 690),
        "entries",
    ),
    *(
        Case(
            "26 findOffsetByTimestamp on it",
            runs.offsets_for_times,
            (100, SEVEN, [0, 1001, 1002, 1101, 1102, 1201, 1202, 1301, 1302], interval),
            [100, 101, 102, 103, 106, 107, 112, 113, None],
            label,
        )
        for interval, label in ((None, "no indexes"), (200, "indexes"))
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
