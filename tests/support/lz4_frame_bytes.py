"""lz4 frames, part by part: for frames that no library writes."""

from __future__ import annotations

import struct

import lz4.block
import xxhash


def framed(*blocks: bytes, flags: int = 0x60, sizes: int = 0x40, middle: bytes = b"") -> bytes:
    """Write an lz4 frame of ready blocks; the header's checksum is right."""
    descriptor = bytes([flags, sizes]) + middle
    checksum = (xxhash.xxh32_intdigest(descriptor) >> 8) & 0xFF
    return b"\x04\x22\x4d\x18" + descriptor + bytes([checksum]) + b"".join(blocks) + bytes(4)


def block(data: bytes, *, stored: bool = False, checksum: bool = False) -> bytes:
    """Write one lz4 block after its size."""
    body = data if stored else bytes(lz4.block.compress(data, store_size=False))
    tail = struct.pack("<I", xxhash.xxh32_intdigest(body)) if checksum else b""
    return struct.pack("<I", len(body) | (0x80000000 if stored else 0)) + body + tail
