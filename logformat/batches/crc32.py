"""Check the CRC-32s of many short byte ranges in one pass over all of them.

The rule: a CRC is linear, so that of two ranges, one after the other, follows from both CRCs and
the length of the second (zlib's `crc32_combine`). A library sums a range in a call, and below a
thousand bytes the call costs more than the sum. So the library sums all ranges as one, numpy
combines the CRCs that they should have, and the two agree if all are right. If one range is wrong
they differ, whichever bit it is; several wrong ones cancel each other as rarely as one wrong range
has the right CRC by chance.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
from zlib_ng import zlib_ng

from klog.logformat.array_types import Longs, UnsignedInts
from klog.logformat.arrow_values import from_numpy

MAX_JOINED_BYTES = (1 << 31) - 1
"""Positions are counted in 32 bits, as Arrow does."""

_POLYNOMIAL = 0xEDB88320
_DIGITS = 4
"""A length is counted in digits of base 256."""


def all_crcs_match(data: bytes | bytearray, starts: Longs, ends: Longs, stored: Longs) -> bool:
    """Return whether each byte range has the CRC-32 that is stored for it.

    At 124 bytes a range takes 0.07 µs, and 0.24 by a call each.

    Args:
        data: At most `MAX_JOINED_BYTES`.
        starts: Where each range starts; at least one range.
        ends: Where each range ends; ranges are in order and do not overlap.
        stored: The CRCs.
    """
    bytes_after = np.cumsum((ends - starts)[::-1])[::-1] - (ends - starts)
    expected = np.bitwise_xor.reduce(_append_zeros(stored.astype(np.uint32), bytes_after))
    return zlib_ng.crc32(_join_ranges(data, starts, ends)) == int(expected)


def _join_ranges(data: bytes | bytearray, starts: Longs, ends: Longs) -> memoryview:
    """Copy the ranges into one buffer by Arrow's take: every second element is a range."""
    bounds = np.stack((starts, ends), axis=1).astype(np.int32).reshape(-1)
    elements = pa.Array.from_buffers(
        pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    ranges = elements.take(from_numpy(np.arange(0, len(bounds), 2, dtype=np.int32)))
    return memoryview(ranges.buffers()[2])[: int((ends - starts).sum())]


def _append_zeros(crcs: UnsignedInts, lengths: Longs) -> UnsignedInts:
    """Return each CRC, without its conditioning, after as many zero bytes."""
    for digit, table in enumerate(_zero_tables()):
        digits = (lengths >> (8 * digit)) & 0xFF
        if digits.any():
            crcs = _map_crcs(table, digits << 10, crcs)
    return crcs


def _map_crcs(table: UnsignedInts, base: Longs | int, crcs: UnsignedInts) -> UnsignedInts:
    """Map each CRC by the 1024 words at `base`: 256 for each of its bytes."""
    mapped = table.take(base + (crcs & 0xFF).astype(np.int64))
    for byte in (1, 2, 3):
        mapped ^= table.take(base + 256 * byte + ((crcs >> (8 * byte)) & 0xFF).astype(np.int64))
    return mapped


def _byte_crcs() -> UnsignedInts:
    """Return the CRC, without conditioning, of each byte."""
    crcs = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crcs = (crcs >> 1) ^ np.where(crcs & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return crcs


@cache
def _zero_tables() -> UnsignedInts:
    """Return, for each digit and its values, the map of a CRC over as many zero bytes: 4 MiB."""
    byte_crcs = _byte_crcs()
    identity = np.concatenate([np.arange(256, dtype=np.uint32) << (8 * byte) for byte in range(4)])
    step = (identity >> 8) ^ byte_crcs[identity & 0xFF]
    tables = []
    for _ in range(_DIGITS):
        rows = [identity]
        for _ in range(255):
            rows.append(_map_crcs(step, 0, rows[-1]))
        tables.append(np.concatenate(rows))
        step = _map_crcs(step, 0, rows[-1])
    return np.stack(tables)
