"""Producer snapshots, `<20 digits>.snapshot`: every producer at an offset (docs/format.md, 10).

    int16 version 1 | uint32 CRC-32C of what follows the crc | int32 count | 46-byte entries

    offset  size  field of an entry
         0     8  producerId
         8     2  producerEpoch
        10     4  lastSequence          -1 without a batch
        14     8  lastOffset            of the last batch, -1 without a batch
        22     4  offsetDelta           last offset minus first offset of that batch
        26     8  timestamp             ms, the producer's last
        34     4  coordinatorEpoch      -1 before the first marker
        38     8  currentTxnFirstOffset -1 without an open transaction

Only the last batch of a producer is in it. The order of entries has no meaning. (Kafka's
`ProducerStateManager.writeSnapshot` and `readSnapshot`.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import astuple, dataclass

import google_crc32c
import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Structs
from klog.logformat.batches.record_batch import UNSET

VERSION = 1
NO_BATCH = (UNSET, UNSET, 0)
"""Last sequence, last offset and offset delta of a producer without a batch in its epoch."""

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
class ProducerEntry:
    """One producer, as a partition knows it; `UNSET` stands for a value that is not set."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    transaction_first_offset: int


def decode_snapshot(data: bytes) -> tuple[ProducerEntry, ...]:
    """Decode a producer snapshot.

    Args:
        data: The whole file.

    Raises:
        CorruptRecordError: For another version than 1, a wrong CRC, or a size that does not follow
            from the count. A broker then deletes the file and reads the snapshot before it.
    """
    return tuple(ProducerEntry(*entry) for entry in _entries(data).tolist())


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """Encode a producer snapshot.

    Args:
        entries: The producers, in any order; the file has the same order.

    Raises:
        ValueError: For a number that its field cannot hold.
    """
    try:
        packed = [_PACKED_ENTRY.pack(*astuple(entry)) for entry in entries]
    except struct.error as exc:
        raise ValueError(f"a producer does not fit into a snapshot: {exc}") from exc
    body = struct.pack(">i", len(packed)) + b"".join(packed)
    return struct.pack(">hI", VERSION, google_crc32c.value(body)) + body


def parse_open_transactions(data: bytes) -> dict[int, int] | None:
    """Return producer id to first offset of each open transaction; None if the file is damaged.

    Args:
        data: The whole file.
    """
    try:
        entries = _entries(data)
    except CorruptRecordError:
        return None
    entries = entries[entries["transaction_first_offset"] >= 0]
    first_offsets = entries["transaction_first_offset"].tolist()
    return dict(zip(entries["producer_id"].tolist(), first_offsets, strict=True))


def _entries(data: bytes) -> Structs:
    if len(data) < _HEADER.size:
        raise CorruptRecordError(f"a producer snapshot of {len(data)} bytes is cut short")
    version, crc, count = _HEADER.unpack_from(data)
    if version != VERSION:
        raise CorruptRecordError(f"producer snapshot version {version}, must be {VERSION}")
    computed = google_crc32c.value(data[_CHECKED_FROM:])
    if computed != crc:
        raise CorruptRecordError(f"CRC-32C is {computed:#010x}, the snapshot has {crc:#010x}", 2)
    if len(data) != _HEADER.size + count * _ENTRY.itemsize:
        raise CorruptRecordError(f"{count} producers in a snapshot of {len(data)} bytes", 6)
    return np.frombuffer(data, _ENTRY, count, _HEADER.size)
