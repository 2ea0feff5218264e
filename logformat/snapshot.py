"""Producer snapshots `<20 digits>.snapshot`: every producer at an offset (docs/format.md, 10).

    int16 version 1 | uint32 CRC-32C of what follows the crc | int32 count | 46-byte entries

    offset  size  field of an entry
         0     8  producerId
         8     2  producerEpoch
        10     4  lastSequence          -1 if there is no batch
        14     8  lastOffset            of the last batch, -1 if there is none
        22     4  offsetDelta           last offset less first offset of that batch
        26     8  timestamp             ms, the producer's last
        34     4  coordinatorEpoch      -1 if there is none
        38     8  currentTxnFirstOffset -1 if no transaction is open

Only the last batch of a producer is kept. The order of entries means nothing. (Kafka's
`ProducerStateManager.writeSnapshot` and `readSnapshot`.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

import google_crc32c
import numpy as np
import numpy.typing as npt

from klog.errors import CorruptRecordError

VERSION = 1

_ENTRY = np.dtype(
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
_PACKED_ENTRY = struct.Struct(">qhiqiqiq")
_CHECKED_FROM = 6


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """One producer as a snapshot has it; `NONE_SET` stands for what it has not."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    transaction_first_offset: int


def decode_snapshot(data: bytes) -> tuple[SnapshotEntry, ...]:
    """Decode a producer snapshot.

    Raises `CorruptRecordError` for another version than 1, a CRC that does not hold, or a size that
    the count does not give; a broker then deletes the file and tries the one before it.
    """
    return tuple(SnapshotEntry(*entry) for entry in _entries(data).tolist())


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    """Encode a producer snapshot, entries in the order given.

    Raises `ValueError` for a number that its field cannot hold.
    """
    try:
        packed = [
            _PACKED_ENTRY.pack(
                one.producer_id,
                one.epoch,
                one.last_sequence,
                one.last_offset,
                one.offset_delta,
                one.timestamp_ms,
                one.coordinator_epoch,
                one.transaction_first_offset,
            )
            for one in entries
        ]
    except struct.error as exc:
        raise ValueError(f"a producer that a snapshot cannot hold: {exc}") from exc
    body = struct.pack(">i", len(packed)) + b"".join(packed)
    return struct.pack(">hI", VERSION, google_crc32c.value(body)) + body


def read_open_transactions(data: bytes) -> dict[int, int] | None:
    """Give producer id to first offset of each open transaction; None if the file is damaged."""
    try:
        entries = _entries(data)
    except CorruptRecordError:
        return None
    entries = entries[entries["transaction_first_offset"] >= 0]
    firsts = entries["transaction_first_offset"].tolist()
    return dict(zip(entries["producer_id"].tolist(), firsts, strict=True))


def _entries(data: bytes) -> npt.NDArray[np.void]:
    if len(data) < _HEADER.size:
        raise CorruptRecordError(f"a producer snapshot of {len(data)} bytes is cut short")
    version, crc, count = _HEADER.unpack_from(data)
    if version != VERSION:
        raise CorruptRecordError(f"producer snapshot version {version}, known is {VERSION}")
    computed = google_crc32c.value(data[_CHECKED_FROM:])
    if computed != crc:
        raise CorruptRecordError(f"CRC-32C is {computed:#010x}, the snapshot says {crc:#010x}", 2)
    if len(data) != _HEADER.size + count * _ENTRY.itemsize:
        raise CorruptRecordError(f"{count} producers in a snapshot of {len(data)} bytes", 6)
    return np.frombuffer(data, _ENTRY, count, _HEADER.size)
