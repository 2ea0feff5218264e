"""Decompress the records of one batch: a codec's library does the work, this file keeps the limit.

The rule: nothing is decompressed past a limit. A batch that claims to be larger, or turns out to
be, is refused, and memory stays within the limit and one step of the codec. Framings are Kafka's
(docs/format.md, 5): gzip may have several members and zeros at the end; snappy is a bare block, or
one or several streams of xerial's; lz4 is a frame (`lz4_frames`); zstd may be several frames.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

import cramjam
import lz4.block
import zstandard
from zlib_ng import zlib_ng

from klog.errors import CorruptRecordError
from klog.logformat.codecs.codec_names import CODEC_NAMES, GZIP, LZ4, NONE, SNAPPY, ZSTD
from klog.logformat.codecs.lz4_blocks import decode_lz4_frame

BytesLike: TypeAlias = "bytes | memoryview"

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_GZIP_INPUT_BYTES = 8192
_ZSTD_INPUT_BYTES = 1024
"""zstd expands at most some 32,700 times: one step of compressed input stays within 32 MiB."""
_ZSTD_OUTPUT_BYTES = 64 << 10
"""What the library allocates for a chunk: small enough to come from memory used before."""

_DAMAGE = (
    cast("type[Exception]", zlib_ng.error),  # Its stub calls it an instance.
    cramjam.DecompressionError,
    lz4.block.LZ4BlockError,
    zstandard.ZstdError,
    struct.error,
    IndexError,
    ValueError,
)
"""What the libraries and the framing raise for damaged bytes."""

_be_int = struct.Struct(">i").unpack_from


def decompress_chunks(
    codec: int, data: memoryview, limit: int, magic: int = 2
) -> Iterator[BytesLike]:
    """Decompress the records of a batch in chunks, as the codec returns them.

    Args:
        codec: A number of `codec_names`.
        data: The compressed records.
        limit: How many bytes they may decompress to.
        magic: The message format of the batch.

    Raises:
        CorruptRecordError: The codec does not exist, the bytes are not of that codec, or they
            decompress to more than `limit` bytes.
    """
    decoder = _DECODERS.get(codec)
    if decoder is None:
        raise CorruptRecordError(f"compression codec {codec} does not exist")
    try:
        yield from decoder(data, limit, magic)
    except _DAMAGE as exc:
        raise CorruptRecordError(f"{CODEC_NAMES[codec]} data is damaged: {exc}") from exc


def decompress_into(codec: int, data: memoryview, out: memoryview, magic: int = 2) -> int | None:
    """Decompress the records of a batch to the start of `out` and return their size in bytes.

    Memory that was written before costs far less than new memory: zstd takes half as long again to
    write to new memory.

    Args:
        codec: A number of `codec_names`.
        data: The compressed records.
        out: Writable memory.
        magic: The message format of the batch.

    Returns:
        The size; None if the records do not fit or are damaged: `decompress_chunks` finds out.
    """
    decoder = _DECODERS_INTO.get(codec)
    if decoder is not None:
        try:
            return decoder(data, out, magic)
        except _DAMAGE:
            return None
    try:
        chunks = list(decompress_chunks(codec, data, len(out), magic))
    except CorruptRecordError:
        return None
    if sum(map(len, chunks)) > len(out):
        return None
    position = 0
    for chunk in chunks:
        out[position : position + len(chunk)] = chunk
        position += len(chunk)
    return position


class _OutputLimit:
    """Counts decompressed bytes and refuses more than the limit."""

    __slots__ = ("limit", "remaining")

    def __init__(self, limit: int) -> None:
        self.remaining = limit
        self.limit = limit

    def count(self, chunk: BytesLike) -> BytesLike:
        self.check(len(chunk))
        self.remaining -= len(chunk)
        return chunk

    def check(self, size: int) -> None:
        if size > self.remaining:
            raise CorruptRecordError(
                f"a batch that decompresses to more than {self.limit} bytes is refused"
            )


def _none(data: memoryview, limit: int, magic: int) -> Iterator[BytesLike]:
    yield data


def _gzip(data: memoryview, limit: int, magic: int) -> Iterator[BytesLike]:
    output = _OutputLimit(limit)
    position = 0
    while True:
        member = zlib_ng.decompressobj(31)
        while not member.eof:
            compressed = data[position : position + _GZIP_INPUT_BYTES]
            if not compressed:
                raise ValueError("stream ends early")
            yield output.count(member.decompress(compressed, output.remaining + 1))
            position += len(compressed) - len(member.unused_data)
        if position == len(data) or data[position] == 0:
            if bytes(data[position:]).strip(b"\0"):
                raise ValueError("bytes follow the padding")
            return


def _snappy(data: memoryview, limit: int, magic: int) -> Iterator[BytesLike]:
    output = _OutputLimit(limit)
    if data[: len(_XERIAL)] != _XERIAL:
        yield output.count(_snappy_block(data, output))
        return
    position = 0
    while position < len(data):
        if data[position : position + len(_XERIAL)] == _XERIAL:
            position += _XERIAL_HEADER_BYTES
            if position > len(data):
                raise ValueError("stream header is cut short")
            continue
        (size,) = _be_int(data, position)
        position += 4
        if not 0 < size <= len(data) - position:
            raise ValueError(f"block of {size} bytes where {len(data) - position} remain")
        yield output.count(_snappy_block(data[position : position + size], output))
        position += size


def _snappy_block(block: memoryview, output: _OutputLimit) -> bytes:
    """Decompress a raw block, once the size it claims, a varint in front, is within the limit."""
    claimed_bytes = 0
    for index, byte in enumerate(block[:5]):
        claimed_bytes |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    output.check(claimed_bytes)
    return bytes(cramjam.snappy.decompress_raw(block))


def _lz4(data: memoryview, limit: int, magic: int) -> Iterator[BytesLike]:
    output = _OutputLimit(limit)
    for block in decode_lz4_frame(data, magic):
        yield output.count(block.decompress())


def _lz4_into(data: memoryview, out: memoryview, magic: int) -> int:
    """Decompress a frame to the start of `out`; more than fits is an error."""
    position = 0
    for block in decode_lz4_frame(data, magic):
        position += block.decompress_into(out[position:])
    return position


def _zstd(data: memoryview, limit: int, magic: int) -> Iterator[BytesLike]:
    output = _OutputLimit(limit)
    position = 0
    while True:
        frame = _zstd_decompressor().decompressobj(write_size=_ZSTD_OUTPUT_BYTES)
        while not frame.eof:
            compressed = data[position : position + _ZSTD_INPUT_BYTES]
            if not compressed:
                raise ValueError("frame ends early")
            yield output.count(frame.decompress(compressed))
            position += len(compressed) - len(frame.unused_data)
        if position == len(data):
            return


def _zstd_into(data: memoryview, out: memoryview, magic: int) -> int:
    return int(cramjam.zstd.decompress_into(data, out))


def _zstd_decompressor() -> zstandard.ZstdDecompressor:
    """Return this thread's decompressor: to make one costs as much as a batch."""
    decompressor: zstandard.ZstdDecompressor | None = getattr(_thread_state, "zstd", None)
    if decompressor is None:
        decompressor = _thread_state.zstd = zstandard.ZstdDecompressor()
    return decompressor


_thread_state = threading.local()

_DECODERS: dict[int, Callable[[memoryview, int, int], Iterator[BytesLike]]] = {
    NONE: _none,
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}

_DECODERS_INTO: dict[int, Callable[[memoryview, memoryview, int], int]] = {
    LZ4: _lz4_into,
    ZSTD: _zstd_into,
}
"""Codecs whose library writes to memory that it is given."""
