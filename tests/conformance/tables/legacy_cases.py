"""Sections 5 and 7: message formats v0 and v1, and what the three formats share.

Kafka's tests of these sections write with its builder and read back. klog writes format v2 only, so
the bytes are those of the tests' own encoders, and what is held to Kafka is the reading.
"""

from __future__ import annotations

from itertools import product

from klog.errors import CorruptRecordError
from klog.logformat.producers.control_records import COMMIT
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.legacy_runs import (
    accepted_changes,
    controls,
    first_checksum,
    headers,
    iterated,
    moved,
    offsets,
    read,
    times,
    written,
)
from tests.support import batch_bytes
from tests.support.batch_bytes import GZIP, LOG_APPEND_TIME, LZ4, NONE, SNAPPY, ZSTD, Record
from tests.support.legacy_bytes import message, packed, plain, wrapper

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
LEADER_CHANGE = 2
FORMATS = [
    (m, c) for m in (0, 1, 2) for c in (NONE, GZIP, SNAPPY, LZ4, ZSTD) if m == 2 or c != ZSTD
]

SIX = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (None, b"4"), (b"d", None), (None, None)]
TWO = [Record(0, 283843, b"key1", b"value1"), Record(1, 1234, b"key2", b"value2")]
THREE = [Record(5, 1000, b"k1", b"v1"), Record(6, 1001, b"k2", b"v2"), Record(7, 999, b"k3", b"v3")]
NUMBERED = [Record(n, n + 1, b"%d" % n, b"v") for n in range(3)]


def _six(first: int) -> list[Record]:
    return [Record(first + n, n + 1, key, value) for n, (key, value) in enumerate(SIX)]


def as_read(records: list[Record], magic: int) -> list[tuple[object, ...]]:
    """Return what a reader sees: v0 has no timestamps."""
    time = [(-1, -1) if magic == 0 else (record.timestamp, 0) for record in records]
    return [
        (record.offset, *t, record.key, record.value)
        for record, t in zip(records, time, strict=True)
    ]


def _iterator(magic: int, codec: int, first: int) -> list[Case]:
    """Make the rows of testIterator for one format: the records, and the headers."""
    label = f"v{magic} {NAMES[codec]} from {first}"
    records = _six(first)
    names = ("last_offset", "max_timestamp", "leader_epoch", "producer_id", "producer_epoch",
             "base_sequence", "count")  # fmt: skip
    fields = {"leader_epoch": 998, "producer_id": 134234, "producer_epoch": 28,
              "base_sequence": 777 + first} if magic == 2 else {}  # fmt: skip
    data = written(magic, codec, records, **fields)
    none = (-1, -1, -1, -1)
    if magic == 2:
        expected = [(first + 5, 6, 998, 134234, 28, 777 + first, 6)]
    elif codec:
        # Kafka has no count of a wrapper either: klog says -1, for only opening it tells.
        expected = [(first + 5, 6 if magic else -1, *none, -1)]
    else:
        expected = [(first + n, n + 1 if magic else -1, *none, 1) for n in range(6)]
    return [
        Case("5 testIterator", read, (data,), as_read(records, magic), f"{label}, records"),
        Case("5 testIterator", headers, (data, names), expected, f"{label}, headers"),
    ]


_ITERATOR = [case for (m, c), first in product(FORMATS, (0, 57)) for case in _iterator(m, c, first)]

_CHECKSUMS = [
    Case("5 testChecksum", first_checksum, (magic, codec, TWO), crc, f"v{magic} {NAMES[codec]}")
    for magic, codec, crc in (
        (0, NONE, 1978725405),
        (0, LZ4, 66944826),
        (1, NONE, 109425508),
        (1, LZ4, 1407303399),
        (2, NONE, 3851219455),
        (2, LZ4, 2745969314),
    )
]

_FIELDS = [
    Case(
        "7 LegacyRecordTest.testFields",
        iterated,
        (magic, codec, [Record(7, timestamp, key, value)]),
        as_read([Record(7, timestamp, key, value)], magic),
        f"v{magic} {NAMES[codec]} time {timestamp} "
        + " ".join("null" if content is None else f"{len(content)} B" for content in (key, value)),
    )
    for magic, codec, timestamp, key, value in product(
        (0, 1),
        (NONE, GZIP, SNAPPY, LZ4),
        (-1, 0, 1),
        (None, b"", b"key", b"k" * 1000),
        (None, b"", b"value", b"v" * 1000),
    )
]

_CHANGED = [
    Case(
        "7 LegacyRecordTest.testChecksum",
        accepted_changes,
        (written(magic, codec, [Record(0, 1, b"key", b"value")]), 16, 69),
        [],
        f"v{magic} {NAMES[codec]}",
    )
    for magic, codec in product((0, 1), (NONE, GZIP, SNAPPY, LZ4))
]

