"""Compress the records of one batch, framed as Kafka's writers frame them (docs/format.md, 5).

The rule: records come as chunks that follow each other, and the compressed bytes do not depend on
where the chunks were cut: a codec whose output would takes them joined.

gzip is one member with the header that the JDK writes; snappy is xerial's stream of 32 KiB blocks;
lz4 is a frame of independent 64 KiB blocks without checksums; zstd is one frame without checksum,
and without content size unless there is nothing to compress: that frame stores its size, 0. Levels
have Kafka's ranges and defaults. The bytes are not canonical: another version of a library may
write other bytes with the same content.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator, Sequence

import cramjam
import lz4.block
import zstandard
from zlib_ng import zlib_ng

from klog.logformat.codecs.codec_names import GZIP, LZ4, NONE, SNAPPY, ZSTD, check_level
from klog.logformat.codecs.decompress import BytesLike

_GZIP_HEADER = bytes.fromhex("1f8b08000000000000ff")
_GZIP_MEMORY_LEVEL = 8
_XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 << 10
_LZ4_HEADER = bytes.fromhex("04224d18604082")
_LZ4_BLOCK_BYTES = 64 << 10
_LZ4_STORED = 1 << 31
_LZ4_FAST_LEVEL = 9
"""Kafka's default level means lz4's fast compressor; the others mean the high compressor."""
_ZSTD_EMPTY = bytes.fromhex("28b52ffd2000010000")

_be_int = struct.Struct(">i").pack
_le_uint = struct.Struct("<I").pack
_gzip_trailer = struct.Struct("<II").pack


def compress(
    codec: int, chunks: Sequence[memoryview], level: int | None = None
) -> Sequence[BytesLike]:
    """Return the compressed records of one batch, in chunks that follow each other.

    Args:
        codec: A number of `codec_names`; `NONE` returns the chunks as they are.
        chunks: The records.
        level: None for the codec's default.

    Raises:
        ValueError: As `check_level`.
    """
    checked_level = check_level(codec, level)
    return _ENCODERS[codec](chunks, checked_level)


def _none(chunks: Sequence[memoryview], level: int) -> Sequence[BytesLike]:
    return chunks


def _gzip(chunks: Sequence[memoryview], level: int) -> Sequence[BytesLike]:
    data = _joined(chunks)
    stream = zlib_ng.compressobj(level, zlib_ng.DEFLATED, -zlib_ng.MAX_WBITS, _GZIP_MEMORY_LEVEL)
    trailer = _gzip_trailer(zlib_ng.crc32(data), len(data) & 0xFFFFFFFF)
    return [_GZIP_HEADER, stream.compress(data), stream.flush(), trailer]


def _snappy(chunks: Sequence[memoryview], level: int) -> Sequence[BytesLike]:
    compressed: list[BytesLike] = [_XERIAL_HEADER]
    for block in _blocks(chunks, _XERIAL_BLOCK_BYTES):
        compressed_block = bytes(cramjam.snappy.compress_raw(block))
        compressed += (_be_int(len(compressed_block)), compressed_block)
    return compressed


def _lz4(chunks: Sequence[memoryview], level: int) -> Sequence[BytesLike]:
    """Write a frame; a block that compression does not make smaller is stored."""
    frame: list[BytesLike] = [_LZ4_HEADER]
    for block in _blocks(chunks, _LZ4_BLOCK_BYTES):
        if level == _LZ4_FAST_LEVEL:
            compressed_block = lz4.block.compress(block, store_size=False)
        else:
            compressed_block = lz4.block.compress(
                block, mode="high_compression", compression=level, store_size=False
            )
        if len(compressed_block) < len(block):
            frame += (_le_uint(len(compressed_block)), compressed_block)
        else:
            frame += (_le_uint(len(block) | _LZ4_STORED), block)
    frame.append(_le_uint(0))
    return frame


def _zstd(chunks: Sequence[memoryview], level: int) -> Sequence[BytesLike]:
    data = _joined(chunks)
    return [_zstd_compressor(level).compress(data) if data else _ZSTD_EMPTY]


def _joined(chunks: Sequence[memoryview]) -> BytesLike:
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _blocks(chunks: Sequence[memoryview], size_bytes: int) -> Iterator[BytesLike]:
    """Cut blocks of one size, the last one smaller; bytes are copied only where chunks meet."""
    remainder: BytesLike = b""
    for chunk in chunks:
        missing = size_bytes - len(remainder) if remainder else 0
        if missing:
            remainder = b"".join((remainder, chunk[:missing]))
            if len(remainder) < size_bytes:
                continue
            yield remainder
        blocks_end = missing + (len(chunk) - missing) // size_bytes * size_bytes
        for start in range(missing, blocks_end, size_bytes):
            yield chunk[start : start + size_bytes]
        remainder = chunk[blocks_end:]
    if remainder:
        yield remainder


def _zstd_compressor(level: int) -> zstandard.ZstdCompressor:
    """Return this thread's compressor of a level: to make one costs as much as a small batch."""
    cached: tuple[int, zstandard.ZstdCompressor] | None = getattr(_thread_state, "zstd", None)
    if cached is None or cached[0] != level:
        compressor = zstandard.ZstdCompressor(level, write_content_size=False, write_checksum=False)
        cached = _thread_state.zstd = (level, compressor)
    return cached[1]


_thread_state = threading.local()

_ENCODERS: dict[int, Callable[[Sequence[memoryview], int], Sequence[BytesLike]]] = {
    NONE: _none,
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
