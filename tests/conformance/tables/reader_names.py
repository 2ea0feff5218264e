"""Section 8: readers of files, and what they refuse."""

from __future__ import annotations

from itertools import product

from klog.errors import CorruptRecordError
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.legacy_runs import headers, offsets, written
from tests.conformance.log_files import Writer
from tests.conformance.readers_runs import (
    batches_of,
    end_on_disk,
    first_of,
    lasts,
    lasts_before_damage,
    searched_by_time,
)
from tests.conformance.segment_runs import searched
from tests.conformance.steps import LOAD, case, segments
from tests.support.batch_bytes import GZIP, LZ4, NONE, SNAPPY, TRANSACTIONAL, ZSTD, Record, batch

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
FORMATS = [
    (m, c) for m in (0, 1, 2) for c in (NONE, GZIP, SNAPPY, LZ4, ZSTD) if m == 2 or c != ZSTD
]
INT_MAX, LONG_MAX = (1 << 31) - 1, (1 << 63) - 1


def _two(magic: int, codec: int = GZIP) -> tuple[bytes, bytes]:
    """Write two batches of two records each: last offsets 1 and 3."""
    first = [Record(0, 15, b"a", b"1"), Record(1, 20, b"b", b"2")]
    second = [Record(2, 30, b"c", b"3"), Record(3, 40, b"d", b"4")]
    return written(magic, codec, first), written(magic, codec, second)


