"""LogCleaner: what a cleaning leaves of records and producers (section 21).

Where klog has it otherwise: a cleaning always reaches its end, for a map that is full gives up keys
and another pass takes them; transaction indexes are not written, the markers decide.
"""

from __future__ import annotations

import struct

from klog.errors import CorruptRecordError
from tests.conformance import cleaner_runs as cleaner
from tests.conformance import protocol_runs as runs
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.cleaner_runs import DAY_MS, LARGE, LONG_MAX, ROLL, cleaning_case
from tests.conformance.legacy_runs import offsets
from tests.support.batch_bytes import GZIP, Record, batch, plain
from tests.support.legacy_bytes import wrapper

_TWO = plain(0) + plain(1)
_CORRUPT = (
    "21 testMessageLargerThanMaxMessageSizeWithCorruptHeader / "
    "testCorruptMessageSizeLargerThanBytesAvailable"
)
_WRAPPED = "21 testCleanCorruptMessageSet / testClientHandlingOfCorruptMessageSet"
_INNER = [Record(n, -1, b"%d" % n, b"v") for n in (7, 8, 9)]


def _large(offset: int) -> bytes:
    return batch([Record(offset, 0, b"1", bytes(1 << 20))])


def _wrapped(offset: int) -> bytes:
    own = [Record(offset + n, -1, b"%d" % n, b"v") for n in range(3)]
    return wrapper(own, 1, GZIP, inner_magic=0)


_RECORDS = [
    cleaning_case(
        "testCleanSegments",
        [[0, 2, 4, 6, 8, 10, 11, 1, 3, 5, 7, 9]],
        *(step for n in range(0, 12, 3) for step in (("plain", n, n + 1, n + 2), ROLL)),
        ("plain", 1, 3, 5, 7, 9),
        ROLL,
        ("clean", "keys"),
    ),
    cleaning_case(
        "testLargeMessage / testMessageLargerThanMaxMessageSize",
        [[1, 2]],
        ("raw", _large),
        ("raw", _large),
        ("plain", 2),
        ROLL,
        ("clean", "offsets"),
    ),
    # As many reads as klog's: what a broker calls invalid has no key, and is in no map.
    Case("21 testLogCleanerStats", cleaner.kept_of, (2, 0, 1, 0, 1, 0), (5, 2)),
    cleaning_case(
        "testCleaningWithDeletes",
        [[1, 3, 0, 2, 4, 5, 6], [1, 3, 5, 6]],
        ("plain", 0, 1, 2, 3, 4),
        ROLL,
        *(("plain", key, {"value": None}) for key in (0, 2, 4)),
        ("plain", 5, 6),
        ROLL,
        ("clean", "keys"),
        ("clean", "keys", {"now": LONG_MAX}),
    ),
    cleaning_case(
        "testCleaningWithUnkeyedMessages",
        [[[4, 5], [4, 5]]],
        ("plain", None, None),
        ("plain", None, None),
        ROLL,
        ("plain", 4),
        ("plain", 5),
        ROLL,
        ("clean", "offsets", "lasts"),
    ),
    Case(
        "21 testCleaningWithUnkeyedMessages", cleaner.kept_of, (0, None, None, 1), (3, 1), "count"
    ),
    # All of a log's keys cannot go where each one's last record stays: these have none.
    cleaning_case(
        "testCleanSegmentsRetainingLastEmptyBatch",
        [[4]],
        *(step for _ in range(4) for step in (("plain", None), ROLL)),
        ("plain", None),
        ROLL,
        ("clean", "lasts"),
    ),
    cleaning_case(
        "testCleaningWithUncleanableSection",
        [[[2, 3, 4, 5, 6, 7], [0, 2, 4]]],
        ("plain", 1),
        ("plain", 2),
        ROLL,
        *(("plain", key) for key in (1, 2)),
        ROLL,
        *(("plain", key) for key in (1, 2, 1, 2)),
        ("clean", "offsets", "per segment"),
    ),
    cleaning_case(
        "testCleanTombstone",
        [[0], [0, 1], [1]],
        ("plain", 1, {"value": None, "time": 1}),
        ROLL,
        ("clean", "offsets", {"now": LARGE}),
        ("plain", 2),
        ROLL,
        ("clean", "lasts", {"now": LARGE + DAY_MS - 1, "dirty_from": 2}),
        ("clean", "offsets", {"now": LARGE + DAY_MS}),
        label="horizon",
    ),
    cleaning_case(
        "testCleaningBeyondMissingOffsets",
        [[[2**31 + 5, 2**31 + 6], 2]],
        ("plain", 1),
        ("skip", 2**31),
        ("plain", 1),
        ROLL,
        ("skip", 2**31 + 5),
        ("plain", 1),
        ("plain", 2),
        ROLL,
        ("clean", "offsets", "count"),
    ),
    Case(_WRAPPED, offsets, (wrapper(_INNER, 1, GZIP, inner_magic=0),), [7, 8, 9], "read"),
    # Kafka makes another wrapper with messages of its own format; klog makes a batch v2.
    Case(
        _WRAPPED,
        cleaner.log,
        (("raw", _wrapped), ("plain", 1), ROLL, ("clean", "keys", "magics")),
        [[[0, 2, 1], [2, 2]]],
        "clean",
    ),
    Case(
        _CORRUPT,
        runs.scanned,
        (_TWO[:16] + b"\xff" + _TWO[17:],),
        Refused(CorruptRecordError, "magic 255"),
        "header",
    ),
    # A batch that reaches past what is there ends the scan: in the active segment it is a torn
    # append, in any other the reader that knows the file's end refuses it.
    Case(
        _CORRUPT,
        runs.scanned,
        (_TWO[:8] + struct.pack(">i", 1024) + _TWO[12:],),
        [],
        "size",
    ),
]

