"""Frames of lz4 that Kafka reads: blocks that do not depend on each other (docs/format.md, 5).

The rule: a frame's header keeps its checksum, except in messages of magic 0, where Kafka's own
writers stored a wrong one. What follows the end mark is ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import cramjam
import lz4.block
import xxhash

_MAGIC = 0x184D2204
_MAX_BLOCK_BYTES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
"""By the code in the frame's header."""
_CHECKSUM_BYTES = 4

_le_uint = struct.Struct("<I").unpack_from


class Lz4Block(NamedTuple):
    """A block of a frame; `max_bytes` is the most that it may decompress to."""

    data: memoryview
    is_stored: bool
    max_bytes: int

    def decompress(self) -> bytes | memoryview:
        """Return the block's content; a stored one is not copied."""
        if self.is_stored:
            return self.data
        return bytes(lz4.block.decompress(self.data, uncompressed_size=self.max_bytes))

    def decompress_into(self, out: memoryview) -> int:
        """Decompress the block to the start of `out` and return its size in bytes.

        Args:
            out: Writable memory.
        """
        out = out[: self.max_bytes]
        if self.is_stored:
            out[: len(self.data)] = self.data
            return len(self.data)
        # If the first four bytes could be a size in front of the block, cramjam takes them for one,
        # although it knows the size of `out`, and does not notice that the block is damaged.
        if len(self.data) >= 4 and _le_uint(self.data)[0] <= len(out):
            content = lz4.block.decompress(self.data, uncompressed_size=len(out))
            out[: len(content)] = content
            return len(content)
        return int(cramjam.lz4.decompress_block_into(self.data, out, len(out)))


def decode_lz4_frame(data: memoryview, magic: int) -> Iterator[Lz4Block]:
    """Return the blocks of a frame.

    Args:
        data: The frame, and what may follow its end mark.
        magic: The message format of the batch that holds the frame.

    Raises:
        ValueError: The header is not that of a frame that Kafka reads, or a block or its checksum
            is damaged.
        struct.error: The frame is cut short.
    """
    position, max_bytes, has_block_checksums = _decode_descriptor(data)
    header_checksum = (xxhash.xxh32_intdigest(data[4 : position - 1]) >> 8) & 0xFF
    if magic != 0 and data[position - 1] != header_checksum:
        raise ValueError("frame header checksum differs")
    return _decode_blocks(data, position, max_bytes, has_block_checksums)


def _decode_descriptor(data: memoryview) -> tuple[int, int, bool]:
    """Return the first block's position, the bytes of a block, and if blocks have checksums."""
    magic, flags, size_code = struct.unpack_from("<IBB", data)
    if magic != _MAGIC or flags >> 6 != 1 or flags & 0x03 or size_code & 0x8F:
        raise ValueError("not an lz4 frame")
    if not flags & 0x20:
        raise ValueError("dependent blocks are not part of Kafka's format")
    if size_code >> 4 not in _MAX_BLOCK_BYTES:
        raise ValueError(f"block size code {size_code >> 4} does not exist")
    header_end = 6 + (8 if flags & 0x08 else 0)
    return header_end + 1, _MAX_BLOCK_BYTES[size_code >> 4], bool(flags & 0x10)


def _decode_blocks(
    data: memoryview, position: int, max_bytes: int, has_block_checksums: bool
) -> Iterator[Lz4Block]:
    while True:
        (word,) = _le_uint(data, position)
        position += 4
        if word == 0:
            return
        size, is_stored = word & 0x7FFFFFFF, bool(word >> 31)
        if size > min(max_bytes, len(data) - position):
            raise ValueError(f"block of {size} bytes is larger than the frame allows")
        block = data[position : position + size]
        position += size
        if has_block_checksums:
            if _le_uint(data, position)[0] != xxhash.xxh32_intdigest(block):
                raise ValueError("block checksum differs")
            position += _CHECKSUM_BYTES
        yield Lz4Block(block, is_stored, max_bytes)
