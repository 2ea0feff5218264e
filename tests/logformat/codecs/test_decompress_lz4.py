"""lz4 frames: what Kafka reads, and each way to be broken."""

from __future__ import annotations

import struct

import lz4.frame
import pytest

from tests.support.batch_bytes import LZ4, compress
from tests.support.decompression import decompress, refused
from tests.support.lz4_frame_bytes import block, framed

DATA = b"".join(b"record %d, " % i for i in range(20000))
EMPTY = bytes.fromhex("04224d1860408200000000")
"""No records, as Kafka writes them (docs/format.md, 5)."""


@pytest.mark.parametrize("sizes", [0x40, 0x50, 0x60, 0x70])
def test_lz4_block_sizes(sizes: int) -> None:
    largest = 1 << (8 + 2 * (sizes >> 4))
    data = bytes(largest)
    assert decompress(LZ4, framed(block(data), sizes=sizes)) == data
    refused(LZ4, framed(block(data + b"a"), sizes=sizes), "damaged")
    text = DATA[:largest]
    assert decompress(LZ4, framed(block(text, stored=True), sizes=sizes)) == text


def test_an_lz4_block_longer_than_the_frame_allows() -> None:
    refused(LZ4, framed(block(bytes((1 << 16) + 1), stored=True)), "larger than the frame allows")


def test_lz4_content_size_and_checksum() -> None:
    plain = block(b"one") + block(b"two", stored=True)
    size = struct.pack("<Q", 6)
    assert decompress(LZ4, framed(plain, flags=0x68, middle=size)) == b"onetwo"
    wrong = struct.pack("<Q", 1 << 60)
    assert decompress(LZ4, framed(plain, flags=0x68, middle=wrong)) == b"onetwo"
    assert decompress(LZ4, framed(plain, flags=0x64) + b"sum?") == b"onetwo"
    for options in ({"content_checksum": True}, {"store_size": True}, {"block_checksum": True}):
        written = lz4.frame.compress(DATA, block_linked=False, **options)
        assert decompress(LZ4, written) == DATA


def test_lz4_block_checksums_are_checked() -> None:
    good = block(b"one", checksum=True) + block(b"two", stored=True, checksum=True)
    assert decompress(LZ4, framed(good, flags=0x70)) == b"onetwo"
    bad = good[:-1] + bytes([good[-1] ^ 1])
    refused(LZ4, framed(bad, flags=0x70), "block checksum")


def test_what_follows_the_lz4_end_mark_is_ignored() -> None:
    for junk in (b"junk", compress(LZ4, b"a second frame")):
        assert decompress(LZ4, compress(LZ4, b"one") + junk) == b"one"


def test_linked_lz4_blocks_are_refused() -> None:
    refused(LZ4, lz4.frame.compress(DATA, block_linked=True), "dependent blocks")
    refused(LZ4, framed(block(b"one"), flags=0x40), "dependent blocks")


@pytest.mark.parametrize(
    ("flags", "sizes", "reason"),
    [
        pytest.param(0x20, 0x40, "not an lz4 frame", id="version 0"),
        pytest.param(0xA0, 0x40, "not an lz4 frame", id="version 2"),
        pytest.param(0x62, 0x40, "not an lz4 frame", id="reserved flag"),
        pytest.param(0x61, 0x40, "not an lz4 frame", id="dictionary"),
        pytest.param(0x60, 0xC0, "not an lz4 frame", id="reserved bit of the sizes"),
        pytest.param(0x60, 0x41, "not an lz4 frame", id="low bit of the sizes"),
        pytest.param(0x60, 0x30, "block size code 3", id="size code 3"),
        pytest.param(0x60, 0x00, "block size code 0", id="size code 0"),
    ],
)
def test_lz4_descriptors_that_kafka_refuses(flags: int, sizes: int, reason: str) -> None:
    refused(LZ4, framed(block(b"one"), flags=flags, sizes=sizes), reason)


def test_the_broken_header_checksum_of_magic_0_is_refused() -> None:
    # docs/format.md, 5: `1a` is over the frame's magic too; only magic 0 reads it.
    good = EMPTY
    refused(LZ4, good[:6] + b"\x1a" + good[7:], "header checksum")


def test_an_lz4_frame_without_its_end_mark() -> None:
    refused(LZ4, framed(block(b"one"))[:-4], "damaged")
