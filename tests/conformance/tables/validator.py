"""Kafka's LogValidatorTest (section 18): what a broker does to a batch that a producer sends.

klog takes in no batch of anyone's: its writers make batches of rows. So a case is held to klog
where the encoder decides it (offsets, timestamps, counts, sequences, codecs) or the reader does
(bytes that contradict themselves), and is not applicable where a broker judges or converts.
"""

from __future__ import annotations

from typing import Any

from klog.errors import CorruptRecordError
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.encode_runs import read, recoded, restamped, written, written_fields
from tests.conformance.legacy_runs import read as read_legacy
from tests.support.batch_bytes import CODECS, GZIP, LZ4, NONE, SNAPPY, Record, batch, compress
from tests.support.batch_bytes import record as record_bytes
from tests.support.legacy_bytes import message, plain, wrapper

NOW = 1_700_000_000_000
BASE = 1234567
PRODUCER: dict[str, Any] = {
    "producer_id": 1324, "producer_epoch": 10, "base_sequence": 984, "is_transactional": True,
    "leader_epoch": 40,
}  # fmt: skip
KEPT = "producer_id producer_epoch base_sequence leader_epoch base_timestamp max_timestamp"


def rows(*timestamps: int, first: int = 0) -> list[tuple[int, int, bytes, bytes]]:
    """Make records with these timestamps and consecutive offsets."""
    return [(first + i, timestamp, b"k%d" % i, b"v") for i, timestamp in enumerate(timestamps)]


AROUND_NOW = rows(NOW - 1, NOW + 1, NOW)
THREE = [Record(*row) for row in rows(1, 2, 3)]
LAST = THREE[-1]
ALL_AT_ZERO = b"".join(record_bytes(Record(0, 1, b"k", b"v"), 0, 1) for _ in range(20))

OFFSETS = [
    Case(
        "18 testValidationOfBatchesWithNonSequentialInnerOffsets",
        read,
        (
            batch(
                [Record(i, 1) for i in range(20)],
                attributes=GZIP,
                payload=compress(GZIP, ALL_AT_ZERO),
            ),
        ),
        Refused(CorruptRecordError, "does not fit its batch"),
        label="read",
    ),
    Case(
        "18 testValidationOfBatchesWithNonSequentialInnerOffsets",
        written,
        ([(0, 1, b"k", b"v")] * 20, {"codec": GZIP}),
        Refused(ValueError, "row 1: the offset is not above"),
        label="written",
    ),
    *[
        Case(
            "18 testAbsoluteOffsetAssignment / testRelativeOffsetAssignment (all)",
            written_fields,
            (rows(5, 6, 7, first=BASE), {"codec": codec}, "base_offset last_offset offsets"),
            (BASE, BASE + 2, [BASE, BASE + 1, BASE + 2]),
            label=f"codec {codec}, written",
        )
        for codec in CODECS
    ],
    *[
        Case(
            "18 testAbsoluteOffsetAssignment / testRelativeOffsetAssignment (all)",
            restamped,
            (rows(5, 6, 7), {"codec": codec}, BASE, 0, "base_offset last_offset offsets"),
            (BASE, BASE + 2, [BASE, BASE + 1, BASE + 2]),
            label=f"codec {codec}, stamped",
        )
        for codec in CODECS
    ],
    Case(
        "18 testNonIncreasingOffsetRecordBatchHasMetricsLogged",
        written,
        ([(0, 1, b"a", b""), (2, 1, b"b", b""), (3, 1, b"c", b"")], {}, 0, 2),
        Refused(ValueError, "offset 3 is not within 2 of base offset 0"),
    ),
]

COUNTS = [
    *[
        Case(
            "18 testBatchWithoutRecordsNotAllowed",
            written,
            ([], {"codec": codec}),
            Refused(ValueError, "a batch needs records"),
            label=f"codec {codec}",
        )
        for codec in CODECS
    ],
    Case("18 testRecordBatchWithCountOverrides", read, (batch(THREE),), [0, 1, 2]),
    *[
        Case(
            "18 testInconsistentCountAndOffset",
            read,
            (batch(THREE, last_offset_delta=delta),),
            Refused(CorruptRecordError, f"3 records at offset 0 and {delta} more"),
            label=f"last offset delta {delta}",
        )
        for delta in (0, -3)
    ],
    # A producer may not leave gaps; a log has them after compaction, so a reader takes them.
    Case(
        "18 testInconsistentCountAndOffset",
        read,
        (batch(THREE, last_offset_delta=15),),
        [0, 1, 2],
        label="last offset delta 15",
    ),
    *[
        Case(
            "18 testUnmatchedNumberOfRecords",
            read,
            (batch(THREE, last_offset_delta=delta, count=count),),
            Refused(CorruptRecordError, words),
            label=f"{delta}, {count}",
        )
        for delta, count, words in (
            (5, 6, "6 records in 30 bytes"),
            (1, 2, "2 records do not fill their batch"),
        )
    ],
    Case(
        "18 checkInvalidSequence",
        written,
        (rows(1), {**PRODUCER, "base_sequence": -2}),
        Refused(ValueError, "base sequence must be from -1"),
    ),
]

