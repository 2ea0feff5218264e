"""UtilsTest, Crc32CTest, ChecksumsTest, BuiltInPartitionerTest, and the vectors of hashes."""

from __future__ import annotations

import struct

from klog.errors import CorruptRecordError
from tests.conformance import partitioner_runs as runs
from tests.conformance.case import Case, NotApplicable, Refused

LONGEST = "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"
SOME_STRING = 608512271

# Key, murmur2, positive, and its partitions of 3, 10 and 12.
KEYS = [
    ('""', b"", 275646681, 275646681, 0, 1, 9),
    ("a", b"a", -1563381124, 584102524, 1, 4, 4),
    ("ab", b"ab", 316155434, 316155434, 2, 4, 2),
    ("abc", b"abc", 479470107, 479470107, 0, 7, 3),
    ("abcd", b"abcd", -1323649548, 823834100, 2, 0, 8),
    ("key", b"key", -1079937367, 1067546281, 1, 1, 1),
    ("21", b"21", -973932308, 1173551340, 0, 0, 0),
    ("foobar", b"foobar", -790332482, 1357151166, 0, 6, 6),
    (
        "a-little-bit-long-string",
        b"a-little-bit-long-string",
        -985981536,
        1161502112,
        2,
        2,
        8,
    ),
    (
        "a-little-bit-longer-string",
        b"a-little-bit-longer-string",
        -1486304829,
        661178819,
        2,
        9,
        11,
    ),
    (LONGEST, LONGEST.encode(), -58897971, 2088585677, 2, 7, 5),
    ("é中 (UTF-8)", "é中".encode(), -289825924, 1857657724, 1, 4, 4),
]

# Several keys of one row: keys, hashes, and partitions by their count.
TOGETHER = [
    (
        "k1 / k2 / hello world",
        [b"k1", b"k2", b"hello world"],
        [1684045097, 380483553, 1221641059],
        {3: [2, 0, 1], 10: [7, 3, 9], 12: [5, 9, 7]},
    ),
    (
        "bytes 00000000 / ff / 807f",
        [bytes(4), b"\xff", b"\x80\x7f"],
        [850957120, -311467685, -894759045],
        {3: [1, 0, 2], 10: [0, 3, 3]},
    ),
    (
        "int64 42 / int32 123456 / int64 −1 (big-endian)",  # noqa: RUF001
        [struct.pack(">q", 42), struct.pack(">i", 123456), struct.pack(">q", -1)],
        [506863552, 1226863795, 185950397],
        {3: [1, 1, 2], 10: [2, 5, 7]},
    ),
]

GROUPS = [
    ("g1", "g1", 3242, 42),
    ("my-group", "my-group", -1906497762, 12),
    ("test-consumer-group", "test-consumer-group", -1793216381, 31),
    ("console-consumer-12345", "console-consumer-12345", 158455506, 6),
    ('""', "", 0, 0),
    ("polygenelubricants", "polygenelubricants", -2147483648, 0),
    ("é😀", "é😀", 1996812, 12),
]

# Written by Kafka's classes: one record at offset 0, timestamp 1000, k1 = v1; 72 bytes.
ONE = bytes.fromhex(
    "00000000000000000000003c000000000216a7de4c00000000000000000000000003e8"
    "00000000000003e8ffffffffffffffffffffffffffff0000000114000000046b3104763100"
)

CASES = [
    *(
        Case("2 testMurmur2", runs.hashes, ([key],), [hashed], name)
        for name, key, hashed in (
            ("21", b"21", -973932308),
            ("foobar", b"foobar", -790332482),
            ("long", b"a-little-bit-long-string", -985981536),
            ("longer", b"a-little-bit-longer-string", -1486304829),
            ("longest", LONGEST.encode(), -58897971),
            ("abc", bytes([97, 98, 99]), 479470107),
        )
    ),
    Case("2 Crc32CTest.testValue", runs.holds_crc, (b"Some String", SOME_STRING), True),
    Case(
        "2 Crc32CTest.testValue",
        runs.holds_crc,
        (b"Some Strinh", SOME_STRING),
        False,
        "of other bytes",
    ),
    # klog sums in steps of 64 KiB, and this is two of them; the CRC was worked out bit by bit.
    Case(
        "2 Crc32CTest.testUpdate",
        runs.holds_crc,
        (b"Some String" * 10_000, 1655390257),
        True,
    ),
    Case(
        "2 ChecksumsTest.testUpdateByteBufferWithOffsetPosition",
        runs.checks_inside,
        (b"before", ONE, b"after"),
        6 + len(ONE),
    ),
    Case(
        "2 ChecksumsTest.testUpdateByteBufferWithOffsetPosition",
        runs.checks_inside,
        (b"before", ONE[:-1] + b"\1", b"after"),
        Refused(CorruptRecordError, "(position 6)"),
        "of other bytes",
    ),
    *(
        Case(f"13.9 {name}", run, args, expect, label)
        for name, key, hashed, positive, of_3, of_10, of_12 in KEYS
        for run, args, expect, label in (
            (runs.hashes, ([key],), [hashed], "murmur2"),
            (runs.positives, ([hashed],), [positive], "positive"),
            (runs.partitions, ([key], 3), [of_3], "of 3"),
            (runs.partitions, ([key], 10), [of_10], "of 10"),
            (runs.partitions, ([key], 12), [of_12], "of 12"),
        )
    ),
    *(
        Case(f"13.9 {name}", runs.hashes, (keys,), hashed, "murmur2")
        for name, keys, hashed, _ in TOGETHER
    ),
    *(
        Case(f"13.9 {name}", runs.partitions, (keys, count), placed, f"of {count}")
        for name, keys, _, partitions in TOGETHER
        for count, placed in partitions.items()
    ),
    *(
        Case(f"13.9 group {name}", runs.coordinator, (group, 50), (hashed, partition))
        for name, group, hashed, partition in GROUPS
    ),
    # klog numbers the runs of records that stay together; which partition each goes to is a draw.
    Case("24 testStickyPartitioning", runs.runs_of, ([1] * 7, 3), [0, 0, 0, 1, 1, 1, 2]),
    Case(
        "24 testStickyBatchSizeMoreThatZero",
        runs.runs_of,
        ([1], 0),
        Refused(ValueError, "batch.size: must be at least 1, got 0"),
    ),
]

NOT_APPLICABLE = [
    NotApplicable(
        "2 ChecksumsTest.testUpdateInt / testUpdateLong",
        "klog sums bytes that are written already and feeds no numbers to a checksum.",
    ),
    NotApplicable(
        "24 unavailablePartitionsTest",
        "klog's partitions are files of one store and have no leader that could be missing.",
    ),
    NotApplicable(
        "24 adaptivePartitionsTest",
        "klog has no queues of unsent batches whose lengths could weigh the choice of a partition.",
    ),
]
