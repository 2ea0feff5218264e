"""Right checksums for bytes that were changed, so that a decoder reads on after the checksum.

Nothing of klog is used. The frames of a log are followed as far as their lengths lead; the last
one, if it reaches past the end or not up to it, is stretched or cut to the end, as a fuzzer that
inserts and removes bytes seldom sets the length too.
"""

from __future__ import annotations

import struct
import zlib

import google_crc32c

_FRAME_BYTES, _MAGIC_AT, _HEADER_BYTES = 12, 16, 61
_MIN_LEGACY_BYTES = _FRAME_BYTES + 14
_SNAPSHOT_CHECKED_FROM = 6


def sealed_log(data: bytes) -> bytes:
    """Put right CRCs into all entries of a log: CRC-32C for v2, CRC-32 for v0 and v1."""
    out = bytearray(data)
    start = 0
    while start + _MIN_LEGACY_BYTES <= len(out):
        (length,) = struct.unpack_from(">i", out, start + 8)
        end = start + _FRAME_BYTES + length
        if end > len(out) or length < 0 or len(out) - end < _MIN_LEGACY_BYTES:
            end = len(out)
            struct.pack_into(">i", out, start + 8, end - start - _FRAME_BYTES)
        _seal(out, start, end)
        start = max(end, start + _MIN_LEGACY_BYTES)
    return bytes(out)


def _seal(out: bytearray, start: int, end: int) -> None:
    magic = out[start + _MAGIC_AT]
    if magic == 2 and end - start >= _HEADER_BYTES:
        struct.pack_into(">I", out, start + 17, google_crc32c.value(bytes(out[start + 21 : end])))
    elif magic in (0, 1) and end - start >= _MIN_LEGACY_BYTES:
        struct.pack_into(">I", out, start + 12, zlib.crc32(out[start + _MAGIC_AT : end]))


def sealed_snapshot(data: bytes) -> bytes:
    """Put a right CRC-32C into a producer snapshot."""
    if len(data) < _SNAPSHOT_CHECKED_FROM:
        return data
    crc = google_crc32c.value(data[_SNAPSHOT_CHECKED_FROM:])
    return data[:2] + struct.pack(">I", crc) + data[_SNAPSHOT_CHECKED_FROM:]
