"""Compare many short pieces with their CRC-32s in one pass over all of them.

A library sums a piece in a call, and below a thousand bytes the call costs more than the sum. But a
CRC is linear: that of two pieces, one behind the other, follows from both CRCs and the length of
the second (zlib's `crc32_combine`). So it sums all pieces as one, numpy combines the CRCs that
they should have, and the two agree if all are right. If one piece is wrong they differ, whichever
bit it is; that several wrong ones cancel out is as likely as that one has the right CRC by chance.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from zlib_ng import zlib_ng

from klog.logformat.compiled.compiling import frozen
from klog.logformat.varint import Longs

Words = npt.NDArray[np.uint32]

MAX_JOINED_BYTES = (1 << 31) - 1
"""Positions are counted in 32 bits, as Arrow does."""

_POLYNOMIAL = 0xEDB88320
_HEAD_BYTES = 16
_DIGITS = 4
"""A length is counted in digits of base 256."""


def all_match(data: bytes | bytearray, starts: Longs, ends: Longs, stored: Longs) -> bool:
    """Tell whether each `data[starts[i]:ends[i]]` has the CRC-32 `stored[i]`.

    The pieces do not overlap, come in order and are at least one; `data` has at most
    `MAX_JOINED_BYTES`. At 124 bytes a piece takes 0.07 µs, and 0.24 by a call each.
    """
    behind = np.cumsum((ends - starts)[::-1])[::-1] - (ends - starts)
    expected = np.bitwise_xor.reduce(_followed(stored.astype(np.uint32), behind))
    return zlib_ng.crc32(_joined(data, starts, ends)) == int(expected)


def all_match_by(
    loops: Any, data: bytes | bytearray, starts: Longs, ends: Longs, stored: Longs
) -> bool:
    """Tell the same of whole entries, whose first 16 bytes are not what their CRC is of.

    `starts` are those of the entries, not of what is summed as in `all_match`, and each has 16
    bytes at least. Nothing is copied: the CRC of all of it follows from those that they should
    have. False for entries between which anything else lies, to be looked at in another way.
    """
    if not len(starts) or (starts[1:] != ends[:-1]).any():
        return False
    buffer = frozen(np.frombuffer(data, np.uint8))
    given = [frozen(one) for one in (starts, ends, stored)]
    expected = loops.expected_crc(buffer, *given, frozen(_of_bytes()), frozen(_tables()))
    whole = memoryview(data)[int(starts[0]) : int(ends[-1])]
    return zlib_ng.crc32(whole) == int(expected)


def _joined(data: bytes | bytearray, starts: Longs, ends: Longs) -> memoryview:
    """Copy the pieces one behind the other, by Arrow's take: every second element is one."""
    bounds = np.stack((starts, ends), axis=1).astype(np.int32).reshape(-1)
    pieces = pa.Array.from_buffers(
        pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    taken = pieces.take(pa.array(np.arange(0, len(bounds), 2, dtype=np.int32)))
    return memoryview(taken.buffers()[2])[: int((ends - starts).sum())]


def _followed(crcs: Words, lengths: Longs) -> Words:
    """Give what each CRC becomes when so many zero bytes follow, its conditioning left out."""
    for digit, table in enumerate(_tables()):
        shift = (lengths >> (8 * digit)) & 0xFF
        if shift.any():
            crcs = _look_up(table, shift << 10, crcs)
    return crcs


def _look_up(table: Words, base: Longs | int, crcs: Words) -> Words:
    """Map each CRC by the 1024 words at `base`: 256 for each of its bytes."""
    found = table.take(base + (crcs & 0xFF).astype(np.int64))
    for byte in (1, 2, 3):
        found ^= table.take(base + 256 * byte + ((crcs >> (8 * byte)) & 0xFF).astype(np.int64))
    return found


@cache
def _of_bytes() -> Words:
    """Make the CRCs of each byte before up to 15 zero bytes, its conditioning left out."""
    found = np.empty((_HEAD_BYTES, 256), np.uint32)
    found[0] = np.arange(256)
    for _ in range(8):
        found[0] = (found[0] >> 1) ^ np.where(found[0] & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    for before, after in pairwise(found):
        after[:] = (before >> 8) ^ found[0][before & 0xFF]
    return found


@cache
def _tables() -> Words:
    """Make for each digit and each value of it the map of a CRC over so many zero bytes: 4 MiB."""
    one_byte = _of_bytes()[0]
    identity = np.concatenate([np.arange(256, dtype=np.uint32) << (8 * byte) for byte in range(4)])
    step = (identity >> 8) ^ one_byte[identity & 0xFF]
    tables = []
    for _ in range(_DIGITS):
        rows = [identity]
        for _ in range(255):
            rows.append(_look_up(step, 0, rows[-1]))
        tables.append(np.concatenate(rows))
        step = _look_up(step, 0, rows[-1])
    return np.stack(tables)
