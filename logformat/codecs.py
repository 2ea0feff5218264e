"""Decompress one batch's records; the codec library does the work, this file keeps the bounds.

Nothing is decompressed past `limit` bytes: a batch that claims or turns out to be larger is
refused, and memory stays within the limit and one step of the codec. Framings are Kafka's
(docs/format.md, 5): gzip may have several members and trailing zeros; snappy is xerial's stream,
one or several, or a bare block; lz4 is the frame format with independent blocks only, its header
checksum as in v2 (in messages of magic 0 it is wrong, and not looked at), and what follows the end
mark is ignored; zstd may be several frames.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

import cramjam
import lz4.block
import xxhash
import zstandard
from zlib_ng import zlib_ng

from klog.errors import CorruptRecordError

Piece: TypeAlias = "bytes | memoryview"
"""Of what was compressed, as a codec gives it."""
Blocks: TypeAlias = Iterator[tuple[memoryview, int, int]]
"""Those of an lz4 frame: bytes, whether they are stored, the most that they can hold."""

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

MAX_BATCH_BYTES = 128 << 20
"""The most that one batch may decompress to: a broker's default batch is 1 MiB compressed, and
memory, not the format, is what this protects."""

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_LZ4_MAGIC = 0x184D2204
_LZ4_BLOCK_BYTES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_STEP_BYTES = 8192
_ZSTD_STEP_BYTES = 1024
"""zstd expands at most some 32,700 times: one step of compressed input stays within 32 MiB."""
_ZSTD_OUTPUT_BYTES = 64 << 10
"""What the library allocates for each piece: small enough to come from memory used before."""

_DAMAGE = (
    cast("type[Exception]", zlib_ng.error),  # Its stub calls it an instance.
    cramjam.DecompressionError,
    lz4.block.LZ4BlockError,
    zstandard.ZstdError,
    struct.error,
    IndexError,
    ValueError,
)
"""What the libraries and the framing raise at bytes that are not theirs."""

_be_int = struct.Struct(">i").unpack_from
_le_uint = struct.Struct("<I").unpack_from


def decompress(codec: int, data: bytes, limit: int = MAX_BATCH_BYTES) -> bytes:
    """Decompress the records of a batch in one piece; see `decompress_pieces`."""
    return b"".join(decompress_pieces(codec, memoryview(data), limit))


def decompress_pieces(
    codec: int, data: memoryview, limit: int = MAX_BATCH_BYTES, magic: int = 2
) -> Iterator[Piece]:
    """Decompress the records of a batch with codec number `codec` (attributes, bits 0 to 2).

    `magic` is the format of the batch that the data lies in. The pieces are as the codec gave them:
    the caller joins those of many batches at once, or those of a large one as they come. Raises
    `CorruptRecordError` if the bytes are not of that codec, or hold more than `limit` bytes.
    """
    decoder = _DECODERS.get(codec)
    if decoder is None:
        raise CorruptRecordError(f"compression codec {codec} does not exist")
    if codec == LZ4 and magic == 0:
        decoder = _lz4_of_magic_0
    try:
        yield from decoder(data, limit)
    except _DAMAGE as exc:
        raise CorruptRecordError(f"{NAMES[codec]} data is damaged: {exc}") from exc


def decompress_into(codec: int, data: memoryview, out: memoryview, magic: int = 2) -> int | None:
    """Decompress the records of a batch of format `magic` to the start of `out`; gives their size.

    Memory that was written before costs far less than new memory: zstd takes half as long again to
    write to the latter. None says that they do not fit, or are damaged: `decompress_pieces` tells.
    """
    decoder = _INTO.get(codec)
    if decoder is not None:
        if codec == LZ4 and magic == 0:
            decoder = _lz4_of_magic_0_into
        try:
            return decoder(data, out)
        except _DAMAGE:
            return None
    try:
        pieces = list(decompress_pieces(codec, data, len(out), magic))
    except CorruptRecordError:
        return None
    if sum(map(len, pieces)) > len(out):
        return None
    position = 0
    for piece in pieces:
        out[position : position + len(piece)] = piece
        position += len(piece)
    return position


class _Room:
    """Room for output, of which no more is given than the limit."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.left = limit
        self.limit = limit

    def taken(self, piece: Piece) -> Piece:
        self.reserve(len(piece))
        self.left -= len(piece)
        return piece

    def reserve(self, size: int) -> None:
        if size > self.left:
            raise CorruptRecordError(
                f"a batch that decompresses to more than {self.limit} bytes is refused"
            )


def _none(data: memoryview, limit: int) -> Iterator[Piece]:
    yield data


def _gzip(data: memoryview, limit: int) -> Iterator[Piece]:
    room = _Room(limit)
    position = 0
    while True:
        member = zlib_ng.decompressobj(31)
        while not member.eof:
            piece = data[position : position + _STEP_BYTES]
            if not piece:
                raise ValueError("stream ends early")
            yield room.taken(member.decompress(piece, room.left + 1))
            position += len(piece) - len(member.unused_data)
        if position == len(data) or data[position] == 0:
            if bytes(data[position:]).strip(b"\0"):
                raise ValueError("bytes follow the padding")
            return


def _snappy(data: memoryview, limit: int) -> Iterator[Piece]:
    room = _Room(limit)
    if data[: len(_XERIAL)] != _XERIAL:
        yield room.taken(_snappy_block(data, room))
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
            raise ValueError(f"block of {size} bytes where {len(data) - position} are left")
        yield room.taken(_snappy_block(data[position : position + size], room))
        position += size