_PRODUCERS = [
    cleaning_case(
        "testDuplicateCheckAfterCleaning",
        [
            [[2, 5, 7], [2, 3, 1, 4], [1, 3, 6, 7], {1: 2, 2: 2, 3: 1}],
            (0, 2),
            (6, 7),
            (3, 5),
            [[2, 5, 7, 8], [3, 1, 4, 2], [3, 6, 7, 8], {1: 2, 2: 2, 3: 1, 4: 0}],
            (0, 2),
        ],
        ("idempotent", 1, 1, 2, 3),
        ("idempotent", 2, 3, 1, 4),
        ("idempotent", 3, 1, 4),
        ROLL,
        ("clean", "lasts", "keys", "offsets", "sequences"),
        ("duplicate", 1, 0, 2),
        ("duplicate", 3, 0, 1),
        ("duplicate", 2, 0, 2),
        ("idempotent", 4, 2),
        ROLL,
        ("clean", "lasts", "keys", "offsets", "sequences", {"dirty_from": 0}),
        ("duplicate", 1, 0, 2),
    ),
    cleaning_case(
        "testLogCleanerRetainsProducerLastSequence",
        [[[1, 3, 4], {1: 0, 2: 1, 3: 0}, [0, 1], [3, 4]]],
        ("plain", 0),
        ("idempotent", 1, 0),
        ("idempotent", 2, 0),
        ("idempotent", 3, 0),
        ("idempotent", 2, 1),
        ROLL,
        ("clean", "lasts", "sequences", "keys", "offsets"),
    ),
    cleaning_case(
        "testLogCleanerRetainsLastSequenceEvenIfTransactionAborted",
        [[[2, 3], {1: 2}, [], [3]], [[3, 5], {1: 4}, [1, 5], [3, 4, 5]]],
        ("transactional", 1, 1),
        ("transactional", 1, 2, 3),
        ("abort", 1),
        ROLL,
        ("clean", "lasts", "sequences", "keys", "offsets"),
        ("transactional", 1, 1, 5),
        ROLL,
        ("clean", "lasts", "sequences", "keys", "offsets", {"dirty_from": 0}),
    ),
    cleaning_case(
        "testEmptyBatchRemovalWithSequenceReuse",
        [[[1, 3, 4, 5], [1, 2, 3, 4, 5]], [[3, 4, 5], [2, 3, 4, 5]]],
        ("transactional", 1, 1),
        ("commit", 1),
        ("transactional", 1, 2, {"sequence": 0}),
        ("commit", 1),
        ("plain", 1),
        ("plain", 2),
        ROLL,
        ("clean", "offsets", "lasts"),
        ("two_pass", "offsets", "lasts"),
    ),
]

CASES = [*_RECORDS, *_PRODUCERS]

_PARTIAL = (
    "A cleaning that ends where its offset map is full; klog's always reaches its end, for a full "
    "map gives up keys and another pass over the partition takes them."
)

NOT_APPLICABLE = [
    NotApplicable(
        "21 testSizeTrimmedForPreallocatedAndCompactedTopic",
        "Preallocated files, cut when they are closed; klog puts whole files of the right size.",
    ),
    NotApplicable("21 testMultiPassSegmentCleaningWithAbortedTransactions", _PARTIAL),
    NotApplicable("21 testPartialSegmentClean", _PARTIAL),
    NotApplicable("21 testBuildOffsetMap / …FakeLarge / testBuildPartialOffsetMap", _PARTIAL),
    NotApplicable(
        "21 testSegmentWithOffsetOverflow",
        "A segment whose offsets no index can say, split by the broker that finds it; klog groups "
        "none so large, and a log that has one is not split.",
    ),
    NotApplicable(
        "21 testRecoveryAfterCrash",
        "The renames by which .cleaned and .swap files take their place; klog renames nothing, one "
        "commit replaces segments.",
    ),
]
