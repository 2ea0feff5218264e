"""OffsetIndexTest, TimeIndexTest, and the vectors of their files.

Where Kafka throws IllegalArgumentException or InvalidOffsetException at its own caller, klog raises
ValueError; a corrupt file is a CorruptRecordError.
"""

from __future__ import annotations

from klog.errors import CorruptRecordError
from tests.conformance import index_runs as runs
from tests.conformance.case import Case, NotApplicable, Refused

BASE = 45
SLOTS = 30
# Increasing offsets and positions with gaps between them, as the test draws them.
RANDOM = [(48, 3), (49, 17), (61, 40), (62, 41), (90, 2000), (91, 2001), (300, 70_000)]
MANY = [(46 + n, n) for n in range(SLOTS)]
FOUR = [(45 + n, n) for n in range(4)]
FETCHED = [(45, 0), (46, 10), (47, 23), (48, 37)]
NINE = [(n, n) for n in range(1, 10)]

TIMES = [(10 * i, 45 + 10 * i) for i in range(1, 30)]

A, B, C, D = ROWS = [(0, 0, 10, 11), (1, 5, 15, 13), (2, 18, 35, 25), (3, 32, 50, 40)]

CASES = [
    Case("11 randomLookupTest", runs.offset_lookups, (BASE, [], [92]), [(45, 0)], "empty"),
    Case(
        "11 randomLookupTest",
        runs.offset_lookups,
        (BASE, RANDOM, [offset for offset, _ in RANDOM]),
        RANDOM,
        "each entry",
    ),
    Case(
        "11 randomLookupTest",
        runs.offset_lookups,
        (BASE, RANDOM, [50, 60, 89, 299, 301, 1 << 40]),
        [(49, 17), (49, 17), (62, 41), (91, 2001), (300, 70_000), (300, 70_000)],
        "between entries",
    ),
    Case(
        "11 randomLookupTest",
        runs.offset_lookups,
        (BASE, RANDOM, [45, 47, 0]),
        [(45, 0), (45, 0), (45, 0)],
        "below the first",
    ),
    Case(
        "11 lookupExtremeCases",
        runs.offset_lookups,
        (BASE, MANY, [45, 75]),
        [(45, 0), (75, 29)],
    ),
    Case(
        "11 testEntry / testEntryOverflow",
        runs.offset_entries,
        (BASE, FOUR, [0, 1, 2, 3]),
        [(45, 0), (46, 1), (47, 2), (48, 3)],
        "entry",
    ),
    Case(
        "11 testEntry / testEntryOverflow",
        runs.offset_entries,
        (BASE, [], [0]),
        Refused(ValueError, "no entry 0"),
        "overflow",
    ),
    Case(
        "11 appendTooMany",
        runs.append_offsets,
        (BASE, MANY, [(76, 30)], 8 * SLOTS),
        Refused(ValueError, "full with 30 entries"),
    ),
    Case(
        "11 appendOutOfOrder",
        runs.append_offsets,
        (BASE, [(51, 0)], [(50, 1)], 8 * SLOTS),
        Refused(ValueError, "offset 50 after"),
    ),
    Case(
        "11 testFetchUpperBoundOffset",
        runs.upper_bounds,
        (BASE, FETCHED, [(0, 5), (0, 10), (0, 22), (0, 23), (0, 200)]),
        [46, 46, 47, 47, None],
        "from the first",
    ),
    Case(
        "11 testFetchUpperBoundOffset",
        runs.upper_bounds,
        (BASE, FETCHED, [(10, 24), (10, 200), (37, 1)]),
        [48, None, None],
        "from the second and the fourth",
    ),
    Case(
        "11 testFetchUpperBoundOffset",
        runs.upper_bounds,
        (BASE, [], [(0, 5)]),
        [None],
        "empty",
    ),
    Case("11 testReopen", runs.reopen_offsets, (BASE, [(51, 0), (52, 1)]), (52, 2)),
    Case(
        "11 testReopen",
        runs.offset_lookups,
        (BASE, [(51, 0), (52, 1)], [51, 52]),
        [(51, 0), (52, 1)],
        "look-ups",
    ),
    Case(
        "11 testReopen",
        runs.append_offsets,
        (BASE, [(51, 0), (52, 1)], [(53, 2)], 16),
        Refused(ValueError, "full with 2 entries"),
        "the file has no room",
    ),
    Case("11 truncate", runs.truncate_offsets, (0, NINE, [12]), [(9, 9)], "beyond the last"),
    Case(
        "11 truncate",
        runs.offset_lookups,
        (0, NINE, [10]),
        [(9, 9)],
        "look-up beyond the last",
    ),
    Case(
        "11 truncate",
        runs.truncate_offsets,
        (0, [*NINE, (10, 10)], [10, 9, 5, 0]),
        [(9, 9), (8, 8), (4, 4), (0, 0)],
        "one after the other",
    ),
    Case(
        "11 testSanityLastOffsetEqualToBaseOffset",
        runs.check_offsets,
        (20, bytes(8)),
        None,
    ),
    Case("12 testLookUp", runs.time_lookups, (BASE, [], [100]), [(-1, 45)], "empty"),
    Case(
        "12 testLookUp",
        runs.time_lookups,
        (BASE, TIMES, [9, 25, 30]),
        [(-1, 45), (20, 65), (30, 75)],
        "filled",
    ),
    Case(
        "12 testEntry / Overflow",
        runs.time_entries,
        (BASE, TIMES, [0, 1, 2, 3]),
        [(10, 55), (20, 65), (30, 75), (40, 85)],
        "entry",
    ),
    Case(
        "12 testEntry / Overflow",
        runs.time_entries,
        (BASE, [], [0]),
        Refused(ValueError, "no entry 0"),
        "overflow",
    ),
    Case("12 testTruncate", runs.truncate_times, (BASE, TIMES, BASE), 0, "whole"),
    Case("12 testTruncate", runs.truncate_times, (BASE, TIMES, 55), 0, "to the first's offset"),
    Case("12 testTruncate", runs.truncate_times, (BASE, TIMES, 56), 1, "after the first's"),
    Case(
        "12 testAppend",
        runs.append_times,
        (BASE, TIMES, [(10_000, 1000)], 12 * SLOTS, 1),
        Refused(ValueError, "full with 29 entries"),
        "full",
    ),
    Case(
        "12 testAppend",
        runs.append_times,
        (BASE, TIMES, [(10_000, 280)], 12 * SLOTS, 0),
        Refused(ValueError, "offset 280 after"),
        "into the last slot, out of order",
    ),
    Case(
        "12 testAppend",
        runs.append_times,
        (BASE, TIMES, [(10_000, 1000)], 12 * SLOTS, 0),
        (10_000, 1000),
        "into the last slot",
    ),
    Case("12 testIsFull", runs.full_times, (BASE, TIMES, 12 * SLOTS), True, "29 of 30"),
    Case("12 testIsFull", runs.full_times, (BASE, TIMES[:-1], 12 * SLOTS), False, "28 of 30"),
    Case(
        "12 testSanityCheck",
        runs.check_times,
        (BASE, bytes.fromhex("000000000000000affffffff")),
        Refused(CorruptRecordError, "last offset 44"),
        "last offset below the base",
    ),
    Case(
        "12 testSanityCheck",
        runs.check_times,
        (BASE, bytes.fromhex("000000000000000a00000001000000000000000900000002")),
        Refused(CorruptRecordError, "last timestamp 9"),
        "last timestamp below the first",
    ),
    Case(
        "12 testSanityCheck",
        runs.check_times,
        (BASE, bytes(13)),
        Refused(CorruptRecordError, "not a multiple of 12"),
        "not whole",
    ),
    Case(
        "12 testSanityCheck",
        runs.check_times,
        (BASE, bytes.fromhex("000000000000000a0000000100000000000000140000000b")),
        None,
        "sane",
    ),
    Case("12 testLastEntry", runs.last_time, (BASE, []), (-1, 45), "empty"),
    Case("12 testLastEntry", runs.last_time, (BASE, [(1, 46)]), (1, 46)),
    Case("12 testResize", runs.resized, (360, 360), False, "same"),
    Case("12 testResize", runs.resized, (360, 180), True, "half"),
    Case("12 testResize", runs.resized, (360, 720), True, "double"),
    Case("12 testEntrySize", runs.entry_bytes, ([(1, 1), (2, 2)],), 12),
    Case(
        "13.6 offset index base 100: (105,0),(120,4200),(2147483747,2147483000)",
        runs.write_offsets,
        (100, [(105, 0), (120, 4200), (2147483747, 2147483000)], 83),
        ("000000050000000000000014000010687fffffff7ffffd78", 80, 10),
    ),
    Case(
        "13.6 time index base 100: (1000,105),(1000,110 ignored),(2000,120)",
        runs.write_times,
        (100, [(1000, 105), (1000, 110), (2000, 120)]),
        "00000000000003e80000000500000000000007d000000014",
    ),
]

NOT_APPLICABLE = [
    NotApplicable(
        "13 testDeleteIfExists / testRenameIndex / testUpdateParentDir",
        "klog's index is a value that keeps no file open, so there is nothing to follow a rename.",
    ),
]
