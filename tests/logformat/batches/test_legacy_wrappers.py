"""Wrappers: whose offsets, whose timestamps, and what none can hold (docs/format.md, 4)."""

from __future__ import annotations

import struct

import pytest

from klog.errors import CorruptRecordError
from klog.logformat.batches import message_bounds
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.codecs.decompress import decompress_chunks
from tests.logformat.legacy_logs import LEGACY_CODECS, decode_with_klog, parts_of
from tests.support import batch_bytes
from tests.support.batch_bytes import GZIP, LOG_APPEND_TIME, LZ4, SNAPPY, ZSTD, Record
from tests.support.legacy_bytes import Seen, message, packed, plain, sealed, seen, wrapper

THREE = [Record(5, 1000, b"k1", b"v1"), Record(6, 1001, None, b"v2"), Record(7, 999, b"k3", None)]


@pytest.fixture(params=["side by side", "one by one"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Walk messages of several wrappers at a time, or of one after the other."""
    monkeypatch.setattr(
        message_bounds, "_MIN_LANES", 1 if request.param == "side by side" else 1000
    )


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_every_codec(magic: int, codec: int) -> None:
    assert decode_with_klog(wrapper(THREE, magic, codec)) == seen(THREE, magic)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_bare_block_of_snappy(magic: int) -> None:
    inner = b"".join(message(record, magic) for record in THREE)
    block = batch_bytes.xerial(inner)[20:]
    assert decode_with_klog(wrapper(THREE, magic, SNAPPY, value=block, inner=inner))[0].offset == 5


def test_lz4_frames_of_v0_and_of_v1() -> None:
    # docs/format.md, 5: the wrong checksum is Kafka's own; only v0 is read without a look at it.
    right, wrong = packed(b"", 1, LZ4), packed(b"", 0, LZ4)
    assert right != wrong
    assert decode_with_klog(wrapper(THREE, 0, LZ4)) == seen(THREE, 0)
    inner = plain(THREE, 0)
    assert decode_with_klog(wrapper(THREE, 0, LZ4, value=packed(inner, 1, LZ4))) == seen(THREE, 0)
    with pytest.raises(CorruptRecordError, match="header checksum"):
        decode_with_klog(wrapper(THREE, 1, LZ4, value=packed(inner, 0, LZ4)))
    assert list(decompress_chunks(LZ4, memoryview(wrong), MAX_BATCH_BYTES, magic=0)) == []


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        pytest.param([0, 1, 2], 7, [5, 6, 7], id="relative"),
        pytest.param([0, 3, 9], 100, [91, 94, 100], id="compacted"),
        pytest.param([4, 6, 8], 500, [496, 498, 500], id="not from 0"),
        pytest.param([0, 1, 2], 2, [0, 1, 2], id="the first of a log"),
        pytest.param([0, 1, 2], 0, [0, 1, 2], id="librdkafka's 0"),
        pytest.param([7, 8, 9], 0, [7, 8, 9], id="librdkafka's 0, as they are"),
    ],
)
def test_offsets_of_v1_count_from_the_first(
    inner: list[int], outer: int, expected: list[int]
) -> None:
    data = wrapper(THREE, 1, GZIP, inner_offsets=inner, offset=outer)
    assert [record.offset for record in decode_with_klog(data)] == expected


@pytest.mark.parametrize(
    ("inner", "outer"), [([5, 6, 7], 7), ([1, 4, 90], 90), ([5, 6, 7], 20), ([0, 1, 2], 0)]
)
def test_offsets_of_v0_are_absolute(inner: list[int], outer: int) -> None:
    data = wrapper(THREE, 0, GZIP, inner_offsets=inner, offset=outer)
    assert [record.offset for record in decode_with_klog(data)] == inner


@pytest.mark.parametrize(
    ("magic", "inner", "outer"),
    [
        (1, [0, 1, 2], 1),
        (0, [5, 6, 7], 6),
        (1, [0, 2, 1], 9),
        (0, [5, 5, 6], 9),
        (1, [-1, 0, 1], 9),
        (0, [-1, 0, 1], 9),
        (1, [0, 1, (1 << 63) - 1], 0),
        (1, [-(1 << 63), 0, 1], 0),
    ],
)
def test_offsets_that_cannot_be(magic: int, inner: list[int], outer: int) -> None:
    good = plain([Record(0, 0)], magic) if outer else b""
    data = good + wrapper(THREE, magic, GZIP, inner_offsets=inner, offset=outer)
    with pytest.raises(CorruptRecordError, match="offset") as caught:
        decode_with_klog(data)
    assert caught.value.position == len(good)


def test_a_wrapper_that_overlaps_the_previous_wrapper() -> None:
    first, second = wrapper(THREE, 0, GZIP), wrapper([Record(7, 0), Record(9, 0)], 0, GZIP)
    for part_bytes in (1, 1 << 20):
        data = first + second
        with pytest.raises(CorruptRecordError, match="offset 7 does not rise") as caught:
            parts_of(data, scan_batches(data, 0, len(data)), part_bytes)
        assert caught.value.position == len(first)


def test_a_wrapper_that_overlaps_a_batch_of_v2() -> None:
    data = batch_bytes.plain(6) + wrapper(THREE, 0, GZIP)
    with pytest.raises(CorruptRecordError, match="offset 5 does not rise"):
        decode_with_klog(data)


@pytest.mark.parametrize(
    "after", [batch_bytes.plain(5), plain([Record(5, 0)], 1), wrapper([Record(5, 0)], 0, GZIP)]
)
def test_a_wrapper_of_offset_0_overlaps_the_next_entry(after: bytes) -> None:
    first = wrapper(THREE, 1, GZIP, inner_offsets=[0, 500, 1000], offset=0)
    data = first + after
    with pytest.raises(CorruptRecordError, match=r"offset 5 (after|does not rise)") as caught:
        decode_with_klog(data)
    assert caught.value.position == len(first)
    with pytest.raises(CorruptRecordError, match="offset 5 after offset 1000") as caught:
        parts_of(after, scan_batches(after, 0, len(after)), first_offset=1001)
    assert caught.value.position == 0
    rising = first + batch_bytes.plain(1001)
    assert [record.offset for record in decode_with_klog(rising)] == [0, 500, 1000, 1001]


def test_no_offset_lies_below_the_first() -> None:
    data = wrapper(THREE, 1, GZIP)
    batches = scan_batches(data, 0, len(data))
    assert len(parts_of(data, batches, first_offset=5)) == 1
    with pytest.raises(CorruptRecordError, match="offset 5 does not rise"):
        parts_of(data, batches, first_offset=6)


def test_log_append_time_is_the_wrappers() -> None:
    # Kafka's builder stamps the inner ones too; a reader does not depend on it.
    data = wrapper(THREE, 1, GZIP, attributes=LOG_APPEND_TIME, timestamp=777)
    assert decode_with_klog(data) == seen(THREE, 1, 777)
    stamped = b"".join(
        message(Record(at, 1, b"k", b"v"), 1, attributes=LOG_APPEND_TIME) for at in range(3)
    )
    assert [(record.timestamp, record.timestamp_type) for record in decode_with_klog(
        wrapper(THREE, 1, GZIP, inner=stamped, timestamp=555)
    )] == [(1, 0)] * 3  # fmt: skip


def test_v0_inside_v1() -> None:
    # KAFKA-4298: the offsets are relative, as the wrapper's magic says; the times are v0's.
    data = wrapper(THREE, 1, GZIP, inner_magic=0, attributes=LOG_APPEND_TIME, timestamp=777)
    assert decode_with_klog(data) == seen(THREE, 0)


def test_v1_inside_v0() -> None:
    data = wrapper(THREE, 0, GZIP, inner_magic=1)
    assert decode_with_klog(data) == [
        Seen(r.offset, r.timestamp, -1, r.key, r.value) for r in THREE
    ]


def test_both_inside_one() -> None:
    inner = message(Record(0, 1000, b"a"), 0) + message(Record(1, 1001, b"b"), 1)
    data = wrapper([], 1, GZIP, offset=9, inner=inner, timestamp=1001)
    assert decode_with_klog(data) == [Seen(8, -1, -1, b"a", None), Seen(9, 1001, 0, b"b", None)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        pytest.param(b"", "a wrapper without messages", id="nothing"),
        pytest.param(plain(THREE, 1)[:-1], "cut short", id="cut"),
        pytest.param(plain(THREE, 1) + b"\0", "shorter than", id="a byte more"),
        pytest.param(wrapper(THREE, 1, GZIP), "inside another", id="nested"),
        pytest.param(batch_bytes.plain(0), "another format", id="v2"),
        pytest.param(message(Record(0, 0), 1, length=13), "shorter than", id="short"),
        pytest.param(message(Record(0, 0), 1, length=-1), "shorter than", id="negative"),
        pytest.param(message(Record(0, 0), 1, length=-12), "shorter than", id="standing still"),
        pytest.param(message(Record(0, 0), 1, crc=1),
                     "CRC-32 is", id="crc"),
        pytest.param(sealed(message(Record(0, 0), 0)[:16] + b"\1" + bytes(9)), "shorter than",
                     id="v1 of v0's length"),
        pytest.param(message(Record(9, 0), 1, fields=struct.pack(">ii", 5, 0)), "a key reaches",
                     id="long key"),
    ],
)  # fmt: skip
def test_what_no_wrapper_holds(magic: int, codec: int, inner: bytes, reason: str) -> None:
    good = plain([Record(0, 0)], magic)
    data = good + wrapper([], magic, codec, offset=9, inner=inner) + batch_bytes.plain(10)
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        decode_with_klog(data)
    assert caught.value.position == len(good)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(
    ("codec", "value", "reason"),
    [
        (GZIP, None, "without a value"),
        (GZIP, b"\0", "gzip data is damaged"),
        (SNAPPY, b"\xff", "snappy data is damaged"),
        (LZ4, b"\4\x22", "lz4 data is damaged"),
        (ZSTD, batch_bytes.compress(ZSTD, plain(THREE, 1)), "do not have the codec zstd"),
        (5, b"x", "codec 5 does not exist"),
        (7, b"x", "codec 7 does not exist"),
    ],
)
def test_values_that_cannot_be_opened(
    magic: int, codec: int, value: bytes | None, reason: str
) -> None:
    good = batch_bytes.plain(0)
    data = good + message(Record(9, 0, None, value), magic, attributes=codec)
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        decode_with_klog(data)
    assert caught.value.position == len(good)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_whose_key_reaches_past_it(magic: int) -> None:
    good = batch_bytes.plain(0)
    data = good + message(Record(9, 0), magic, attributes=GZIP, fields=b"\0\1\0\0" + bytes(9))
    with pytest.raises(CorruptRecordError, match="a key reaches past its message") as caught:
        decode_with_klog(data)
    assert caught.value.position == len(good)


def test_a_wrapper_may_have_a_key() -> None:
    inner = packed(plain([Record(0, 1, b"k", b"v")], 1), 1, GZIP)
    data = message(Record(4, 1, b"key", inner), 1, attributes=GZIP)
    assert decode_with_klog(data) == [Seen(4, 1, 0, b"k", b"v")]


def test_plain_ones_between_wrappers() -> None:
    data = b"".join(
        [plain(THREE, 0), wrapper([Record(8, 1), Record(9, 2)], 1, LZ4), plain([Record(11, 3)], 1),
         plain([Record(12, 4)], 0), wrapper([Record(20, 5)], 0, GZIP)]
    )  # fmt: skip
    records = decode_with_klog(data)
    assert [(record.offset, record.timestamp, record.timestamp_type) for record in records] == [
        (5, -1, -1), (6, -1, -1), (7, -1, -1), (8, 1, 0), (9, 2, 0), (11, 3, 0), (12, -1, -1),
        (20, -1, -1),
    ]  # fmt: skip


def test_what_lies_between_chosen_entries_is_not_read() -> None:
    data = plain(THREE, 0) + wrapper([Record(8, 1), Record(9, 2)], 1, LZ4) + plain(
        [Record(11, 3), Record(12, 4), Record(13, 5)], 1
    )  # fmt: skip
    batches = scan_batches(data, 0, len(data))
    chosen = batches.where(batches.base_offsets % 2 == 1)
    assert decode_records(data, chosen, ()).offset.tolist() == [5, 7, 8, 9, 11, 13]


def test_the_limits_hold_for_wrappers(monkeypatch: pytest.MonkeyPatch) -> None:
    data = wrapper(THREE, 1, GZIP)
    monkeypatch.setattr(message_bounds, "MAX_WRAPPER_MESSAGES", 2)
    with pytest.raises(CorruptRecordError, match="more than 2 messages"):
        decode_with_klog(data)
    bomb = message(
        Record(9, 0, None, batch_bytes.compress(GZIP, bytes(129 << 20))), 1, attributes=GZIP
    )
    with pytest.raises(CorruptRecordError, match="decompresses to more than"):
        decode_with_klog(bomb)


def test_wrappers_of_different_lengths_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_bounds, "_MIN_LANES", 4)
    data, expected, offset = b"", [], 0
    for number in range(40):
        records = [
            Record(offset + n, n, b"k" * (n % 5), b"v" * n) for n in range(number * 7 % 23 + 1)
        ]
        data += wrapper(records, number % 2, LEGACY_CODECS[number % 3])
        expected += seen(records, number % 2)
        offset += len(records)
    assert decode_with_klog(data) == expected
