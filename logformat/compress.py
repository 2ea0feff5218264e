"""Compress one batch's records, framed as Kafka's writers frame them (docs/format.md, 5).

Bytes come and go in pieces that follow each other, and what comes out does not depend on where they
were cut: a codec whose output would takes them joined.

gzip is one member with the header that the JDK writes; snappy is xerial's stream of 32 KiB blocks;
lz4 is a frame of independent 64 KiB blocks without checksums; zstd is one frame without checksum,
and without content size unless there is nothing to compress: that frame says its size, 0. Levels
have Kafka's ranges and defaults. What comes out is not canonical: another version of a library may
write other bytes that say the same.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator, Sequence

import cramjam
import lz4.block
import zstandard
from zlib_ng import zlib_ng

from klog.logformat.codecs import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD, Piece

LEVELS: dict[int, tuple[int, int, int]] = {
    GZIP: (-1, 9, -1),
    LZ4: (1, 17, 9),
    ZSTD: (-131072, 22, 3),
}
"""Lowest, highest and default level of the codecs that have one; gzip has no 0."""

_GZIP_HEADER = bytes.fromhex("1f8b08000000000000ff")
_GZIP_MEMORY_LEVEL = 8
_XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 << 10
_LZ4_HEADER = bytes.fromhex("04224d18604082")
_LZ4_BLOCK_BYTES = 64 << 10
_LZ4_STORED = 1 << 31
_LZ4_FAST_LEVEL = 9
"""Kafka's default level means lz4's fast compressor; every other one is of the high compressor."""
_ZSTD_EMPTY = bytes.fromhex("28b52ffd2000010000")

_be_int = struct.Struct(">i").pack
_le_uint = struct.Struct("<I").pack
_gzip_trailer = struct.Struct("<II").pack


def codec_number(name: str) -> int:
    """Give the codec that Kafka's `compression.type` names; raises `ValueError` for other words.

    `uncompressed` is the topic's word for `none`. `producer` is no codec: who asks for it has a
    batch whose codec is to be kept.
    """
    if name == "uncompressed":
        return NONE
    if name not in NAMES:
        raise ValueError(f"no such codec: {name!r}; there are {', '.join(NAMES)} and uncompressed")
    return NAMES.index(name)


def check_level(codec: int, level: int | None) -> int:
    """Give the level to compress at, the codec's default for None.

    Raises `ValueError` for a codec that does not exist and a level outside Kafka's range; a codec
    without levels takes none.
    """
    if not NONE <= codec <= ZSTD:
        raise ValueError(f"compression codec {codec} does not exist; there are {NONE} to {ZSTD}")
    if codec not in LEVELS:
        if level is not None:
            raise ValueError(f"{NAMES[codec]} has no levels, level {level} was asked for")
        return 0
    lowest, highest, default = LEVELS[codec]
    if level is None:
        return default
    if not lowest <= level <= highest or (codec == GZIP and level == 0):
        allowed = "-1 or 1 to 9" if codec == GZIP else f"{lowest} to {highest}"
        raise ValueError(f"{NAMES[codec]} has levels {allowed}, level {level} was asked for")
    return level


def compress(codec: int, pieces: Sequence[memoryview], level: int | None = None) -> Sequence[Piece]:
    """Compress the records of one batch; `none` gives back what it was given.

    Raises `ValueError` as `check_level`.
    """
    checked = check_level(codec, level)
    return _ENCODERS[codec](pieces, checked)


def _none(pieces: Sequence[memoryview], level: int) -> Sequence[Piece]:
    return pieces


def _gzip(pieces: Sequence[memoryview], level: int) -> Sequence[Piece]:
    data = _whole(pieces)
    stream = zlib_ng.compressobj(level, zlib_ng.DEFLATED, -zlib_ng.MAX_WBITS, _GZIP_MEMORY_LEVEL)
    trailer = _gzip_trailer(zlib_ng.crc32(data), len(data) & 0xFFFFFFFF)
    return [_GZIP_HEADER, stream.compress(data), stream.flush(), trailer]


def _snappy(pieces: Sequence[memoryview], level: int) -> Sequence[Piece]:
    made: list[Piece] = [_XERIAL_HEADER]
    for plain in _blocks(pieces, _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(plain))
        made += (_be_int(len(block)), block)
    return made


def _lz4(pieces: Sequence[memoryview], level: int) -> Sequence[Piece]:
    """Write a frame; a block that compression does not make smaller is stored as it is."""
    made: list[Piece] = [_LZ4_HEADER]
    for plain in _blocks(pieces, _LZ4_BLOCK_BYTES):
        if level == _LZ4_FAST_LEVEL:
            block = lz4.block.compress(plain, store_size=False)
        else:
            block = lz4.block.compress(
                plain, mode="high_compression", compression=level, store_size=False
            )
        if len(block) < len(plain):
            made += (_le_uint(len(block)), block)
        else:
            made += (_le_uint(len(plain) | _LZ4_STORED), plain)
    made.append(_le_uint(0))
    return made


def _zstd(pieces: Sequence[memoryview], level: int) -> Sequence[Piece]:
    data = _whole(pieces)
    return [_zstd_compressor(level).compress(data) if data else _ZSTD_EMPTY]


def _whole(pieces: Sequence[memoryview]) -> Piece:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _blocks(pieces: Sequence[memoryview], size_bytes: int) -> Iterator[Piece]:
    """Cut blocks of one size, the last one smaller; bytes are copied only where pieces meet."""
    rest: Piece = b""
    for piece in pieces:
        missing = size_bytes - len(rest) if rest else 0
        if missing:
            rest = b"".join((rest, piece[:missing]))
            if len(rest) < size_bytes:
                continue
            yield rest
        whole = missing + (len(piece) - missing) // size_bytes * size_bytes
        for at in range(missing, whole, size_bytes):
            yield piece[at : at + size_bytes]
        rest = piece[whole:]
    if rest:
        yield rest


def _zstd_compressor(level: int) -> zstandard.ZstdCompressor:
    """Give this thread's compressor of a level: making one costs as much as a small batch."""
    found: tuple[int, zstandard.ZstdCompressor] | None = getattr(_threads, "zstd", None)
    if found is None or found[0] != level:
        made = zstandard.ZstdCompressor(level, write_content_size=False, write_checksum=False)
        found = _threads.zstd = (level, made)
    return found[1]


_threads = threading.local()

_ENCODERS: dict[int, Callable[[Sequence[memoryview], int], Sequence[Piece]]] = {
    NONE: _none,
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
