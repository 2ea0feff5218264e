"""Records to columns: bytes that lie are refused, whatever they say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches
from tests.logformat.golden_vectors import BATCHES, COMPRESSED
from tests.logformat.reference_decoder import ALL, by_hand, decode_with_klog, to_records
from tests.support.batch_bytes import (
    CODECS,
    HEADER_BYTES,
    Record,
    batch,
    compress,
    nullable,
    plain,
    sealed,
    varint,
)

KEY_AND_VALUE = nullable(b"k") + nullable(b"v") + b"\0"


def body(
    *, deltas: bytes = b"\0\0", rest: bytes = KEY_AND_VALUE, attributes: bytes = b"\0"
) -> bytes:
    """Write one record from its parts: attributes, two deltas, key, value, headers."""
    inner = attributes + deltas + rest
    return varint(len(inner)) + inner


GOOD = body()
BODY = GOOD[1:]
PAYLOADS = [
    pytest.param(1, GOOD, None, id="as it should be"),
    pytest.param(1, body(attributes=b"\xff"), None, id="attributes mean nothing"),
    pytest.param(2, GOOD, "2 records in", id="fewer records than counted"),
    pytest.param(1, GOOD + b"\0", "do not fill", id="a byte left"),
    pytest.param(1, GOOD + GOOD, "do not fill", id="a record left"),
    pytest.param(1, GOOD[:-1], "do not fill", id="a byte short"),
    pytest.param(1, b"", "1 records in 0 bytes", id="no bytes at all"),
    pytest.param(1, bytes(9), "do not fill", id="zeros"),
    pytest.param(1, varint(-5) + GOOD[1:], "do not fill", id="negative length"),
    pytest.param((1 << 31) - 1, GOOD, "2147483647 records", id="as many records as can be said"),
    pytest.param(1, body(deltas=b"\0\1"), "does not fit", id="negative offset delta"),
    pytest.param(1, body(deltas=b"\0" + varint(4)), "does not fit", id="delta past the last"),
    pytest.param(2, body(deltas=b"\0\2") + GOOD, "does not fit", id="offsets fall"),
    pytest.param(2, GOOD + GOOD, "does not fit", id="an offset twice"),
    pytest.param(1, body(rest=varint(9) + b"k\1\0"), "key of 9", id="key too long"),
    pytest.param(1, body(rest=varint(2) + b"k\1\0"), "value of|key of", id="key a byte too long"),
    pytest.param(1, body(rest=varint((1 << 31) - 1) + b"kv\0"), "key of", id="endless key"),
    pytest.param(1, body(rest=b"\1" + varint(3) + b"vv"), "value of 3", id="value too long"),
    pytest.param(
        1, body(rest=b"\1" + varint((1 << 31) - 1) + b"v"), "value of", id="endless value"
    ),
    pytest.param(1, body(rest=b"\1\1\0\0"), "0 headers in 1", id="bytes after the headers"),
    pytest.param(1, body(rest=b"\1\1\2\0"), "headers in 1", id="headers without bytes"),
    pytest.param(1, body(rest=b"\xff" * 20), "varint", id="endless key length"),
    pytest.param(1, body(deltas=b"\xff" * 12), "varint", id="endless timestamp"),
]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("count", "payload", "reason"), PAYLOADS)
def test_a_batch_must_hold_what_it_says(
    count: int, payload: bytes, reason: str | None, codec: int
) -> None:
    batch_bytes = batch(
        base_offset=10,
        last_offset_delta=1 if count < 3 else count - 1,
        count=count,
        payload=compress(codec, payload),
        attributes=codec,
    )
    before = plain(0)
    data = before + batch_bytes + plain(1 << 40)
    if reason is None:
        assert [record.offset for record in decode_with_klog(data)] == [0, 10, 1 << 40]
        return
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        decode_with_klog(data)
    assert caught.value.position == len(before)


@pytest.mark.parametrize("codec", CODECS)
def test_a_length_that_does_not_end_is_refused(codec: int) -> None:
    payload = compress(codec, b"\xff" * 9)
    with pytest.raises(CorruptRecordError, match="varint"):
        decode_with_klog(
            plain(0) + batch(base_offset=1, count=1, payload=payload, attributes=codec)
        )


@pytest.mark.parametrize("codec", CODECS)
def test_a_length_that_does_not_end_names_its_batch(codec: int) -> None:
    # `decode`: raises with the position of the batch in `data`.
    payload, before = compress(codec, b"\xff" * 9), plain(0)
    with pytest.raises(CorruptRecordError, match="varint") as caught:
        decode_with_klog(before + batch(base_offset=1, count=1, payload=payload, attributes=codec))
    assert caught.value.position == len(before)


@pytest.mark.parametrize("length", [len(BODY) + 1, len(BODY) + 9, 8191, 1 << 20, (1 << 31) - 1])
def test_a_last_record_longer_than_the_last_batch(length: int) -> None:
    # docs/format.md, 3: a record ends where its length says.
    data = batch([Record(0, 0)], payload=varint(length) + BODY)
    with pytest.raises(CorruptRecordError):
        decode_with_klog(data)


@pytest.mark.parametrize("length", [len(BODY) + 1, len(BODY) + 9, 8191, 1 << 20, (1 << 31) - 1])
def test_a_last_record_longer_than_its_batch(length: int) -> None:
    data = batch([Record(0, 0)], payload=varint(length) + BODY)
    with pytest.raises(CorruptRecordError, match="do not fill") as caught:
        decode_with_klog(plain(0) + data[:7] + b"\1" + data[8:] + plain(2))
    assert caught.value.position == len(plain(0))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist(codec: int) -> None:
    data = plain(0) + batch([Record(1, 0)], attributes=codec)
    with pytest.raises(CorruptRecordError, match=f"codec {codec} does not exist") as caught:
        decode_with_klog(data)
    assert caught.value.position == len(plain(0))


def test_any_negative_length_is_null() -> None:
    for number in (-1, -2, -300, -(1 << 31)):
        data = batch(payload=body(rest=varint(number) + varint(number) + b"\0"), count=1)
        assert decode_with_klog(data) == [Record(0, -1, None, None)]


LAST = plain(1 << 50, [b"what lies after must not matter"])
SOUND = [
    *(golden.data for golden in BATCHES.values() if golden.records),
    plain(0, [b"x" * 100, None, b"y" * 9000]),
    plain(0, [bytes([i]) * i for i in range(40)]),
]


@settings(max_examples=200)
@given(st.sampled_from(SOUND), st.data())
def test_any_records_under_a_right_crc_decode_or_are_refused(
    entry: bytes, data: st.DataObject
) -> None:
    changed = bytearray(entry)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(HEADER_BYTES, len(entry) - 1))
        changed[at] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    _decode_or_refuse(sealed(bytes(changed)))


@settings(max_examples=200)
@given(st.binary(max_size=80), st.integers(0, 9), st.integers(0, 7), st.integers(0, 9))
def test_any_payload_decodes_or_is_refused(
    payload: bytes, count: int, codec: int, last: int
) -> None:
    for written in [payload, compress(codec, payload)] if codec <= 4 else [payload]:
        _decode_or_refuse(
            batch(
                base_offset=7,
                last_offset_delta=last,
                attributes=codec,
                count=count,
                payload=written,
            )
        )


@settings(max_examples=200)
@given(st.sampled_from(list(COMPRESSED.values())), st.data())
def test_any_compressed_bytes_decode_or_are_refused(entry: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(HEADER_BYTES, len(entry) - 1))
    changed = entry[:at] + bytes([data.draw(st.integers(0, 255))]) + entry[at + 1 :]
    _decode_or_refuse(sealed(changed))


def _decode_or_refuse(data: bytes) -> None:
    """Decode to sound arrays that agree with the slow reader, or raise what is documented."""
    data += LAST
    try:
        batches = scan_batches(data, 0, len(data))
        check_batch_crcs(data, batches)
        columns = decode_records(data, batches, ALL)
    except CorruptRecordError:
        return
    for array in (columns.key, columns.value, columns.headers):
        assert array is not None
        array.validate(full=True)
    if not batches.attributes[0] & v2.CODEC_MASK:
        assert to_records(columns) == by_hand(data)
