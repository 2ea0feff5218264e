"""Kafka's DefaultRecordTest (section 4): one record, and what makes it no record.

"(+Partial)" is Kafka's iterator that steps over keys and values: here a decode of other columns.
"""

from __future__ import annotations

from typing import Any

from klog.errors import CorruptRecordError
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.encode_runs import read_record, round_trip, size_difference, written_fields
from tests.logformat.reference_decoder import ALL
from tests.support.batch_bytes import Record, nullable, record, varint

PRODUCER: dict[str, Any] = {"producer_id": 23423, "producer_epoch": 145, "base_sequence": 723}
HEADERS = (("foo", b"value"), ("bar", None), ('"A\u00ea\u00f1\u00fcC"', b"value"))
SERDE = {
    "hi there": (47, 1323, b"hi", b"there", ()),
    "null there": (47, 1323, None, b"there", ()),
    "hi null": (47, 1323, b"hi", None, ()),
    "null null": (47, 1323, None, None, ()),
    "headers": (47, 1323, b"hi", b"there", HEADERS),
}
FIRST = (37, 1000, None, None, ())
HEADER_COUNT_AT = 14


def refused(words: str) -> Refused:
    return Refused(CorruptRecordError, words)


def with_header_count(count: int) -> bytes:
    """Write the body of a record with three headers and a wrong header count."""
    whole = record(Record(*SERDE["headers"]), 37, 1000)
    assert whole[HEADER_COUNT_AT : HEADER_COUNT_AT + 1] == varint(3)
    length_bytes = 1
    after = HEADER_COUNT_AT + 1
    return whole[length_bytes:HEADER_COUNT_AT] + varint(count) + whole[after:]


def body(*fields: bytes, size: int = 100) -> bytes:
    """Write the body of a record: attributes and two deltas of 0, the fields, and zeros."""
    return (b"\0\0\0" + b"".join(fields)).ljust(size, b"\0")


NULLS = nullable(None) * 2
WHOLE = record(Record(10, 0, b"k", b"v" * 19), 0, 0)

WRITTEN = [
    *[
        case
        for name, row in SERDE.items()
        for case in (
            Case("4 testBasicSerde", round_trip, ([FIRST, row], {}), [FIRST, row], name),
            Case(
                "4 testBasicSerde",
                written_fields,
                ([FIRST, row], PRODUCER, "offsets timestamps sequences"),
                ([37, 47], [1000, 1323], [723, 733]),
                f"{name}, numbers",
            ),
            Case("4 testBasicSerde", size_difference, ([row],), 0, f"{name}, size"),
        )
    ],
    Case("4 testSerdeNoSequence", written_fields, ([FIRST], {}, "sequences"), ([-1],)),
]

SIZES = [
    Case(f"4 {name}(+Partial)", read_record, (content, None, columns), refused(words), label)
    for name, content, words, count in (
        ("testInvalidKeySize", body(varint(105)), "key of 105 bytes reaches past", ""),
        (
            "testInvalidValueSize",
            body(nullable(None), varint(105)),
            "value of 105 bytes reaches past",
            "",
        ),
        ("testInvalidNumHeaders", body(NULLS, varint(-1), size=0), "-1 headers in 0 bytes", "-1, "),
        (
            "testInvalidNumHeaders",
            body(NULLS, varint(100), size=0),
            "100 headers in 0 bytes",
            "100, ",
        ),
    )
    for label, columns in ((f"{count}whole", ALL), (f"{count}offsets only", ()))
]

_IN_HEADERS = (
    ("testInvalidHeaderKey", (varint(105),), "a header key reaches past its record"),
    ("testNullHeaderKey", (varint(-1),), "a header without a key"),
    ("testInvalidHeaderValue", (nullable(b"a"), varint(105)), "a header value reaches past"),
)
IN_HEADERS = [
    *[
        Case(
            f"4 {name}(+Partial)",
            read_record,
            (body(NULLS, varint(1), *fields), None, columns),
            refused(words),
            label,
        )
        for name, fields, words in _IN_HEADERS
        for label, columns in (("whole", ALL), ("headers only", ("headers",)))
    ],
    # Kafka steps through the headers that it gives to nobody; klog, not asked for them, does not.
    *[
        Case(
            f"4 {name}(+Partial)",
            read_record,
            (body(NULLS, varint(1), *fields), None, ("key", "value")),
            [0],
            "no headers",
        )
        for name, fields, _ in _IN_HEADERS
    ],
]

CUT = [
    Case(
        "4 testBasicSerdeInvalidHeaderCountTooHigh",
        read_record,
        (with_header_count(4),),
        refused("a header key reaches past its record"),
    ),
    Case(
        "4 testBasicSerdeInvalidHeaderCountTooLow",
        read_record,
        (with_header_count(2),),
        refused("bytes follow the last header"),
    ),
    Case(
        "4 testBasicSerdeInvalidHeaderCountTooHigh",
        read_record,
        (with_header_count(3),),
        [10],
        "unchanged",
    ),
    # No record is as short as these: that is what is noticed if it is all that there is.
    *[
        Case(
            f"4 {name}",
            read_record,
            (content,),
            refused(f"1 records in {len(content) + 1} bytes"),
            "alone",
        )
        for name, content in (
            ("testUnderflowReadingTimestamp", b"\0"),
            ("testUnderflowReadingVarlong", b"\0\x80"),
        )
    ],
    *[
        Case(
            f"4 {name}",
            read_record,
            (content, None, ALL, WHOLE),
            refused("reaches past its record"),
            "before a record",
        )
        for name, content in (
            ("testUnderflowReadingTimestamp", b"\0"),
            ("testUnderflowReadingVarlong", b"\0\x80"),
        )
    ],
    Case(
        "4 testInvalidVarlong",
        read_record,
        (b"\0" + b"\xff" * 9 + b"\x80",),
        refused("varint of more than 10 bytes"),
    ),
    Case(
        "4 testInvalidSizeOfBodyInBytes",
        read_record,
        (body(NULLS, varint(0), size=0), 10),
        refused("1 records do not fill their batch"),
    ),
]

CASES = [*WRITTEN, *SIZES, *IN_HEADERS, *CUT]
NOT_APPLICABLE: list[NotApplicable] = []
