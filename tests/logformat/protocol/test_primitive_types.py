"""Primitive types: one table of vectors drives both directions, complete and cut short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.protocol import primitive_types
from klog.logformat.protocol.primitive_types import Reader

Decode = Callable[[Reader], Any]
Encode = Callable[[Any], bytes]


def integer(kind: str) -> tuple[Decode, Encode]:
    return (lambda reader: reader.integer(kind), lambda value: primitive_types.integer(kind, value))


def string(compact: bool) -> tuple[Decode, Encode]:
    return (
        lambda reader: reader.string(compact),
        lambda value: primitive_types.string(value, compact),
    )


def sized(compact: bool) -> tuple[Decode, Encode]:
    return (
        lambda reader: reader.sized_bytes(compact),
        lambda value: primitive_types.nullable_bytes(value, compact),
    )


UNSIGNED: tuple[Decode, Encode] = (Reader.unsigned_varint, primitive_types.unsigned_varint)
TAGS: tuple[Decode, Encode] = (Reader.tags, primitive_types.tags)
UUID: tuple[Decode, Encode] = (Reader.uuid, primitive_types.uuid)

VECTORS: list[tuple[tuple[Decode, Encode], Any, str]] = [
    (integer("int8"), -1, "ff"),
    (integer("int16"), -2, "fffe"),
    (integer("int32"), 258, "00000102"),
    (integer("int64"), -(1 << 63), "8000000000000000"),
    (integer("uint16"), 9093, "2385"),
    (integer("uint16"), 65535, "ffff"),
    (UNSIGNED, 0, "00"),
    (UNSIGNED, 300, "ac02"),
    (UNSIGNED, (1 << 32) - 1, "ffffffff0f"),
    (string(False), "", "0000"),
    (string(False), "h\u00e9", "000368c3a9"),
    (string(False), None, "ffff"),
    (string(True), "", "01"),
    (string(True), "h\u00e9", "0468c3a9"),
    (string(True), None, "00"),
    (sized(False), b"\xff", "00000001ff"),
    (sized(False), None, "ffffffff"),
    (sized(True), b"\xff", "02ff"),
    (sized(True), None, "00"),
    (TAGS, {}, "00"),
    (TAGS, {0: b"", 100: b"ab"}, "020000" "64026162"),
    (UUID, "ASNFZ4mrze_-3LqYdlQyEA", "0123456789abcdeffedcba9876543210"),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "value", "hex_"), VECTORS)
def test_vectors(pair: tuple[Decode, Encode], value: Any, hex_: str) -> None:
    decode, encode = pair
    data = bytes.fromhex(hex_)
    assert encode(value) == data
    reader = Reader(data + b"junk")
    assert decode(reader) == value
    assert (reader.position, reader.remaining) == (len(data), 4)
    for cut in range(len(data)):
        with pytest.raises(CorruptRecordError):
            decode(Reader(data[:cut]))


COUNTS = [(False, 3, "00000003"), (False, None, "ffffffff"), (True, 3, "04"), (True, None, "00")]


@pytest.mark.parametrize(("compact", "count", "hex_"), COUNTS)
def test_count_is_bounded_by_the_data(compact: bool, count: int | None, hex_: str) -> None:
    data = bytes.fromhex(hex_)
    assert primitive_types.count(count, compact) == data
    assert Reader(data + b"abc").count(compact) == count
    if count:
        with pytest.raises(CorruptRecordError, match="3 elements in 2 bytes"):
            Reader(data + b"ab").count(compact)


BAD: list[tuple[Decode, str, str]] = [
    (Reader.unsigned_varint, "ffffffffff01", "varint of more than 5 bytes (position 0)"),
    (string(False)[0], "0001ff", "not UTF-8"),
    (string(True)[0], "ffffffff0f", "4294967294 bytes where 0 are left"),
    (sized(False)[0], "7fffffff", "2147483647 bytes where 0 are left"),
    (TAGS[0], "ffffffff0f", "4294967295 tagged fields in 0 bytes"),
]


@pytest.mark.parametrize(("decode", "hex_", "reason"), BAD)
def test_malformed_bytes_are_corrupt(decode: Decode, hex_: str, reason: str) -> None:
    with pytest.raises(CorruptRecordError) as caught:
        decode(Reader(bytes.fromhex(hex_)))
    assert reason in str(caught.value)


def test_negative_length_is_null() -> None:
    assert Reader(bytes.fromhex("fff0")).string(False) is None
    assert Reader(bytes.fromhex("fffffff0")).sized_bytes(False) is None
    assert Reader(bytes.fromhex("fffffff0")).count(False) is None


@pytest.mark.parametrize(
    ("encode", "value"),
    [
        (integer("int8")[1], 128),
        (integer("uint16")[1], -1),
        (primitive_types.unsigned_varint, 1 << 32),
        (primitive_types.unsigned_varint, -1),
        (string(False)[1], "x" * 32768),
        (primitive_types.uuid, "short"),
        (primitive_types.uuid, "!" * 22),
    ],
)
def test_refused_values(encode: Encode, value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode(value)


@given(st.integers(0, (1 << 32) - 1))
def test_unsigned_varint_round_trip(value: int) -> None:
    assert Reader(primitive_types.unsigned_varint(value)).unsigned_varint() == value


@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_are_decoded_or_corrupt(data: bytes, compact: bool) -> None:
    decoders: list[Decode] = [string(compact)[0], sized(compact)[0], TAGS[0], UUID[0], UNSIGNED[0]]
    decode_count: Decode = lambda reader: reader.count(compact)  # noqa: E731
    for decode in [*decoders, decode_count]:
        reader = Reader(data)
        try:
            decode(reader)
        except CorruptRecordError:
            continue
        assert reader.position <= len(data)
