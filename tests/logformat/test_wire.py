"""Primitives of the protocol encoding: one table drives both directions, whole and cut short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat import wire
from klog.logformat.wire import Reader

Read = Callable[[Reader], Any]
Write = Callable[[Any], bytes]


def integer(kind: str) -> tuple[Read, Write]:
    return (lambda reader: reader.integer(kind), lambda value: wire.integer(kind, value))


def string(compact: bool) -> tuple[Read, Write]:
    return (lambda reader: reader.string(compact), lambda value: wire.string(value, compact))


def sized(compact: bool) -> tuple[Read, Write]:
    return (
        lambda reader: reader.sized_bytes(compact),
        lambda value: wire.nullable_bytes(value, compact),
    )


UNSIGNED: tuple[Read, Write] = (Reader.unsigned_varint, wire.unsigned_varint)
TAGS: tuple[Read, Write] = (Reader.tags, wire.tags)
UUID: tuple[Read, Write] = (Reader.uuid, wire.uuid)

VECTORS: list[tuple[tuple[Read, Write], Any, str]] = [
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
def test_vectors(pair: tuple[Read, Write], value: Any, hex_: str) -> None:
    read, write = pair
    data = bytes.fromhex(hex_)
    assert write(value) == data
    reader = Reader(data + b"junk")
    assert read(reader) == value
    assert (reader.position, reader.left) == (len(data), 4)
    for cut in range(len(data)):
        with pytest.raises(CorruptRecordError):
            read(Reader(data[:cut]))


COUNTS = [(False, 3, "00000003"), (False, None, "ffffffff"), (True, 3, "04"), (True, None, "00")]


@pytest.mark.parametrize(("compact", "count", "hex_"), COUNTS)
def test_counts_fit_what_is_left(compact: bool, count: int | None, hex_: str) -> None:
    data = bytes.fromhex(hex_)
    assert wire.count(count, compact) == data
    assert Reader(data + b"abc").count(compact) == count
    if count:
        with pytest.raises(CorruptRecordError, match="3 elements in 2 bytes"):
            Reader(data + b"ab").count(compact)


BAD: list[tuple[Read, str, str]] = [
    (Reader.unsigned_varint, "ffffffffff01", "varint of more than 5 bytes (position 0)"),
    (string(False)[0], "0001ff", "not UTF-8"),
    (string(True)[0], "ffffffff0f", "4294967294 bytes where 0 are left"),
    (sized(False)[0], "7fffffff", "2147483647 bytes where 0 are left"),
    (TAGS[0], "ffffffff0f", "4294967295 tagged fields in 0 bytes"),
]


@pytest.mark.parametrize(("read", "hex_", "said"), BAD)
def test_bytes_that_cannot_be(read: Read, hex_: str, said: str) -> None:
    with pytest.raises(CorruptRecordError) as caught:
        read(Reader(bytes.fromhex(hex_)))
    assert said in str(caught.value)


def test_any_negative_length_is_null() -> None:
    assert Reader(bytes.fromhex("fff0")).string(False) is None
    assert Reader(bytes.fromhex("fffffff0")).sized_bytes(False) is None
    assert Reader(bytes.fromhex("fffffff0")).count(False) is None


@pytest.mark.parametrize(
    ("write", "value"),
    [
        (integer("int8")[1], 128),
        (integer("uint16")[1], -1),
        (wire.unsigned_varint, 1 << 32),
        (wire.unsigned_varint, -1),
        (string(False)[1], "x" * 32768),
        (wire.uuid, "short"),
        (wire.uuid, "!" * 22),
    ],
)
def test_values_that_cannot_be_written(write: Write, value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        write(value)


@given(st.integers(0, (1 << 32) - 1))
def test_unsigned_varints_come_back(value: int) -> None:
    assert Reader(wire.unsigned_varint(value)).unsigned_varint() == value


@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_decode_or_raise(data: bytes, compact: bool) -> None:
    reads: list[Read] = [string(compact)[0], sized(compact)[0], TAGS[0], UUID[0], UNSIGNED[0]]
    counts: Read = lambda reader: reader.count(compact)  # noqa: E731
    for read in [*reads, counts]:
        reader = Reader(data)
        try:
            read(reader)
        except CorruptRecordError:
            continue
        assert reader.position <= len(data)
