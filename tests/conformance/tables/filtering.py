"""MemoryRecordsTest's cases of filterTo, section 5, and OffsetMapTest, section 14.

What a filter keeps is said by signs, one a record: `x` stays, `.` goes. klog names the batches that
have to stay empty by their last offsets; Kafka's filter answers RETAIN_EMPTY, DELETE_EMPTY or
DELETE for each.
"""

from __future__ import annotations

from tests.conformance import cleaner_runs as runs
from tests.conformance.case import Case, NotApplicable
from tests.support.batch_bytes import GZIP, LOG_APPEND_TIME, TRANSACTIONAL, Record, batch
from tests.support.legacy_bytes import plain, wrapper

_BOUNDS = ("base_offset", "last", "max_timestamp", "count")


def _records(*rows: tuple[int, int, bytes | None]) -> list[Record]:
    """Make records of offset, time and key."""
    return [Record(offset, time, key, b"v") for offset, time, key in rows]


_TWO = _records((3, 10, None), (4, 12, None))
_EMPTY = batch(
    base_offset=3,
    max_timestamp=7,
    attributes=TRANSACTIONAL,
    producer_id=23,
    producer_epoch=5,
    base_sequence=10,
)
_FILTERED = (
    _records((0, 10, None)),
    _records((1, 11, b"1"), (2, 12, None)),
    _records((3, 20, b"4"), (4, 15, None), (5, 15, b"5")),
    _records((6, 16, b"6")),
)
_SIGNS = ".x.x.xx"
_PRODUCED = (
    batch(_records((0, 10, None), (1, 11, b"1"), (2, 12, None)))
    + batch(
        _records((3, 20, None), (4, 15, b"4"), (5, 15, b"5")),
        producer_id=23,
        producer_epoch=5,
        base_sequence=10,
    )
    + batch(
        _records((6, 16, b"6"), (7, 15, b"7"), (8, 15, None)),
        attributes=TRANSACTIONAL,
        producer_id=99384,
        producer_epoch=234,
        base_sequence=15,
    )
)
_PRODUCERS = ("count", "base_offset", "last", "producer_id", "producer_epoch", "base_sequence")
_COMPACTED = _records((5, 10, None), (8, 11, b"1"), (10, 12, None))

CASES = [
    Case(
        "5 testFilterToPreservesPartitionLeaderEpoch",
        runs.filtered,
        (batch(_records((0, 1, None), (1, 2, b"k")), leader_epoch=67), ".x", ("leader_epoch",)),
        [(67,)],
    ),
    Case(
        "5 testFilterToEmptyBatchRetention",
        runs.filtered,
        (
            batch(
                _TWO,
                attributes=TRANSACTIONAL,
                producer_id=23,
                producer_epoch=5,
                base_sequence=10,
            ),
            "..",
            ("size", *_BOUNDS, "base_sequence", "attributes"),
            (4,),
        ),
        [(61, 3, 4, 12, 0, 10, TRANSACTIONAL)],
    ),
    Case(
        "5 testEmptyBatchRetention",
        runs.filtered,
        (_EMPTY, "", ("size", *_BOUNDS), (3,)),
        [(61, 3, 3, 7, 0)],
    ),
    Case("5 testEmptyBatchDeletion", runs.filtered, (_EMPTY, "", _BOUNDS), []),
    *(
        Case(
            "5 testFilterToBatchDiscard",
            runs.filtered,
            (
                encode(_records((0, 10, b"1")))
                + encode(_records((1, 11, None), (2, 12, b"2")))
                + encode(_records((3, 20, b"4"), (4, 15, None), (5, 15, b"5")))
                + encode(_records((6, 16, b"6"))),
                signs,
                ("last",),
            ),
            [(last,) for last in lasts],
            label,
        )
        for label, encode, signs, lasts in (
            ("v2", batch, "x..xxx.", (0, 5)),
            ("wrappers", lambda own: wrapper(own, 1, GZIP), "x..xxx.", (0, 5)),
            ("plain", lambda own: plain(own, 1), "xx.xxx.", (0, 1, 3, 4, 5)),
        )
    ),
    Case(
        "5 testFilterToAlreadyCompactedLog",
        runs.filtered,
        (batch(_COMPACTED, base_offset=0), ".x.", ("base_offset", "last", "offsets", "times")),
        [(0, 10, [8], [11])],
        "v2",
    ),
    # Kafka's wrapper has one offset, that of the record; klog's batch v2 keeps the last as well.
    Case(
        "5 testFilterToAlreadyCompactedLog",
        runs.filtered,
        (wrapper(_COMPACTED, 1, GZIP), ".x.", ("base_offset", "last", "offsets", "times")),
        [(8, 10, [8], [11])],
        "wrapper",
    ),
    Case(
        "5 testFilterToPreservesProducerInfo",
        runs.filtered,
        (_PRODUCED, ".x..xxxx.", (*_PRODUCERS, "attributes", "offsets")),
        [
            (1, 0, 2, -1, -1, -1, 0, [1]),
            (2, 3, 5, 23, 5, 10, 0, [4, 5]),
            (2, 6, 8, 99384, 234, 15, TRANSACTIONAL, [6, 7]),
        ],
    ),
    Case(
        "5 testFilterTo",
        runs.filtered,
        (b"".join(map(batch, _FILTERED)), _SIGNS, _BOUNDS),
        [(1, 2, 11, 1), (3, 5, 20, 2), (6, 6, 16, 1)],
        "v2",
    ),
    # As with v2, and unlike Kafka's wrappers, a rewritten batch keeps its last offset.
    Case(
        "5 testFilterTo",
        runs.filtered,
        (b"".join(wrapper(own, 1, GZIP) for own in _FILTERED), _SIGNS, ("last", "magic")),
        [(2, 2), (5, 2), (6, 1)],
        "wrappers",
    ),
    Case(
        "5 testFilterTo",
        runs.filtered,
        (b"".join(plain(own, 1) for own in _FILTERED), _SIGNS, ("last", "max_timestamp")),
        [(1, 11), (3, 20), (5, 15), (6, 16)],
        "plain",
    ),
    Case(
        "5 testFilterToPreservesLogAppendTime",
        runs.filtered,
        (
            batch(_records((0, 10, None)), attributes=LOG_APPEND_TIME, max_timestamp=99)
            + batch(
                _records((1, 11, b"1"), (2, 12, None)),
                attributes=LOG_APPEND_TIME,
                max_timestamp=99,
            ),
            ".x.",
            ("attributes", "max_timestamp", "times"),
        ),
        [(LOG_APPEND_TIME, 99, [99])],
    ),
    # Kafka's maps have 48 bytes a key; klog's has free slots, and room to grow.
    Case("14 testBasicValidation", runs.placed, (10, 10, 1 << 18), (10, True), "10"),
    Case("14 testBasicValidation", runs.placed, (5000, 9000, 1 << 20), (5000, True), "5000"),
]

NOT_APPLICABLE = [
    NotApplicable(
        "5 testFilterToWithUndersizedBuffer",
        "It gives the filter a buffer that its output outgrows; klog hands over each piece as it "
        "is made.",
    ),
    NotApplicable(
        "14 testGetWhenFull",
        "A map without a free slot, in which a search has to end all the same; klog's is never "
        "more than two thirds full, for it gives up keys before.",
    ),
    *(
        NotApplicable(
            f"14 {name}",
            "How a broker's thread empties its one map for the next log, reports its filling and "
            "says how far a partial cleaning came; klog makes a map for each task and always "
            "reaches the end.",
        )
        for name in ("testClear", "testLatestOffset / testUpdateLatestOffset", "testUtilization")
    ),
]
