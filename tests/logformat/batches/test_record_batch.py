"""Batch headers: golden vectors, cuts, flipped bits, and headers that lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs, has_valid_crc
from klog.logformat.batches.scan_batches import scan_batches
from tests.logformat.golden_vectors import BATCHES, COMPRESSED, CONTROLS, DIRECTORY, Golden
from tests.support.batch_bytes import HEADER_BYTES, Record, batch, plain

WHOLE = (
    [(name, golden.data) for name, golden in BATCHES.items()]
    + [(name, data) for name, (data, _) in CONTROLS.items()]
    + [(f"codec {codec}", data) for codec, data in COMPRESSED.items()]
)
VECTORS = [pytest.param(data, id=name) for name, data in WHOLE]


def scan(data: bytes) -> v2.Batches:
    return scan_batches(data, 0, len(data))


def bounds(batches: v2.Batches) -> list[tuple[int, int]]:
    return list(zip(batches.starts.tolist(), batches.ends.tolist(), strict=True))


@pytest.mark.parametrize("golden", BATCHES.values(), ids=BATCHES)
def test_golden_headers(golden: Golden) -> None:
    batches = scan(golden.data)
    header = batches.headers[0]
    assert bounds(batches) == [(0, len(golden.data))]
    assert batches.base_offsets.tolist() == [golden.first_offset]
    assert batches.next_offsets.tolist() == [golden.last_offset + 1]
    assert header["leader_epoch"] == golden.leader_epoch
    assert header["producer_id"] == golden.producer_id
    assert batches.attributes.tolist() == [golden.attributes]
    assert header["count"] == len(golden.records)
    check_batch_crcs(golden.data, batches)
    assert has_valid_crc(golden.data)


def test_every_field_of_a_header() -> None:
    data = batch(
        [Record(70, 5000), Record(75, 9000)],
        attributes=0x08,
        leader_epoch=6,
        producer_id=1 << 62,
        producer_epoch=9,
        base_sequence=11,
    )
    header = scan(data).headers[0]
    fields = {name: int(header[name]) for name in v2.HEADER.names or ()}
    crc = int.from_bytes(data[17:21], "big")
    assert fields == {
        "base_offset": 70,
        "length": len(data) - 12,
        "leader_epoch": 6,
        "magic": 2,
        "crc": crc,
        "attributes": 8,
        "last_offset_delta": 5,
        "base_timestamp": 5000,
        "max_timestamp": 9000,
        "producer_id": 1 << 62,
        "producer_epoch": 9,
        "base_sequence": 11,
        "count": 2,
    }


@pytest.mark.parametrize("data", VECTORS)
def test_every_cut_of_a_batch_is_no_batch(data: bytes) -> None:
    for size in range(len(data)):
        assert len(scan(data[:size])) == 0


@pytest.mark.parametrize("data", VECTORS)
def test_a_flipped_bit_from_byte_21_on_is_caught(data: bytes) -> None:
    for bit in range(8 * v2.CRC_START, 8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not has_valid_crc(bytes(flipped)), bit
        with pytest.raises(CorruptRecordError):
            check_batch_crcs(bytes(flipped), scan(bytes(flipped)))


@pytest.mark.parametrize("data", VECTORS)
def test_a_flipped_bit_of_the_crc_is_caught(data: bytes) -> None:
    for bit in range(8 * 17, 8 * 21):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not has_valid_crc(bytes(flipped)), bit


def test_a_bad_crc_names_its_batch() -> None:
    data = b"".join(DIRECTORY)
    batches = scan(data)
    for start, end in bounds(batches):
        flipped = data[: end - 1] + bytes([data[end - 1] ^ 1]) + data[end:]
        with pytest.raises(CorruptRecordError, match="CRC-32C") as caught:
            check_batch_crcs(flipped, batches)
        assert caught.value.position == start


def test_any_cut_of_a_log_gives_exactly_the_batches_before_it() -> None:
    data = b"".join(DIRECTORY)
    ends = np.cumsum([len(batch_bytes) for batch_bytes in DIRECTORY]).tolist()
    for size in range(len(data) + 1):
        whole = [end for end in ends if end <= size]
        batches = scan(data[:size])
        assert batches.ends.tolist() == whole
        assert batches.starts.tolist() == [0, *whole][: len(whole)]


def test_golden_directory() -> None:
    batches = scan(b"".join(DIRECTORY))
    assert batches.starts.tolist() == [0, 79, 149, 228, 306, 376, 454, 524, 602]
    assert batches.base_offsets.tolist() == [0, 2, 3, 5, 6, 7, 8, 9, 10]
    assert batches.next_offsets.tolist() == [2, 3, 5, 6, 7, 8, 9, 10, 11]
    check_batch_crcs(b"".join(DIRECTORY), batches)


@pytest.mark.parametrize("data", VECTORS)
def test_junk_after_a_batch_ends_the_scan_or_is_refused(data: bytes) -> None:
    for junk in (b"\0" * 16, b"\xff" * 16, data[:60]):
        assert bounds(scan(data + junk)) == [(0, len(data))]
    for junk in (bytes(17), b"\xff" * 17, b"\x80" * 200):
        with pytest.raises(CorruptRecordError) as caught:
            scan(data + junk)
        assert caught.value.position == len(data)


def test_scan_keeps_to_its_bounds() -> None:
    first, second, third = plain(0), plain(1), plain(2)
    data = b"x" * 5 + first + second + third + b"y" * 5
    begin, end = 5 + len(first), 5 + len(first + second)
    assert bounds(scan_batches(data, begin, end)) == [(begin, end)]
    assert bounds(scan_batches(data, begin, end + len(third) - 1)) == [(begin, end)]
    assert bounds(scan_batches(data, begin, end + len(third))) == [
        (begin, end),
        (end, end + len(third)),
    ]
    assert bounds(scan_batches(data, begin, begin)) == []


def test_a_length_is_believed_only_as_far_as_the_bytes_reach() -> None:
    data = plain(0)
    for length in (len(data) - 11, 1 << 20, (1 << 31) - 1):
        assert len(scan(plain(0) + plain(1)[:8] + length.to_bytes(4, "big") + plain(1)[12:])) == 1


@pytest.mark.parametrize("length", [48, 14, 1, 0, -1, -(1 << 31)])
def test_a_length_no_batch_can_have(length: int) -> None:
    good = plain(0)
    with pytest.raises(CorruptRecordError, match="batch length") as caught:
        scan(good + batch([Record(1, 0)], length=length))
    assert caught.value.position == len(good)


@pytest.mark.parametrize("magic", [3, 4, 127, -1, -128])
def test_a_magic_that_does_not_exist(magic: int) -> None:
    with pytest.raises(CorruptRecordError, match="magic"):
        scan(plain(0) + batch([Record(1, 0)], magic=magic))


@pytest.mark.parametrize("magic", [0, 1])
def test_another_magic_on_a_batch_that_keeps_its_crc(magic: int) -> None:
    # docs/format.md, seen 26: the magic lies outside the CRC.
    data = plain(0) + batch([Record(1, 0)], magic=magic)
    with pytest.raises(
        CorruptRecordError, match=f"magic {magic} on a batch of format v2"
    ) as caught:
        check_batch_crcs(data, scan(data))
    assert caught.value.position == len(plain(0))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(plain(5), plain(5), id="the same offset again"),
        pytest.param(plain(5), plain(4), id="falling"),
        pytest.param(plain(5, [b"", b""]), plain(6), id="overlapping"),
        pytest.param(plain(0), batch([Record(1, 0)], base_offset=-1), id="negative"),
        pytest.param(plain(0), batch([Record(1, 0)], last_offset_delta=-1), id="negative delta"),
        pytest.param(plain(0), batch([Record(1, 0)], count=-1), id="negative count"),
        pytest.param(plain(0), batch([Record(1, 0)], count=2), id="more records than offsets"),
    ],
)
def test_offsets_that_cannot_be(first: bytes, second: bytes) -> None:
    with pytest.raises(CorruptRecordError) as caught:
        scan(first + second)
    assert caught.value.position == len(first)


@pytest.mark.parametrize("gap", [1, 2, 1000, 1 << 40])
def test_offsets_may_have_gaps(gap: int) -> None:
    assert scan(plain(0) + plain(gap)).base_offsets.tolist() == [0, gap]


def test_compaction_leaves_fewer_records_than_offsets() -> None:
    data = batch([Record(103, 0)], base_offset=100, last_offset_delta=9) + plain(110)
    assert scan(data).next_offsets.tolist() == [110, 111]


@pytest.mark.parametrize(("base", "delta"), [((1 << 63) - 1, 0), ((1 << 63) - 5, 100)])
def test_offsets_past_the_largest_are_refused(base: int, delta: int) -> None:
    # docs/format.md, 2 and 17: the next offset, baseOffset + lastOffsetDelta + 1, is an int64.
    with pytest.raises(CorruptRecordError):
        scan(batch([Record(base, 0)], last_offset_delta=delta))


def test_where_and_part() -> None:
    batches = scan(b"".join(DIRECTORY))
    odd = batches.where(batches.base_offsets % 2 == 1)
    assert odd.base_offsets.tolist() == [3, 5, 7, 9]
    assert odd.starts.tolist() == [149, 228, 376, 524]
    assert odd.ends.tolist() == [228, 306, 454, 602]
    assert batches.slice(1, 3).base_offsets.tolist() == [2, 3]
    assert batches.slice(1, 3).ends.tolist() == [149, 228]
    assert len(batches.slice(4, 4)) == 0


@settings(max_examples=200)
@given(st.binary(max_size=400))
def test_any_bytes_scan_or_are_refused(data: bytes) -> None:
    try:
        batches = scan(data)
    except CorruptRecordError:
        return
    for start, end in bounds(batches):
        assert start + HEADER_BYTES <= end <= len(data)


@settings(max_examples=200)
@given(st.integers(0, 670), st.binary(min_size=1, max_size=8))
def test_any_bytes_in_a_log_scan_or_are_refused(at: int, junk: bytes) -> None:
    data = b"".join(DIRECTORY)
    data = (data[:at] + junk + data[at + len(junk) :])[: len(data)]
    try:
        batches = scan(data)
        check_batch_crcs(data, batches)
    except CorruptRecordError:
        return
    # What passes both differs from the log only outside the CRC, or ends before the change.
    for (start, end), whole in zip(bounds(batches), DIRECTORY, strict=False):
        assert data[start + 17 : end] == whole[17:]
