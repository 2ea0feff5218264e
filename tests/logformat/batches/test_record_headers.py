"""Record headers: what is legal, in which order it comes out, and each way to be wrong."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.record_headers import HEADERS_TYPE
from klog.logformat.batches.scan_batches import scan_batches
from tests.logformat.reference_decoder import by_hand, decode_with_klog
from tests.support.batch_bytes import Record, batch, nullable, varint

HEADERS = st.lists(
    st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=200)), max_size=5
).map(tuple)


def one_record(header_count: int, headers: bytes) -> bytes:
    """Make a batch whose only record ends in these header bytes."""
    body = b"\0\0\0" + nullable(b"k") + nullable(b"v") + varint(header_count) + headers
    return batch([Record(0, 0)], payload=varint(len(body)) + body)


def column(data: bytes) -> pa.ListArray:
    headers = decode_records(data, scan_batches(data, 0, len(data)), ("headers",)).headers
    assert headers is not None
    return headers


@given(st.lists(HEADERS, min_size=1, max_size=8))
def test_round_trip(given_headers: list[tuple[tuple[str, bytes | None], ...]]) -> None:
    records = [Record(i, 0, b"k", b"v", headers) for i, headers in enumerate(given_headers)]
    data = batch(records)
    assert decode_with_klog(data) == by_hand(data) == records


def test_null_and_empty_are_told_apart() -> None:
    data = batch(
        [
            Record(0, 0, headers=()),
            Record(1, 0, headers=(("", b""),)),
            Record(2, 0, headers=(("a", None),)),
        ]
    )
    assert column(data).to_pylist() == [
        None,
        [{"key": "", "value": b""}],
        [{"key": "a", "value": None}],
    ]


def test_names_repeat_and_keep_their_order() -> None:
    headers = (("b", b"1"), ("a", b"2"), ("b", b"3"), ("b", None), ("a", b"2"))
    data = batch([Record(0, 0, headers=headers), Record(1, 0, headers=headers[::-1])])
    pairs = [[(h["key"], h["value"]) for h in row] for row in column(data).to_pylist()]
    assert pairs == [list(headers), list(headers[::-1])]


def test_the_type_is_the_same_with_and_without_headers() -> None:
    for headers in ((), (("a", b"b"),)):
        assert column(batch([Record(0, 0, headers=headers)])).type == HEADERS_TYPE


def test_long_ones() -> None:
    headers = tuple((f"{i}" * 100, bytes([i % 256]) * i * 40) for i in range(300))
    data = batch([Record(0, 0, headers=headers), Record(1, 0), Record(2, 0, headers=headers[:2])])
    assert decode_with_klog(data) == by_hand(data)


@pytest.mark.parametrize(
    ("count", "written", "reason"),
    [
        pytest.param(1, varint(-1) + nullable(b"v"), "without a key", id="null key"),
        pytest.param(1, varint(-77) + nullable(b"v"), "without a key", id="negative key length"),
        pytest.param(1, varint(9) + b"ab", "key reaches past", id="key too long"),
        pytest.param(1, varint(2) + b"ab", "key reaches past", id="no value"),
        pytest.param(1, nullable(b"a") + varint(2) + b"v", "value reaches past", id="long value"),
        pytest.param(
            1, nullable(b"a") + varint((1 << 31) - 1), "value reaches past", id="endless value"
        ),
        pytest.param(1, nullable(b"a") + nullable(b"v") + b"\0", "bytes follow", id="a byte more"),
        pytest.param(
            2, nullable(b"a") + nullable(b"v") + b"\0", "key reaches past", id="one key, no value"
        ),
        pytest.param(0, b"\0", "0 headers in 1 bytes", id="none, and bytes left"),
        pytest.param(-1, b"", "-1 headers", id="negative count"),
        pytest.param(1, b"", "1 headers in 0 bytes", id="count without headers"),
        pytest.param((1 << 31) - 1, b"\0\0", "headers in 2 bytes", id="count beyond the bytes"),
    ],
)
def test_refused(count: int, written: bytes, reason: str) -> None:
    good = batch([Record(0, 0, b"k", b"v", (("a", b"b"),))])
    bad = one_record(count, written)
    data = good + bad[:7] + b"\x01" + bad[8:]
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        column(data)
    assert caught.value.position == len(good)


NOT_UTF_8 = [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"a\xe2\x82"]


@pytest.mark.parametrize("name", NOT_UTF_8)
def test_a_name_that_is_not_utf_8(name: bytes) -> None:
    with pytest.raises(CorruptRecordError, match="not UTF-8"):
        column(one_record(1, nullable(name) + nullable(b"v")))


@pytest.mark.parametrize("name", NOT_UTF_8)
def test_a_name_that_is_not_utf_8_names_its_batch(name: bytes) -> None:
    # `decode`: raises with the position of the batch in `data`.
    good = batch([Record(0, 0, b"k", b"v", (("a", b"b"),))])
    bad = one_record(1, nullable(name) + nullable(b"v"))
    with pytest.raises(CorruptRecordError, match="not UTF-8") as caught:
        column(good + bad[:7] + b"\x01" + bad[8:])
    assert caught.value.position == len(good)


def test_a_wrong_header_is_refused_though_headers_are_not_wanted() -> None:
    data = one_record((1 << 31) - 1, b"\0\0")
    with pytest.raises(CorruptRecordError, match="headers in 2 bytes"):
        decode_records(data, scan_batches(data, 0, len(data)), ("value",))


def test_an_overlong_null_value_is_null() -> None:
    data = one_record(1, nullable(b"a") + varint(-5, 5))
    assert column(data).to_pylist() == [[{"key": "a", "value": None}]]