_WRAPPERS = [
    *(
        Case(f"7 {name}", read, (data,), Refused(CorruptRecordError, words), f"v{magic}")
        for magic in (0, 1)
        for name, data, words in (
            (
                "testCompressedIterationWithNullValue",
                message(Record(0, 1), magic, attributes=GZIP),
                "without a value",
            ),
            (
                "testCompressedIterationWithEmptyRecords",
                wrapper([], magic, GZIP, offset=0, inner=b""),
                "without messages",
            ),
            (
                "testZStdCompressionTypeWithV0OrV1",
                message(
                    Record(2, 1, None, packed(plain(NUMBERED, magic), magic, ZSTD)),
                    magic,
                    attributes=ZSTD,
                ),
                "do not have the codec zstd",
            ),
        )
    ),
    *(
        Case(
            "7 testIsValidWithTooSmallBuffer / ChecksumMismatch",
            read,
            (bytes(8) + size.to_bytes(4, "big") + bytes(20),),
            Refused(CorruptRecordError, f"batch length {size} is below 14"),
            f"{size} bytes",
        )
        for size in (2, 4)
    ),
    Case(
        "7 testIsValidWithTooSmallBuffer / ChecksumMismatch",
        read,
        (message(Record(0, 1, b"k", b"v"), 1, crc=2),),
        Refused(CorruptRecordError, "CRC-32 is"),
        "checksum",
    ),
    Case(
        "7 testSetLastOffsetCompressed",
        moved,
        (wrapper(NUMBERED, 1, GZIP), 500),
        [498, 499, 500],
    ),
    *(
        Case(
            "7 testIterateCompressedRecordWithWrapperOffsetZero",
            offsets,
            (wrapper(NUMBERED, magic, GZIP, offset=0),),
            [0, 1, 2],
            f"v{magic}",
        )
        for magic in (0, 1)
    ),
    Case(
        "7 testInvalidWrapperOffsetV1",
        offsets,
        (wrapper(NUMBERED, 1, GZIP, offset=1),),
        Refused(CorruptRecordError, "inner offset 2 in a wrapper of offset 1"),
    ),
    Case(
        "7 testSetLogAppendTimeV1",
        times,
        (wrapper(NUMBERED, 1, GZIP, attributes=LOG_APPEND_TIME, timestamp=15),),
        [(15, 1)] * 3,
    ),
    Case(
        "7 testSetCreateTimeV1",
        times,
        (wrapper(NUMBERED, 1, GZIP, timestamp=15),),
        [(1, 0), (2, 0), (3, 0)],
    ),
]

HORIZON = 1073741823
_READ_ONLY = [
    *(
        Case(
            "5 testUnsupportedCompress",
            read,
            (wrapper(NUMBERED, magic, ZSTD),),
            Refused(CorruptRecordError, "do not have the codec zstd"),
            f"v{magic}",
        )
        for magic in (0, 1)
    ),
    *(
        Case(
            "5 testNextBatchSize",
            headers,
            (data[:size], ("last_offset",)),
            [(2,)] if size == len(data) else [],
            f"v{magic}, {size} bytes",
        )
        for magic in (0, 1, 2)
        for data in [written(magic, LZ4, NUMBERED)]
        for size in (1, 12, 17, len(data) - 1, len(data))
    ),
    *(
        Case(
            "5 testNextBatchSize",
            read,
            (data[:at] + byte + data[at + 1 :],),
            Refused(CorruptRecordError, words),
            f"v{magic}, {words}",
        )
        for magic in (0, 1, 2)
        for data in [written(magic, LZ4, NUMBERED)]
        for at, byte, words in ((16, b"\x0a", "magic 10"), (11, b"\0", "batch length 0"))
    ),
    # What its builder makes is read: the numbers in the value are the coordinator's own.
    Case(
        "5 testBuildEndTxnMarker",
        controls,
        (batch_bytes.marker(983, 73, COMMIT, 13),),
        [(983, COMMIT)],
    ),
    Case(
        "5 testBuildLeaderChangeMessage",
        controls,
        (batch_bytes.control(983, LEADER_CHANGE),),
        [(983, LEADER_CHANGE)],
    ),
    # klog does not filter yet: what the rewrite must mean to a reader is what is held here.
    Case(
        "5 testBaseTimestampToDeleteHorizonConversion",
        times,
        (
            batch_bytes.batch(
                [Record(0, 5, b"0", b"0"), Record(1, 10, b"1"), Record(2, 15, b"2", b"2")],
                attributes=batch_bytes.DELETE_HORIZON,
                base_timestamp=HORIZON,
                max_timestamp=15,
            ),
        ),
        [(5, 0), (10, 0), (15, 0)],
    ),
]

CASES: list[Case] = [
    *_ITERATOR, *_CHECKSUMS, *_FIELDS, *_CHANGED, *_WRAPPERS, *_READ_ONLY,
]  # fmt: skip

_NO_LEGACY_WRITING = "It changes a batch of format v0 or v1 in place, and klog writes only v2."
NOT_APPLICABLE: list[NotApplicable] = [
    NotApplicable(
        "5 testHasRoomForMethodWithHeaders",
        "It asks a builder how much room its buffer has left; klog encodes whole batches.",
    ),
    *(
        NotApplicable(f"7 {name}", _NO_LEGACY_WRITING)
        for name in (
            "testSetNoTimestampTypeNotAllowed",
            "testSetLogAppendTimeNotAllowedV0 / testSetCreateTimeNotAllowedV0",
            "testSetPartitionLeaderEpochNotAllowedV0/V1",
        )
    ),
]
