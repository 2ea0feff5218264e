"""Codecs: each framing that Kafka reads, each way to be broken, and no bombs."""

from __future__ import annotations

import gzip
import struct
import zlib
from contextlib import suppress

import cramjam
import lz4.block
import lz4.frame
import pytest
import xxhash
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.codecs.decompress import decompress_into
from tests.logformat.golden_vectors import COMPRESSED
from tests.support.batch_bytes import (
    CODECS,
    GZIP,
    HEADER_BYTES,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    xerial,
)
from tests.support.decompression import decompress, refused
from tests.support.lz4_frame_bytes import block, framed

DATA = b"".join(b"record %d, " % i for i in range(20000))
PACKED = [GZIP, SNAPPY, LZ4, ZSTD]
BEGINS_LIKE_A_SIZE = bytes.fromhex("0100002401000000000000 35e39ee9d1") + bytes(48) + b"\x3b"
"""What the fuzzer found."""
XERIAL_HEADER = xerial(b"")
EMPTY = {
    # docs/format.md, 5: payloads of no records, as Kafka writes them.
    GZIP: bytes.fromhex("1f8b08000000000000ff03000000000000000000"),
    SNAPPY: XERIAL_HEADER,
    LZ4: bytes.fromhex("04224d1860408200000000"),
    ZSTD: bytes.fromhex("28b52ffd2000010000"),
}


