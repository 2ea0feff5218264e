"""Varints: one table drives both directions (docs/format.md, 3)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches.varint import (
    PADDING,
    TWO_BYTES,
    VARINT_BYTES,
    VARLONG_BYTES,
    byte_pairs,
    decode_varints,
    encode_varints,
    varint_sizes,
    zigzag_encode,
)
from tests.support.batch_bytes import varint

# Every change of size, both signs; zig-zag makes n >= 0 into 2n and n < 0 into -2n-1.
BOTH = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (-8192, "ff7f"),
    (8192, "808001"),
    (-8193, "818001"),
    (1048575, "feff7f"),
    (-1048576, "ffff7f"),
    (1048576, "80808001"),
    (-1048577, "81808001"),
    (134217727, "feffff7f"),
    (-134217728, "ffffff7f"),
    (134217728, "8080808001"),
    (-134217729, "8180808001"),
    (2147483647, "feffffff0f"),
    (-2147483648, "ffffffff0f"),
]
LONG_ONLY = [
    (17179869183, "feffffff7f"),
    (-17179869184, "ffffffff7f"),
    (17179869184, "808080808001"),
    (-17179869185, "818080808001"),
    (2199023255551, "feffffffff7f"),
    (-2199023255552, "ffffffffff7f"),
    (281474976710655, "feffffffffff7f"),
    (36028797018963967, "feffffffffffff7f"),
    (4611686018427387903, "feffffffffffffff7f"),
    (-4611686018427387904, "ffffffffffffffff7f"),
    (9223372036854775807, "feffffffffffffffff01"),
    (-9223372036854775808, "ffffffffffffffffff01"),
]
# Legal to read, though nobody writes them so.
OVERLONG = [
    (0, "8000"),
    (0, "808000"),
    (0, "8080808000"),
    (1, "8200"),
    (-1, "8180808000"),
    (64, "80818000"),
]
# Surplus high bits in the last byte are dropped without an error.
SURPLUS = [(0, "8080808070", 5), (-1, "8180808070", 5), (2147483647, "feffffff7f", 5)]
SURPLUS_LONG = [(0, "8080808080808080807e", 10), (-1, "8180808080808080807e", 10)]


def read_one(data: bytes, limit: int, after: bytes = bytes(PADDING)) -> tuple[int, int]:
    buffer = np.frombuffer(data + after + bytes(PADDING), np.uint8)
    values, ends = decode_varints(buffer, np.zeros(1, np.int64), limit)
    return int(values[0]), int(ends[0])


@pytest.mark.parametrize(("value", "written"), BOTH + LONG_ONLY)
def test_the_encoder_writes_the_table(value: int, written: str) -> None:
    assert varint(value).hex() == written


@pytest.mark.parametrize("junk", ["", "00", "ff" * 16, "80" * 16, "7f01"])
@pytest.mark.parametrize(
    ("value", "written", "limit"),
    [(v, w, 5) for v, w in BOTH + OVERLONG]
    + [(v, w, 10) for v, w in BOTH + LONG_ONLY + OVERLONG]
    + SURPLUS
    + SURPLUS_LONG,
)
def test_read(value: int, written: str, limit: int, junk: str) -> None:
    data = bytes.fromhex(written)
    assert read_one(data, limit, bytes.fromhex(junk)) == (value, len(data))


@pytest.mark.parametrize(
    ("written", "limit"),
    [
        ("8080808080", VARINT_BYTES),
        ("ffffffffff01", VARINT_BYTES),
        ("80808080808080808080", VARLONG_BYTES),
        ("ffffffffffffffffffff01", VARLONG_BYTES),
    ],
)
def test_a_varint_that_does_not_end_in_time_is_refused(written: str, limit: int) -> None:
    with pytest.raises(CorruptRecordError, match=f"varint of more than {limit} bytes"):
        read_one(bytes.fromhex(written), limit)


def test_the_error_says_where() -> None:
    data = varint(5) + varint(300) + b"\xff" * 9 + bytes(PADDING)
    with pytest.raises(CorruptRecordError) as caught:
        decode_varints(np.frombuffer(data, np.uint8), np.array([0, 1, 3], np.int64))
    assert caught.value.position == 3


@given(st.lists(st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(1, 5))))
def test_many_at_once(numbers: list[tuple[int, int]]) -> None:
    pieces = [varint(number, size) for number, size in numbers]
    at = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    buffer = np.frombuffer(b"".join(pieces) + bytes(PADDING), np.uint8)
    values, ends = decode_varints(buffer, at[:-1])
    assert values.tolist() == [number for number, _ in numbers]
    assert ends.tolist() == at[1:].tolist()


@given(st.lists(st.tuples(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(1, 10))))
def test_many_varlongs_at_once(numbers: list[tuple[int, int]]) -> None:
    pieces = [varint(number, size) for number, size in numbers]
    at = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    buffer = np.frombuffer(b"".join(pieces) + bytes(PADDING), np.uint8)
    values, ends = decode_varints(buffer, at[:-1], VARLONG_BYTES)
    assert values.tolist() == [number for number, _ in numbers]
    assert ends.tolist() == at[1:].tolist()


def test_the_table_knows_every_pair_of_bytes() -> None:
    for low in range(256):
        for high in (0, 1, 0x7F, 0x80, 0xFF):
            entry = int(TWO_BYTES[low | high << 8])
            if low >= 0x80 and high >= 0x80:
                assert entry == 0
            else:
                value, size = read_one(bytes([low, high]), VARINT_BYTES)
                assert (entry >> 2, entry & 3) == (value, size)


def test_pairs_are_little_endian_at_every_byte() -> None:
    data = np.array([1, 2, 3, 4], np.uint8)
    assert byte_pairs(data).tolist() == [0x0201, 0x0302, 0x0403]


def test_written_as_the_table_says() -> None:
    """A row is its varints side by side; here every number stands between two others."""
    numbers = np.array([number for number, _ in BOTH + LONG_ONLY], np.int64)
    expected = [bytes.fromhex(text) for _, text in BOTH + LONG_ONLY]
    raw = zigzag_encode(numbers)
    assert varint_sizes(raw).tolist() == [len(encoded) for encoded in expected]
    data, sizes = encode_varints([zigzag_encode(numbers * 0), raw, zigzag_encode(numbers[::-1])])
    rows = [
        b"\0" + encoded + other for encoded, other in zip(expected, expected[::-1], strict=True)
    ]
    assert (data.tobytes(), sizes.tolist()) == (b"".join(rows), [len(row) for row in rows])


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=30))
def test_written_and_read_back(numbers: list[int]) -> None:
    data, sizes = encode_varints([zigzag_encode(np.array(numbers, np.int64))])
    ends = np.cumsum(sizes, dtype=np.int64)
    padded = np.concatenate((data, np.zeros(PADDING, np.uint8)))
    values, next_positions = decode_varints(padded, ends - sizes, VARLONG_BYTES)
    assert (values.tolist(), next_positions.tolist()) == (numbers, ends.tolist())