def _with(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


_INCOMPLETE = [
    row
    for magic, codec in FORMATS
    for first, second in [_two(magic, codec)]
    for label in [f"v{magic} {NAMES[codec]}"]
    # A plain message of v0 or v1 is a batch of its own: of the second two, one is whole.
    for whole in [[0, 1, 2] if magic < 2 and codec == NONE else [1]]
    for row in (
        Case("8 iteratorIgnoresIncompleteEntries", lasts, ((first + second)[:-5],), whole, label),
        Case(
            "8 FileLogInputStream testBatchIterationIncompleteBatch",
            lasts,
            ((first + second)[:-13],),
            whole,
            label,
        ),
        Case(
            "8 testIteratorWithLimits",
            lasts,
            (first, 0, len(first) - 1),
            whole[:-2],
            label,
        ),
    )
]

_REFUSED = [
    row
    for magic in (0, 1, 2)
    for first, second in [_two(magic)]
    for row in (
        Case(
            "8 iteratorRaisesOnTooSmallRecords",
            lasts_before_damage,
            (first + _with(second, 8, (9).to_bytes(4, "big")),),
            ([1], True),
            f"v{magic}",
        ),
        Case(
            "8 iteratorRaisesOnTooSmallRecords",
            lasts,
            (first + _with(second, 8, (9).to_bytes(4, "big")),),
            Refused(CorruptRecordError, "batch length 9 is below"),
            f"v{magic}, why",
        ),
        Case(
            "8 iteratorRaisesOnInvalidMagic",
            lasts_before_damage,
            (first + _with(second, 16, b"\x25"),),
            ([1], True),
            f"v{magic}",
        ),
        Case(
            "8 iteratorRaisesOnInvalidMagic",
            lasts,
            (first + _with(second, 16, b"\x25"),),
            Refused(CorruptRecordError, "magic 37"),
            f"v{magic}, why",
        ),
        # Kafka's limit is a consumer's `max.message.bytes`; klog has one of its own for all.
        Case(
            "8 iteratorRaisesOnTooLargeRecords",
            lasts,
            (
                _with(second, 8, MAX_BATCH_BYTES.to_bytes(4, "big")) + bytes(100),
                0,
                2 * MAX_BATCH_BYTES,
            ),
            Refused(CorruptRecordError, f"the limit is {MAX_BATCH_BYTES}"),
            f"v{magic}",
        ),
    )
]

_SEVERAL = [
    Record(0, 3241324, b"a", b"1"), Record(1, 234280, b"b", b"2"), Record(2, 238423489, b"c", None),
    Record(3, 897839, None, b"4"), Record(4, 8234020, b"e", None),
]  # fmt: skip
_PER_BATCH = [
    Case(
        "8 testBatchIterationWithMultipleRecordsPerBatch",
        batches_of,
        (written(magic, codec, _SEVERAL[:2]) + written(magic, codec, _SEVERAL[2:]),),
        [(record.offset, record.timestamp if magic else -1) for record in _SEVERAL]
        if magic < 2 and codec == NONE
        else [(1, 3241324 if magic else -1), (4, 238423489 if magic else -1)],
        f"v{magic} {NAMES[codec]}",
    )
    for magic, codec in FORMATS
]

_V2 = [
    Case(
        "8 testBatchIterationV2",
        headers,
        (
            batch(
                [Record(15, 3241324, b"a", b"1"), Record(16, 234280, b"b", b"2")],
                attributes=codec,
                leader_epoch=9832,
                producer_id=83843,
                producer_epoch=15,
                base_sequence=234,
            )
            + batch(
                [Record(27, 238423489, b"c", b"3"), Record(28, 897839, None, b"4"),
                 Record(29, 8234020, b"e")],
                attributes=codec | TRANSACTIONAL,
                leader_epoch=9832,
                producer_id=83843,
                producer_epoch=15,
                base_sequence=236,
            ),
            ("base_offset", "last_offset", "max_timestamp", "leader_epoch", "producer_id",
             "producer_epoch", "base_sequence", "count", "codec", "attributes"),
        ),
        [
            (15, 16, 3241324, 9832, 83843, 15, 234, 2, codec, codec),
            (27, 29, 238423489, 9832, 83843, 15, 236, 3, codec, codec | TRANSACTIONAL),
        ],
        NAMES[codec],
    )
    for codec in (NONE, GZIP, SNAPPY, LZ4, ZSTD)
]  # fmt: skip

TRUNCATE = "8 testTruncate / …SizeIsBiggerThanTargetSize"
ONE = len(b"".join(Writer().write(("plain", 1))))
ONES = [batch([Record(n, 0, b"", b"%d" % n)]) for n in range(3)]
FIFTY = batch([Record(50, 0, b"", b"50")])
LOG, SIZE = b"".join(ONES) + FIFTY, len(ONES[0])

_FILES = [
    *(
        Case(
            "8 testNextBatchSelectionWithMaxed/ZeroedParams",
            lasts,
            (LOG, at, at),
            [],
            f"at {at}",
        )
        for at in (0, LONG_MAX)
    ),
    # Kafka refuses a file beyond 2 GiB; klog's positions are 64 bits wide, so it reads on.
    Case("8 testOpenOversizeFile", first_of, (LOG, INT_MAX + 5), 0),
    *(
        Case(
            "8 testIterationOverPartialAndTruncation",
            lasts,
            (LOG + bytes(zeros),),
            [0, 1, 2, 50],
            f"{zeros} zeros",
        )
        for zeros in range(7)
    ),
    Case("8 testRead", lasts, (LOG, 0, len(LOG)), [0, 1, 2, 50], "whole"),
    Case("8 testRead", lasts, (LOG, 0, 10 * len(LOG)), [0, 1, 2, 50], "beyond the end"),
    Case("8 testRead", lasts, (LOG, SIZE, len(LOG)), [1, 2, 50], "from the second"),
    Case("8 testRead", lasts, (LOG, SIZE, 10 * len(LOG)), [1, 2, 50], "from the second, beyond"),
    Case("8 testRead", lasts, (LOG, SIZE, 2 * SIZE), [1], "the second only"),
    Case(
        "8 testSearch",
        searched,
        (0, LOG, [0, 1, 2, 3, 50, 51]),
        [
            (0, 0, 0),
            (SIZE, SIZE, 1),
            (2 * SIZE, 2 * SIZE, 2),
            (2 * SIZE, 3 * SIZE, 50),
            (3 * SIZE, 3 * SIZE, 50),
            None,
        ],
    ),
    # A log is truncated where a batch begins. A log that ends before the target is unchanged;
    # Kafka's file refuses, and Kafka's log does as klog.
    *(
        case(
            TRUNCATE,
            (*segments(3), LOAD, ("truncate", at), ("sizes",), ("offsets",)),
            [[ONE * len(left)], left],
            label,
        )
        for at, left, label in (
            (2, [0, 1], "to a position"),
            (3, [0, 1, 2], "to its size"),
            (9, [0, 1, 2], "beyond its size"),
        )
    ),
    # The zeros of a preallocated file are no log; what klog finds is what Kafka trims it to.
    Case("8 testPreallocateTrue / ClearShutdown", end_on_disk, (bytes(1 << 20),), (0, 0), "empty"),
    Case(
        "8 testPreallocateTrue / ClearShutdown",
        end_on_disk,
        (LOG + bytes((1 << 20) - len(LOG)),),
        (51, len(LOG)),
        "with data",
    ),
]

_BY_TIME = [
    Case(
        "8 testSearchForTimestamp",
        searched_by_time,
        (
            written(magic, codec, [Record(5, 10, b"k", b"v")])
            + written(magic, codec, [Record(6, 11, b"k", b"v")]),
            timestamp,
        ),
        offset if magic else None,
        f"v{magic} {NAMES[codec]} at {timestamp}",
    )
    for magic, codec in product((0, 1, 2), (NONE, GZIP))
    for timestamp, offset in ((9, 5), (10, 5), (11, 6), (12, None))
]
"""klog gives the offset; the leader epoch, which Kafka adds for v2, is in the batch's header."""

_MIXED = [(0, (0, 2, 3)), (1, (9, 11, 15)), (2, (16, 17, 22, 24))]
_CONVERSION = [
    Case(
        "8 testConversion",
        offsets,
        (
            b"".join(
                written(magic, codec, [Record(n, n, b"k%d" % n, b"hello %d" % n) for n in offsets])
                for magic, offsets in _MIXED
            ),
        ),
        [n for _, offsets in _MIXED for n in offsets],
        # klog converts nothing down: it gives the records of a mixed log, gaps and all.
        f"read, {NAMES[codec]}",
    )
    for codec in (NONE, GZIP, SNAPPY, LZ4)
]

CASES: list[Case] = [
    *_INCOMPLETE, *_REFUSED, *_PER_BATCH, *_V2, *_FILES, *_BY_TIME, *_CONVERSION,
]  # fmt: skip

NOT_APPLICABLE: list[NotApplicable] = [
    NotApplicable(
        "8 FileRecords testAppendProtectsFromOverflow",
        "It appends to an open file up to 2 GiB; klog writes no segment in place.",
    ),
]