TIMES = [
    *[
        Case(
            f"18 {name} (v1, v2)",
            written_fields,
            (AROUND_NOW, {"codec": codec}, "count base_timestamp max_timestamp last_offset"),
            (3, NOW - 1, NOW + 1, 2),
            label=f"codec {codec}",
        )
        for name, codec in (("checkRecompression", GZIP), ("checkNonCompressed", NONE))
    ],
    *[
        Case(
            f"18 {name} (v1, v2)",
            written_fields,
            (AROUND_NOW, {**PRODUCER, "codec": codec}, KEPT),
            (1324, 10, 984, 40, NOW - 1, NOW + 1),
            label=f"codec {codec}, producer",
        )
        for name, codec in (("checkCompressed", GZIP), ("checkNonCompressed", NONE))
    ],
    # Rows that were read from format v1 have timestamps, those of v0 have none.
    Case(
        "18 testCreateTimeUpConversionV1ToV2 / FromV0",
        written_fields,
        (rows(NOW - 1, NOW + 1, NOW), {"codec": GZIP}, "max_timestamp last_offset count"),
        (NOW + 1, 2, 3),
        label="v1",
    ),
    Case(
        "18 testCreateTimeUpConversionV1ToV2 / FromV0",
        written_fields,
        (rows(-1, -1, -1), {"codec": GZIP}, "base_timestamp max_timestamp count timestamps"),
        (-1, -1, 3, [-1, -1, -1]),
        label="v0",
    ),
    *[
        Case(
            f"18 {name}",
            written_fields,
            (
                rows(*times),
                {"codec": codec, "append_time_ms": NOW},
                "base_timestamp max_timestamp timestamps last_offset",
            ),
            (times[0], NOW, [NOW] * 3, 2),
        )
        for name, codec, times in (
            ("checkLogAppendTimeWithoutRecompression", GZIP, (1234, 1235, 1236)),
            ("checkLogAppendTimeWithRecompression", GZIP, (-1, -1, -1)),
            ("checkLogAppendTimeNonCompressed", NONE, (1234, 1235, 1236)),
        )
    ],
]

BYTES = [
    # The wrapper's own checksum is right; only the last message inside says that its is 1.
    *[
        Case(
            "18 checkInvalidChecksum",
            read_legacy,
            (
                wrapper(
                    THREE, magic, codec, inner=plain(THREE[:2], magic) + message(LAST, magic, crc=1)
                ),
            ),
            Refused(CorruptRecordError, "the message says 0x00000001"),
            label=f"v{magic}, codec {codec}",
        )
        for magic in (0, 1)
        for codec in (GZIP, LZ4, SNAPPY)
    ],
    *[
        Case(
            "18 checkInvalidChecksum",
            read_legacy,
            (wrapper(THREE, magic, codec),),
            [(n, n + 1 if magic else -1, magic - 1, b"k%d" % n, b"v") for n in range(3)],
            label=f"v{magic}, codec {codec}, unbroken",
        )
        for magic in (0, 1)
        for codec in (GZIP, LZ4, SNAPPY)
    ],
    Case(
        "18 testControlRecordsNotCompressed",
        written,
        (rows(1), {**PRODUCER, "is_control": True, "codec": SNAPPY}),
        Refused(ValueError, "a control batch is never compressed"),
    ),
    Case(
        "18 testDifferentLevelDoesNotCauseRecompression",
        restamped,
        (AROUND_NOW, {"codec": GZIP, "level": 9}, BASE, 1, "base_offset count attributes"),
        (BASE, 3, GZIP),
    ),
    Case(
        "18 testDifferentCodecCausesRecompression",
        recoded,
        (AROUND_NOW, {"codec": GZIP}, LZ4),
        (LZ4, AROUND_NOW),
    ),
]

CASES = [*OFFSETS, *COUNTS, *TIMES, *BYTES]

_REQUEST = "A broker judges the batches of a request; klog takes in none, it makes them of rows"
_CONVERSION = "A broker converts what old producers send; klog takes in no batch and writes only v2"
_CLOCK = (
    "The bounds are a broker's topic configs and its clock at an append; klog's encoder has no "
    "clock and no topic, and takes any timestamp that the format can say"
)

NOT_APPLICABLE = [
    NotApplicable("18 checkOnlyOneBatch", f"{_REQUEST}."),
    NotApplicable("18 checkAllowMultiBatch", f"{_REQUEST}, and of format v2 only."),
    NotApplicable(
        "18 checkMismatchMagic",
        "Readers take a wrapper with messages of another magic, as Kafka's own do; only a broker "
        "that takes in a producer's batch refuses it.",
    ),
    NotApplicable("18 testInvalidCreateTime (none/gzip, v1/v2)", f"{_CLOCK}."),
    NotApplicable("18 testRecordWithPastTimestampIsRejected", f"{_CLOCK}."),
    NotApplicable("18 testRecordWithFutureTimestampIsRejected", f"{_CLOCK}."),
    NotApplicable("18 testInvalidTimestampExceptionHasBatchIndex", f"{_CLOCK}."),
    NotApplicable("18 testBatchWithInvalidRecordsAndInvalidTimestamp", f"{_CLOCK}."),
    NotApplicable(
        "18 checkNoKeyCompactedTopic",
        "Whether a topic is compacted is not the encoder's to know: a null key is a legal record.",
    ),
    NotApplicable("18 testOffsetAssignmentAfterUp/DownConversion (all pairs)", f"{_CONVERSION}."),
    NotApplicable(
        "18 testDownConversionOfTransactional/IdempotentRecordsNotPermitted", f"{_CONVERSION}."
    ),
    NotApplicable(
        "18 testControlRecordsNotAllowedFromClients",
        "There is no client that could send one: control batches are made by functions of their "
        "own, never from the rows of a write.",
    ),
    NotApplicable(
        "18 testZStdCompressedWithUnavailableIBPVersion",
        "There are no brokers of other versions that klog would have to get along with.",
    ),
    NotApplicable(
        "18 testInvalidRecordExceptionHasBatchIndex",
        f"{_REQUEST}; a row that cannot be written is named by its number.",
    ),
]