def _snappy_block(block: memoryview, room: _Room) -> bytes:
    """Decompress a raw block once the size it claims, its leading varint, is within bounds."""
    claimed = 0
    for index, byte in enumerate(block[:5]):
        claimed |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    room.reserve(claimed)
    return bytes(cramjam.snappy.decompress_raw(block))


def _lz4(data: memoryview, limit: int) -> Iterator[Piece]:
    return _lz4_pieces(_checked_lz4(data), limit)


def _lz4_of_magic_0(data: memoryview, limit: int) -> Iterator[Piece]:
    """Decompress a frame whose header checksum covers the magic too (docs/format.md, 5)."""
    return _lz4_pieces(_lz4_blocks(data, *_lz4_frame(data)), limit)


def _lz4_pieces(blocks: Blocks, limit: int) -> Iterator[Piece]:
    room = _Room(limit)
    for block, stored, most in blocks:
        yield room.taken(block if stored else lz4.block.decompress(block, uncompressed_size=most))


def _lz4_into(data: memoryview, out: memoryview) -> int:
    """Decompress a frame to the start of `out`; what does not fit is an error."""
    return _lz4_blocks_into(_checked_lz4(data), out)


def _lz4_of_magic_0_into(data: memoryview, out: memoryview) -> int:
    return _lz4_blocks_into(_lz4_blocks(data, *_lz4_frame(data)), out)


def _lz4_blocks_into(blocks: Blocks, out: memoryview) -> int:
    position = 0
    for block, stored, most in blocks:
        room = out[position : position + most]
        if stored:
            room[: len(block)] = block
            position += len(block)
        else:
            position += _lz4_block_into(block, room)
    return position


def _lz4_block_into(block: memoryview, room: memoryview) -> int:
    """Decompress a block to the start of `room`.

    If the first four bytes could be a size before the block, cramjam takes them for one: always
    where it is not told the room, and where it is in place of telling that the block is damaged.
    """
    if len(block) >= 4 and _le_uint(block)[0] <= len(room):
        found = lz4.block.decompress(block, uncompressed_size=len(room))
        room[: len(found)] = found
        return len(found)
    return int(cramjam.lz4.decompress_block_into(block, room, len(room)))


def _lz4_blocks(data: memoryview, position: int, block_bytes: int, block_checksums: bool) -> Blocks:
    """Give the blocks of a frame, the first of which begins at `position`."""
    while True:
        (word,) = _le_uint(data, position)
        position += 4
        if word == 0:
            return
        size, stored = word & 0x7FFFFFFF, word >> 31
        if size > min(block_bytes, len(data) - position):
            raise ValueError(f"block of {size} bytes is larger than the frame allows")
        block = data[position : position + size]
        position += size
        if block_checksums:
            if _le_uint(data, position)[0] != xxhash.xxh32_intdigest(block):
                raise ValueError("block checksum differs")
            position += 4
        yield block, stored, block_bytes


def _checked_lz4(data: memoryview) -> Blocks:
    """Give the blocks of a frame whose header keeps its checksum."""
    position, block_bytes, block_checksums = _lz4_frame(data)
    if data[position - 1] != (xxhash.xxh32_intdigest(data[4 : position - 1]) >> 8) & 0xFF:
        raise ValueError("frame header checksum differs")
    return _lz4_blocks(data, position, block_bytes, block_checksums)


def _lz4_frame(data: memoryview) -> tuple[int, int, bool]:
    """Read a frame's descriptor: (position of the first block, block size, block checksums?)."""
    magic, flags, size_code = struct.unpack_from("<IBB", data)
    if magic != _LZ4_MAGIC or flags >> 6 != 1 or flags & 0x03 or size_code & 0x8F:
        raise ValueError("not an lz4 frame")
    if not flags & 0x20:
        raise ValueError("dependent blocks are not part of Kafka's format")
    if size_code >> 4 not in _LZ4_BLOCK_BYTES:
        raise ValueError(f"block size code {size_code >> 4} does not exist")
    header_end = 6 + (8 if flags & 0x08 else 0)
    return header_end + 1, _LZ4_BLOCK_BYTES[size_code >> 4], bool(flags & 0x10)


def _zstd(data: memoryview, limit: int) -> Iterator[Piece]:
    room = _Room(limit)
    position = 0
    while True:
        frame = _zstd_decompressor().decompressobj(write_size=_ZSTD_OUTPUT_BYTES)
        while not frame.eof:
            piece = data[position : position + _ZSTD_STEP_BYTES]
            if not piece:
                raise ValueError("frame ends early")
            yield room.taken(frame.decompress(piece))
            position += len(piece) - len(frame.unused_data)
        if position == len(data):
            return


def _zstd_decompressor() -> zstandard.ZstdDecompressor:
    """Give this thread's decompressor: making one costs as much as a batch."""
    found: zstandard.ZstdDecompressor | None = getattr(_threads, "zstd", None)
    if found is None:
        found = _threads.zstd = zstandard.ZstdDecompressor()
    return found


_threads = threading.local()

_DECODERS: dict[int, Callable[[memoryview, int], Iterator[Piece]]] = {
    NONE: _none,
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}

_INTO: dict[int, Callable[[memoryview, memoryview], int]] = {
    LZ4: _lz4_into,
    ZSTD: cramjam.zstd.decompress_into,
}
"""Codecs whose library writes where it is told to."""
