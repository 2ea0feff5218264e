"""Compression: Kafka's framing to the byte, levels within its ranges, and the way back."""

from __future__ import annotations

import os
import struct
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.logformat.codecs.codec_names import (
    CODEC_LEVELS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    check_level,
    codec_number,
)
from klog.logformat.codecs.compress import (
    compress,
)
from tests.support.decompression import decompress

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
TEXT = b" ".join(b"%d" % (number * number % 9973) for number in range(40_000))
NOISE = bytes(os.urandom(70_000))

EMPTY = {
    NONE: "",
    GZIP: "1f8b08000000000000ff03000000000000000000",
    SNAPPY: "82534e41505059000000000100000001",
    LZ4: "04224d1860408200000000",
    ZSTD: "28b52ffd2000010000",
}
"""docs/format.md, 5, "Nothing at all"."""


def packed(codec: int, data: bytes, level: int | None = None) -> bytes:
    return b"".join(compress(codec, [memoryview(data)], level))


@pytest.mark.parametrize("codec", CODECS)
def test_an_empty_payload_is_kafkas(codec: int) -> None:
    assert packed(codec, b"").hex() == EMPTY[codec]
    assert decompress(codec, bytes.fromhex(EMPTY[codec])) == b""


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=2000), times=st.sampled_from([1, 1, 100]))
def test_round_trip(codec: int, data: bytes, times: int) -> None:
    assert decompress(codec, packed(codec, data * times)) == data * times


@pytest.mark.parametrize("data", [TEXT, NOISE, b"x"])
@pytest.mark.parametrize(
    ("codec", "level"),
    [(codec, level) for codec, levels in CODEC_LEVELS.items() for level in (*levels, None)],
)
def test_every_level_comes_back(codec: int, level: int | None, data: bytes) -> None:
    assert decompress(codec, packed(codec, data, level)) == data


@pytest.mark.parametrize(
    ("codec", "level"),
    [(codec, level) for codec in CODECS for level in (*CODEC_LEVELS.get(codec, ())[:1], None)],
)
@given(
    size=st.sampled_from([0, 1, 32_767, 32_768, 65_535, 65_536, 65_537, 200_000]),
    cuts=st.lists(st.integers(0, 200_000), max_size=5),
)
@settings(max_examples=20)
def test_what_comes_out_does_not_depend_on_pieces(
    codec: int, level: int | None, size: int, cuts: list[int]
) -> None:
    for data in (TEXT[:size], bytes(size)):
        bounds = sorted([0, *(min(cut, size) for cut in cuts), size])
        pieces = [memoryview(data)[begin:end] for begin, end in pairwise(bounds)]
        assert b"".join(compress(codec, pieces, level)) == packed(codec, data, level)


def test_a_higher_level_makes_less() -> None:
    for codec, low, high in ((GZIP, 1, 9), (LZ4, 9, 17), (ZSTD, -1000, 19)):
        assert len(packed(codec, TEXT, high)) < len(packed(codec, TEXT, low))
    assert packed(LZ4, TEXT) == packed(LZ4, TEXT, 9)
    assert packed(ZSTD, TEXT) == packed(ZSTD, TEXT, 3)


def test_gzip_is_one_member_with_the_jdks_header() -> None:
    compressed = packed(GZIP, TEXT)
    assert compressed[:10].hex() == "1f8b08000000000000ff"
    assert compressed[-4:] == struct.pack("<I", len(TEXT))


def test_snappy_is_xerials_stream_of_32_kib() -> None:
    compressed = packed(SNAPPY, TEXT)
    assert compressed[:16].hex() == EMPTY[SNAPPY]
    at, sizes = 16, []
    while at < len(compressed):
        (size,) = struct.unpack_from(">i", compressed, at)
        sizes.append(
            compressed[at + 4] & 0x7F | (compressed[at + 5] & 0x7F) << 7 | compressed[at + 6] << 14
        )
        at += 4 + size
    assert at == len(compressed)
    assert sizes == [32768] * (len(TEXT) // 32768) + [len(TEXT) % 32768]


@pytest.mark.parametrize(("data", "stored"), [(TEXT, False), (NOISE, True)])
def test_lz4_is_a_frame_of_independent_blocks_of_64_kib(data: bytes, stored: bool) -> None:
    compressed = packed(LZ4, data)
    assert compressed[:7].hex() == "04224d18604082"
    assert compressed[-4:] == bytes(4)
    at, blocks = 7, []
    while (word := struct.unpack_from("<I", compressed, at)[0]) != 0:
        blocks.append(word)
        at += 4 + (word & 0x7FFFFFFF)
    assert at == len(compressed) - 4
    assert len(blocks) == -(-len(data) // 65536)
    assert {bool(word >> 31) for word in blocks} == {stored}


def test_zstd_says_neither_size_nor_checksum() -> None:
    descriptor = packed(ZSTD, TEXT)[4]
    assert packed(ZSTD, TEXT)[:4].hex() == "28b52ffd"
    assert descriptor & 0b11100100 == 0


@pytest.mark.parametrize(
    ("codec", "level"),
    [(GZIP, -2), (GZIP, 0), (GZIP, 10), (LZ4, 0), (LZ4, 18), (ZSTD, -131073), (ZSTD, 23)],
)
def test_refuses_levels_outside_kafkas_range(codec: int, level: int) -> None:
    with pytest.raises(ValueError, match=f"got level {level}"):
        check_level(codec, level)
    with pytest.raises(ValueError, match=f"got level {level}"):
        packed(codec, b"", level)


@pytest.mark.parametrize("codec", [NONE, SNAPPY])
def test_refuses_a_level_where_there_is_none(codec: int) -> None:
    assert check_level(codec, None) == 0
    with pytest.raises(ValueError, match="has no levels"):
        check_level(codec, 1)


@pytest.mark.parametrize("codec", [-1, 5, 7])
def test_refuses_a_codec_that_does_not_exist(codec: int) -> None:
    with pytest.raises(ValueError, match=f"codec {codec} does not exist"):
        packed(codec, b"")


def test_names_are_kafkas() -> None:
    names = ("none", "uncompressed", "gzip", "snappy", "lz4", "zstd")
    assert [codec_number(name) for name in names] == [0, 0, 1, 2, 3, 4]
    for name in ("producer", "LZ4", ""):
        with pytest.raises(ValueError, match="does not exist"):
            codec_number(name)