def unsized(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"a", DATA, bytes(100_000)], ids=["one", "text", "zeros"])
def test_round_trip(codec: int, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", PACKED)
def test_what_kafka_writes_for_nothing(codec: int) -> None:
    assert decompress(codec, EMPTY[codec]) == b""


@pytest.mark.parametrize("codec", PACKED)
def test_golden_payloads(codec: int) -> None:
    expected = bytes.fromhex(
        "14000000046b310476310014000202046b320476320014000104046b3304763300"  # docs/format.md, 5
    )
    assert decompress(codec, COMPRESSED[codec][HEADER_BYTES:]) == expected


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"a", DATA, bytes(100_000)])
def test_into_room_that_is_given(codec: int, data: bytes) -> None:
    """None says that it does not fit; what lies after the room is not touched."""
    packed = memoryview(compress(codec, data))
    for more in (0, 1, 5000, 1 << 17):
        out = bytearray(b"beyond" * (len(data) // 6 + more + 10))
        room = memoryview(out)[: len(data) + more]
        assert decompress_into(codec, packed, room) == len(data)
        assert out[: len(data)] == data
        assert (b"beyond" * (len(out) // 6)).endswith(out[len(room) :])
    if data:
        assert decompress_into(codec, packed, memoryview(bytearray(len(data) - 1))) is None


@given(
    st.binary(max_size=150), st.lists(st.sampled_from(b"\0\0\0\1\2\3\x10\x21\x24"), max_size=150)
)
def test_a_block_may_begin_as_its_size_would(block: bytes, zeros: list[int]) -> None:
    """A library took four bytes of block blocks for a size before them, where there was room."""
    out = memoryview(bytearray(1 << 16))
    for data in (BEGINS_LIKE_A_SIZE, block, bytes(zeros)):
        for codec in PACKED:
            size = decompress_into(codec, memoryview(compress(codec, data)), out)
            assert (size, bytes(out[: len(data)])) == (len(data), data)


@given(st.integers(0, 1 << 16), st.binary(max_size=100), st.binary(max_size=20))
def test_a_size_before_a_block_is_damage(size: int, data: bytes, other: bytes) -> None:
    """There is none in a frame; room for it is no reason to take what another room refuses."""
    for blocks in (struct.pack("<I", size) + lz4.block.compress(data, store_size=False), other):
        frame = framed(struct.pack("<I", len(blocks)) + blocks)
        for room in (len(data), 1000, 1 << 17):
            out = memoryview(bytearray(room))
            size_bytes = decompress_into(LZ4, memoryview(frame), out)
            if size_bytes is None:
                continue
            assert bytes(out[:size_bytes]) == decompress(LZ4, frame)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_every_cut_is_refused(codec: int) -> None:
    data = COMPRESSED[codec][HEADER_BYTES:]
    # Of nothing at all, and of a header without blocks, other tests speak.
    boundaries = {GZIP: {0}, SNAPPY: {*range(8, 17)}, LZ4: set[int]()}[codec]
    for size in range(len(data)):
        if size not in boundaries:
            refused(codec, data[:size], "damaged")


@pytest.mark.parametrize("size", range(8, 16))
def test_a_cut_xerial_header_is_refused(size: int) -> None:
    # docs/format.md, 5: the header is 16 bytes.
    refused(SNAPPY, XERIAL_HEADER[:size], "damaged")


@pytest.mark.parametrize("size", [6, 9, 17, 30, 42, 44])
def test_every_cut_of_zstd_is_refused(size: int) -> None:
    # `decompress`: raises if the bytes are not of that codec; a cut gzip, snappy or lz4 does.
    refused(ZSTD, COMPRESSED[ZSTD][HEADER_BYTES:][:size], "damaged")


@pytest.mark.parametrize("size", [9, 12, 17])
def test_every_cut_of_a_zstd_frame_of_known_size_is_refused(size: int) -> None:
    whole = zstandard.ZstdCompressor().compress(b"x" * 1000)
    assert size < len(whole)
    refused(ZSTD, whole[:size], "damaged")


def test_a_cut_in_the_last_of_several_zstd_frames_is_refused() -> None:
    refused(ZSTD, unsized(b"one") + unsized(DATA)[:-9], "damaged")


def test_nothing_is_no_gzip() -> None:
    refused(GZIP, b"", "damaged")


@pytest.mark.parametrize("codec", [5, 6, 7, -1, 99])
def test_a_codec_that_does_not_exist(codec: int) -> None:
    refused(codec, b"", f"compression codec {codec} does not exist")


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("data", [bytes(40), b"\xff" * 40, b"no codec at all, but text"])
def test_other_bytes_are_refused(codec: int, data: bytes) -> None:
    if codec == GZIP and not any(data):
        return  # Trailing zeros are legal after a member.
    refused(codec, data, "damaged|more than")


@settings(max_examples=400)
@given(st.sampled_from(PACKED), st.binary(max_size=120), st.booleans())
def test_any_bytes_decompress_or_are_refused(codec: int, data: bytes, head: bool) -> None:
    data = compress(codec, b"")[: 16 if codec == SNAPPY else 6] + data if head else data
    with suppress(CorruptRecordError):
        assert len(decompress(codec, data, 1 << 20)) <= 1 << 20


@settings(max_examples=300)
@given(st.sampled_from(PACKED), st.integers(0, 1 << 16), st.integers(0, 255))
def test_any_changed_byte_decompresses_or_is_refused(codec: int, at: int, byte: int) -> None:
    data = bytearray(compress(codec, DATA[:3000]))
    data[at % len(data)] = byte
    with suppress(CorruptRecordError):
        assert len(decompress(codec, bytes(data), 1 << 20)) <= 1 << 20


# Bombs: what is refused and what is just allowed.


@pytest.mark.parametrize("codec", PACKED)
def test_the_limit_is_exact(codec: int) -> None:
    data = compress(codec, DATA)
    assert decompress(codec, data, len(DATA)) == DATA
    refused(codec, data, f"more than {len(DATA) - 1} bytes", len(DATA) - 1)
    refused(codec, data, "more than 1 bytes", 1)


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        pytest.param(GZIP, gzip.compress(bytes(1 << 24)), id="gzip"),
        pytest.param(GZIP, gzip.compress(bytes(900)) * 2, id="gzip members"),
        pytest.param(SNAPPY, xerial(bytes(1 << 24)), id="xerial"),
        pytest.param(SNAPPY, xerial(bytes(900)) * 2, id="xerial streams"),
        pytest.param(SNAPPY, bytes(cramjam.snappy.compress_raw(bytes(1 << 20))), id="raw snappy"),
        pytest.param(SNAPPY, b"\xff\xff\xff\xff\x0f" + b"\0a", id="snappy claims 4 GiB"),
        pytest.param(SNAPPY, b"\x80\x80\x80\x80\x08" + b"\0a", id="snappy claims 2 GiB"),
        pytest.param(LZ4, compress(LZ4, bytes(1 << 24)), id="lz4"),
        pytest.param(LZ4, framed(block(bytes(600)), block(bytes(600))), id="lz4 blocks"),
        pytest.param(ZSTD, unsized(bytes(1 << 24)), id="zstd"),
        pytest.param(ZSTD, zstandard.ZstdCompressor().compress(bytes(1 << 24)), id="zstd, sized"),
        pytest.param(ZSTD, unsized(bytes(900)) * 2, id="zstd frames"),
        pytest.param(
            ZSTD,
            zstandard.ZstdCompressor().compress(bytes(900)) * 2,
            id="zstd, sized frames each within the limit",
        ),
    ],
)
def test_bombs_are_refused(codec: int, data: bytes) -> None:
    refused(codec, data, "decompresses to more than 1000 bytes", 1000)


def test_a_size_that_snappy_only_claims_allocates_nothing() -> None:
    for claim in (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f"):
        refused(SNAPPY, claim + b"\0a", "more than")


def test_a_zstd_frame_that_claims_to_be_small_is_not_believed() -> None:
    honest = zstandard.ZstdCompressor().compress(bytes(5000))
    assert zstandard.frame_content_size(honest) == 5000
    at = honest.index(struct.pack("<H", 5000 - 256))
    liar = honest[:at] + struct.pack("<H", 10) + honest[at + 2 :]
    assert zstandard.frame_content_size(liar) == 266
    refused(ZSTD, liar, "damaged|more than", 1000)


# gzip


def test_gzip_members_and_trailing_zeros() -> None:
    first, second = gzip.compress(b"one"), gzip.compress(b"two", 1)
    assert decompress(GZIP, first + second) == b"onetwo"
    assert decompress(GZIP, first + second + bytes(99)) == b"onetwo"
    assert decompress(GZIP, first + gzip.compress(b"") + second) == b"onetwo"


@pytest.mark.parametrize("level", range(10))
def test_gzip_levels(level: int) -> None:
    assert decompress(GZIP, gzip.compress(DATA, level)) == DATA


def test_zlib_without_gzips_header_is_refused() -> None:
    refused(GZIP, zlib.compress(b"one"), "damaged")


def test_a_gzip_checksum_is_checked() -> None:
    data = bytearray(gzip.compress(DATA))
    data[-6] ^= 1
    refused(GZIP, bytes(data), "damaged")


# snappy


def test_raw_snappy() -> None:
    for data in (b"one", DATA):
        assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data


def test_consecutive_xerial_streams() -> None:
    assert decompress(SNAPPY, xerial(b"one") + xerial(b"two")) == b"onetwo"
    assert decompress(SNAPPY, XERIAL_HEADER * 3 + xerial(DATA)) == DATA


@pytest.mark.parametrize("size", [1, 100, 32768, 1 << 20])
def test_xerial_blocks_of_any_size(size: int) -> None:
    data = DATA if size > 1 else DATA[:50]
    assert decompress(SNAPPY, xerial(data, size)) == data


@pytest.mark.parametrize("size", [0, -1, -(1 << 31), 4, (1 << 31) - 1])
def test_xerial_block_lengths_that_lie(size: int) -> None:
    refused(SNAPPY, XERIAL_HEADER + struct.pack(">i", size) + b"\1\0a", "damaged")


def test_googles_snappy_framing_is_refused() -> None:
    refused(SNAPPY, bytes(cramjam.snappy.compress(b"one")), "damaged")


# zstd


def test_consecutive_zstd_frames() -> None:
    sized = zstandard.ZstdCompressor(write_checksum=True).compress
    for frame in (sized(b"one"), unsized(b"one")):
        for two in (sized(b"two"), unsized(b"two"), unsized(DATA)):
            assert decompress(ZSTD, frame + two)[:3] == b"one"
            assert decompress(ZSTD, frame + two)[3:6] in (b"two", DATA[:3])


@pytest.mark.parametrize("level", [-100, -1, 1, 3, 19])
def test_zstd_levels(level: int) -> None:
    assert decompress(ZSTD, zstandard.ZstdCompressor(level).compress(DATA)) == DATA


def test_zstd_longer_than_a_step() -> None:
    noise = b"".join(xxhash.xxh128_digest(struct.pack("<I", i)) for i in range(3000))
    assert len(unsized(noise)) > 3 * 4096
    assert decompress(ZSTD, unsized(noise)) == noise


def test_a_zstd_checksum_is_checked() -> None:
    for write_size in (True, False):
        compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=write_size)
        data = compressor.compress(DATA)
        refused(ZSTD, data[:-1] + bytes([data[-1] ^ 1]), "damaged")


def test_junk_after_zstd_is_refused() -> None:
    refused(ZSTD, unsized(b"one") + b"junk!", "damaged")
    refused(ZSTD, zstandard.ZstdCompressor().compress(b"one") + b"junk!", "damaged")


def test_bytes_without_a_codec_are_themselves() -> None:
    assert decompress(NONE, b"\x28\xb5\x2f\xfd", 1) == b"\x28\xb5\x2f\xfd"
