"""Producer snapshots: what a broker knew of each producer at an offset (format notes 4.6).

int16 version 1 | uint32 CRC-32C of what follows the crc | int32 count | 46-byte entries
"""

from __future__ import annotations

import struct

import google_crc32c
import numpy as np
import numpy.typing as npt

ENTRY = np.dtype(
    [
        ("producer_id", ">i8"),
        ("epoch", ">i2"),
        ("last_sequence", ">i4"),
        ("last_offset", ">i8"),
        ("offset_delta", ">i4"),
        ("timestamp", ">i8"),
        ("coordinator_epoch", ">i4"),
        ("transaction_first_offset", ">i8"),
    ]
)
_HEADER = struct.Struct(">hIi")


def read_entries(data: bytes) -> npt.NDArray[np.void] | None:
    """Give the entries, of dtype `ENTRY`, in the order of the file; None if the file is damaged."""
    if len(data) < _HEADER.size:
        return None
    version, crc, count = _HEADER.unpack_from(data)
    if version != 1 or len(data) != _HEADER.size + count * ENTRY.itemsize:
        return None
    if google_crc32c.value(data[6:]) != crc:
        return None
    return np.frombuffer(data, ENTRY, count, _HEADER.size)


def read_open_transactions(data: bytes) -> dict[int, int] | None:
    """Give producer id to first offset of each open transaction; None if the file is damaged."""
    entries = read_entries(data)
    if entries is None:
        return None
    entries = entries[entries["transaction_first_offset"] >= 0]
    firsts = entries["transaction_first_offset"].tolist()
    return dict(zip(entries["producer_id"].tolist(), firsts, strict=True))
