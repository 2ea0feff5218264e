"""Kafka's DefaultRecordBatchTest (section 3)."""

from __future__ import annotations

from itertools import product
from typing import Any

from klog.errors import CorruptRecordError
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.producers.control_records import COMMIT
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.encode_runs import (
    marker_read,
    read,
    read_unchecked,
    record_sizes,
    restamped,
    round_trip,
    size_difference,
    written,
    written_empty_fields,
    written_fields,
)
from tests.support.batch_bytes import CODECS, GZIP, NONE, Record, batch, plain

MAX = (1 << 31) - 1
PRODUCER: dict[str, Any] = {"producer_id": 23423, "producer_epoch": 145, "base_sequence": 983}
BATCH = 1234567
TWO = [(BATCH, 1, b"a", b"v"), (BATCH + 1, 2, b"b", b"v")]
THREE = [(0, 1, b"a", b"1"), (1, 2, b"b", b"2"), (2, 3, b"c", b"3")]
THREE_RECORDS = [Record(*row) for row in THREE]


def overwritten(data: bytes, at: int, new: bytes) -> bytes:
    """Put other bytes into a batch, and leave its CRC unchanged."""
    return data[:at] + new + data[at + len(new) :]


WRITTEN_EMPTY = [
    Case(
        "3 testWriteEmptyHeader",
        written_empty_fields,
        (
            {
                **PRODUCER,
                "leader_epoch": 15,
                "append_time_ms": 9999 if append_time else None,
                "is_transactional": transactional,
                "is_control": control,
            },
            15,
            22,
            9999,
            "base_offset last_offset leader_epoch producer_id producer_epoch base_sequence"
            " last_sequence base_timestamp max_timestamp count attributes",
        ),
        (15, 37, 15, 23423, 145, 983, 983 + 22, -1, 9999, 0,
         8 * append_time + 16 * transactional + 32 * control),
        label=f"append time {append_time} transactional {transactional} control {control}",
    )
    for append_time, transactional, control in product((False, True), repeat=3)
]  # fmt: skip

BUILT = [
    Case(
        "3 buildDefaultRecordBatch",
        written_fields,
        (TWO, {}, "base_offset last_offset max_timestamp producer_id producer_epoch base_sequence"
         " last_sequence count"),
        (BATCH, BATCH + 1, 2, -1, -1, -1, -1, 2),
    ),
    Case(
        "3 buildDefaultRecordBatchWithProducerId",
        written_fields,
        (TWO, PRODUCER, "producer_id producer_epoch base_sequence last_sequence"),
        (23423, 145, 983, 984),
    ),
    Case(
        "3 buildDefaultRecordBatchWithSequenceWrapAround",
        written_fields,
        (THREE, {**PRODUCER, "base_sequence": MAX - 1}, "sequences last_sequence"),
        ([MAX - 1, MAX, 0], 0),
    ),
    Case(
        "3 testSizeInBytes",
        size_difference,
        ([
            (0, 10, b"foo", b"value"),
            (1, 11, None, b"value"),
            (2, 12, b"key", None),
            (3, 13, b"key", b"v", (("a", b"1"), ("b", None))),
        ],),
        0,
    ),
    Case(
        "3 testSkipKeyValueIteratorCorrectness",
        record_sizes,
        ([
            (0, 1, b"a", b"1"),
            (1, 2, b"b", None),
            (2, 3, None, b"3"),
            (3, 4, None, None),
            (4, 1000, b"abc", bytes(200 << 10)),
            (5, 9999, b"abc", b"0", (("k1", b"v1"), ("k2", None))),
        ],),
        [9, 8, 8, 7, 15 + 204800, 23],
    ),
    Case("3 testIncrementSequence", increment_sequence, (5, 5), 10, label="5 and 5"),
    Case("3 testIncrementSequence", increment_sequence, (MAX, 1), 0, label="MAX and 1"),
    Case("3 testIncrementSequence", increment_sequence, (MAX - 5, 10), 4, label="MAX-5 and 10"),
    Case("3 testDecrementSequence", increment_sequence, (5, -5), 0, label="5 and 5"),
    Case("3 testDecrementSequence", increment_sequence, (0, -1), MAX, label="0 and 1"),
]  # fmt: skip

DAMAGED = [
    Case(
        "3 testInvalidRecordSize",
        read,
        (overwritten(plain(0), 8, (10).to_bytes(4, "big")),),
        Refused(CorruptRecordError, "batch length 10 is below 49"),
    ),
    Case(
        "3 testInvalidCrc",
        read,
        (overwritten(batch(THREE_RECORDS), 23, (23).to_bytes(4, "big")),),
        Refused(CorruptRecordError, "CRC-32C"),
    ),
    *[
        Case(
            "3 testInvalidRecordCountTooMany/TooLittle (NonCompressed, Compressed)",
            read_unchecked,
            (batch(THREE_RECORDS, count=count, last_offset_delta=9, attributes=codec),),
            Refused(CorruptRecordError, words),
            label=f"{count} of 3, codec {codec}",
        )
        for count, words in ((5, "5 records in 27 bytes"), (2, "2 records do not fill"))
        for codec in (NONE, GZIP)
    ],
]

CHANGED = [
    Case(
        "3 testSetLastOffset",
        restamped,
        (THREE, {}, 500 - 2, None, "base_offset last_offset offsets"),
        (498, 500, [498, 499, 500]),
    ),
    Case(
        "3 testSetPartitionLeaderEpoch",
        restamped,
        (THREE, {}, None, 500, "leader_epoch base_offset"),
        (500, 0),
    ),
    # klog knows the append time when it writes, and changes nobody's batch to it.
    Case(
        "3 testSetLogAppendTime",
        written_fields,
        (THREE, {"append_time_ms": 15}, "max_timestamp timestamps types"),
        (15, [15] * 3, [1] * 3),
    ),
    # There are two types of timestamp to ask for; what comes next to none is an append time of -1.
    Case(
        "3 testSetNoTimestampTypeNotAllowed",
        written,
        (THREE, {"append_time_ms": -1}),
        Refused(ValueError, "append_time_ms must be from 0"),
    ),
    Case(
        "3 testReadAndWriteControlBatch",
        marker_read,
        (COMMIT, 15),
        ([(0, 10, COMMIT)], 0x30, 15),
    ),
]

MANY = [(i, 1000 + i % 3, b"k%d" % i if i % 4 else None, b"v" * i, ()) for i in range(40)]
ITERATED = [
    Case(
        "3 testStreamingIteratorConsistency",
        round_trip,
        (MANY, {"codec": codec}),
        MANY,
        label=f"codec {codec}",
    )
    for codec in CODECS
]

CASES = [*WRITTEN_EMPTY, *BUILT, *DAMAGED, *CHANGED, *ITERATED]
NOT_APPLICABLE: list[NotApplicable] = []
