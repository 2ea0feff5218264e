"""Sections 13.3 and 13.4: compressed batches and old messages, as Kafka wrote them."""

from __future__ import annotations

from klog.errors import CorruptRecordError
from tests.conformance.case import Case, NotApplicable, Refused
from tests.conformance.legacy_runs import read
from tests.conformance.tables.legacy_cases import THREE, as_read
from tests.conformance.tables.reader_names import NAMES
from tests.logformat.golden_vectors import COMPRESSED, LEGACY, V0_LZ4_AS_PRINTED
from tests.support.batch_bytes import LZ4, Record
from tests.support.legacy_bytes import wrapper

_PLAIN_GOLDEN = [
    Record(5, 1000, b"k1", b"v1"),
    Record(6, 1001, None, b"v2"),
    Record(7, 1002, b"k3"),
]
_LEGACY = [
    Case("13.3 v1 gzip (CreateTime)", read, (LEGACY["v1 gzip (CreateTime)"],), as_read(THREE, 1)),
    Case(
        "13.3 v1 gzip (LogAppendTime 777)",
        read,
        (LEGACY["v1 gzip (LogAppendTime 777)"],),
        [(record.offset, 777, 1, record.key, record.value) for record in THREE],
    ),
    Case("13.3 v1 snappy", read, (LEGACY["v1 snappy"],), as_read(THREE, 1)),
    Case("13.3 v1 lz4", read, (LEGACY["v1 lz4"],), as_read(THREE, 1)),
    # As printed it has one byte too many, at 51: klog says so, and reads it without that byte,
    # as it does the same records from the tests' own encoder, whose HC is Kafka's wrong one.
    Case(
        "13.3 v0 lz4 (broken HC `1a`; no timestamps)",
        read,
        (V0_LZ4_AS_PRINTED,),
        Refused(CorruptRecordError, "CRC-32 is"),
        "as printed",
    ),
    Case(
        "13.3 v0 lz4 (broken HC `1a`; no timestamps)",
        read,
        (LEGACY["v0 lz4"],),
        as_read(THREE, 0),
        "without byte 51",
    ),
    Case(
        "13.3 v0 lz4 (broken HC `1a`; no timestamps)",
        read,
        (wrapper(THREE, 0, LZ4),),
        as_read(THREE, 0),
        "rewritten",
    ),
    Case(
        "13.4 v0 offsets 5..7: k1/v1, null/v2, k3/null",
        read,
        (LEGACY["v0 offsets 5..7: k1/v1, null/v2, k3/null"],),
        as_read(_PLAIN_GOLDEN, 0),
    ),
    Case(
        "13.4 v1 offsets 5..7, ts 1000,1001,1002",
        read,
        (LEGACY["v1 offsets 5..7, ts 1000,1001,1002"],),
        as_read(_PLAIN_GOLDEN, 1),
    ),
    Case(
        "13.4 v1 LogAppendTime 777, offset 5 k1/v1",
        read,
        (LEGACY["v1 LogAppendTime 777, offset 5 k1/v1"],),
        [(5, 777, 1, b"k1", b"v1")],
    ),
]

_THREE = [
    (5, 1000, 0, b"k1", b"v1"),
    (6, 1001, 0, b"k2", b"v2"),
    (7, 999, 0, b"k3", b"v3"),
]
_V2 = [Case(f"13.3 v2 {NAMES[codec]}", read, (data,), _THREE) for codec, data in COMPRESSED.items()]

CASES: list[Case] = [*_LEGACY, *_V2]
NOT_APPLICABLE: list[NotApplicable] = []
