"""Rewritten batches: the bytes that Kafka's classes wrote, and what a header and records keep."""

from __future__ import annotations

import pytest

from klog.errors import CorruptRecordError
from klog.logformat.cleaning.clean_batches import SegmentCleaner
from tests.logformat.cleaning.cleaned_segments import (
    FOUR,
    bitmap_of,
    cleaned_bytes,
    context_of,
    only_batch,
)
from tests.logformat.cleaning.cleaning_rounds import scan
from tests.logformat.reference_decoder import decode_with_klog
from tests.support.batch_bytes import (
    CODECS,
    GZIP,
    LOG_APPEND_TIME,
    SNAPPY,
    TRANSACTIONAL,
    Record,
    batch,
)
from tests.support.legacy_bytes import plain as legacy_plain
from tests.support.legacy_bytes import wrapper

GOLDEN = bytes.fromhex(
    "00000000000000640000005700000003025104c9fe00000000000300000000000003e800000000000005dc000000"
    "0000000007000100000028000000041000000002610231001200e8070202620232001000900304026301001200c8"
    "01060264023400"
)
"""Offsets 100 to 103, leader epoch 3, producer 7 of epoch 1 from sequence 40: a, b, c (null), d."""
HEADERS = (("h", b"x"), ("h", None), ("", b""))


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        (
            "x..x",
            "0000000000000064000000440000000302e8109d1800000000000300000000000003e80000000000000"
            "44c0000000000000007000100000028000000021000000002610231001200c801060264023400",
        ),
        (
            "x.tx",
            "000000000000006400000054000000030260d4a8770040000000030000000005266f880000000000000"
            "4b00000000000000007000100000028000000031600bfaeb3520002610231001400afabb3520402630100"
            "1600f7acb352060264023400",
        ),
        (
            "....",
            "0000000000000064000000310000000302e3ba3fda000000000003ffffffffffffffff0000000000000"
            "5dc000000000000000700010000002800000000",
        ),
    ],
)
def test_rewritten_bytes_equal_kafkas(signs: str, expected: str) -> None:
    assert cleaned_bytes(GOLDEN, signs, context_of(103)).hex() == expected


@pytest.mark.parametrize("codec", CODECS)
def test_codec_and_records_are_kept(codec: int) -> None:
    records = [
        Record(10, 3000, b"a", b"1" * 50, HEADERS),
        Record(12, -1, b"b", b"2" * 50),
        Record(15, 1 << 40, b"", b"", HEADERS[:1]),
        Record(16, 2000, None, None),
    ]
    cleaned = cleaned_bytes(batch(records, attributes=codec, last_offset_delta=9), ".xx.")
    assert decode_with_klog(cleaned) == records[1:3]
    (header,) = scan(cleaned).headers
    assert header["attributes"] == codec
    assert (header["base_offset"], header["last_offset_delta"]) == (10, 9)
    assert (header["base_timestamp"], header["max_timestamp"]) == (-1, 1 << 40)


def test_header_fields_are_kept() -> None:
    data = batch(
        FOUR,
        base_offset=7,
        last_offset_delta=8,
        attributes=TRANSACTIONAL,
        leader_epoch=9,
        producer_id=4000,
        producer_epoch=3,
        base_sequence=2147483647,
    )
    after, before = only_batch(cleaned_bytes(data, ".xx.")), only_batch(data)
    assert after.records == tuple(FOUR[1:3])
    for name in ("base_offset", "last_offset", "attributes", "leader_epoch", "producer_id"):
        assert getattr(after, name) == getattr(before, name)
    assert (after.producer_epoch, after.base_sequence) == (3, 2147483647)
    assert (after.base_timestamp, after.max_timestamp) == (1001, 1002)


def test_log_append_time_is_kept() -> None:
    data = batch(FOUR, attributes=LOG_APPEND_TIME, max_timestamp=7777)
    rewritten = only_batch(cleaned_bytes(data, "x..x"))
    assert rewritten.attributes == LOG_APPEND_TIME
    assert rewritten.max_timestamp == 7777
    assert [record.timestamp for record in rewritten.records] == [7777, 7777]
    empty = only_batch(cleaned_bytes(data, "....", context_of(13)))
    assert (empty.attributes, empty.max_timestamp) == (LOG_APPEND_TIME, 7777)


@pytest.mark.parametrize("magic", [0, 1])
def test_retained_messages_of_old_formats_are_unchanged(magic: int) -> None:
    data = legacy_plain(FOUR, magic)
    size = len(data) // 4
    assert cleaned_bytes(data, "xxxx") == data
    assert cleaned_bytes(data, "x..x") == data[:size] + data[3 * size :]
    assert cleaned_bytes(data, "....") == b""


@pytest.mark.parametrize("codec", [GZIP, SNAPPY])
@pytest.mark.parametrize("magic", [0, 1])
def test_wrapper_is_rewritten_as_a_batch_v2(magic: int, codec: int) -> None:
    """Its last offset is kept, as that of a batch is: it may be the last one of the log."""
    data = wrapper(FOUR, magic, codec)
    assert cleaned_bytes(data, "xxxx") == data
    rewritten = cleaned_bytes(data, ".xx.")
    (header,) = scan(rewritten).headers
    assert (header["magic"], header["attributes"]) == (2, codec)
    assert (header["base_offset"], header["last_offset_delta"]) == (11, 2)
    timestamps = [1001, 1002] if magic else [-1, -1]
    records = [
        (record.offset, record.timestamp, record.key, record.value)
        for record in decode_with_klog(rewritten)
    ]
    assert records == [
        (n, timestamp, b"k%d" % (n - 10), b"v%d" % (n - 10))
        for n, timestamp in zip((11, 12), timestamps, strict=True)
    ]
    assert cleaned_bytes(data, "....") == b""
    empty = only_batch(cleaned_bytes(data, "....", context_of(13)))
    assert (empty.base_offset, empty.last_offset, empty.records) == (13, 13, ())


def test_wrapper_keeps_log_append_time() -> None:
    data = wrapper(FOUR, 1, GZIP, attributes=LOG_APPEND_TIME, timestamp=7777)
    rewritten = cleaned_bytes(data, "x..x")
    (header,) = scan(rewritten).headers
    assert header["attributes"] == GZIP | LOG_APPEND_TIME
    assert [record.timestamp for record in decode_with_klog(rewritten)] == [7777, 7777]


@pytest.mark.parametrize(
    ("signs", "data"),
    [
        ("x.", batch(FOUR[:2], producer_id=1, producer_epoch=0)),
        ("..", batch(FOUR[:2], producer_id=1, producer_epoch=0)),
        ("..", batch(FOUR[:2], producer_id=1, base_sequence=0)),
        ("..", batch(FOUR[:2], attributes=TRANSACTIONAL)),
        ("..", batch(FOUR[:2], attributes=LOG_APPEND_TIME, max_timestamp=-9)),
        ("..", batch(FOUR[:2], leader_epoch=-9)),
    ],
    ids=["sequence", "none retained", "epoch", "transaction", "append time", "leader epoch"],
)
def test_header_that_no_writer_may_write_is_corrupt(signs: str, data: bytes) -> None:
    first = batch([Record(0, 1, b"a", b"b")])
    cleaner = SegmentCleaner(bitmap_of("x" + signs), context_of(11))
    with pytest.raises(CorruptRecordError, match="cannot be rewritten") as caught:
        list(cleaner.clean(first + data, scan(first + data)))
    assert caught.value.position == len(first)
