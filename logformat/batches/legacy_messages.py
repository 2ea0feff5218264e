"""Message formats v0 and v1: a log entry is one message, or a wrapper of compressed messages.

    offset  size  field
         0     8  offset        of the message; a wrapper's is that of its last message
         8     4  length        total size - 12
        12     4  crc           CRC-32 (zlib's) of byte 16 to the end
        16     1  magic         0 or 1
        17     1  attributes    bits 0-2 codec, 3 LogAppendTime (v1)
        18     8  timestamp     ms; v1 only, the key length is at 18 in v0
        26     4  key length    -1 null
        30        key
               4  value length  -1 null
                  value

(docs/format.md, 1 and 4; Kafka's `LegacyRecord`.) The rule: any negative length is null, and bytes
after the value are ignored, as Kafka does. A length is checked against its entry before it is used.
`legacy_wrappers` reads what wrappers hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from zlib_ng import zlib_ng

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs, Mask, SignedBytes, Structs
from klog.logformat.batches.corrupt_checks import raise_if_corrupt
from klog.logformat.batches.crc32 import MAX_JOINED_BYTES, all_crcs_match

FRAME = np.dtype(
    [
        ("offset", ">i8"),
        ("length", ">i4"),
        ("crc", ">u4"),
        ("magic", "i1"),
        ("attributes", "u1"),
        ("timestamp", ">i8"),
    ]
)
"""The fields up to v1's timestamp; a message of v0 has no timestamp there, but enough bytes."""
FRAME_BYTES = FRAME.itemsize
MIN_LENGTHS = (14, 22)
"""The length of a message without key and value bytes, by magic."""
CRC_START = 16
KNOWN_ATTRIBUTES = (0x07, 0x0F)
"""The bits with a meaning, by magic: no bit marks a control batch or a transaction."""
NO_TIMESTAMP = -1
NO_TIMESTAMP_TYPE = -1
WRAPPER_COUNT = -1
"""The count in the header of a wrapper: only reading it shows how many messages there are."""
KEY_AT = (18, 26)
"""The position of the key's length, by magic."""
LENGTH_BYTES = 4

_V2_ONLY_FIELDS = ("leader_epoch", "producer_id", "producer_epoch", "base_sequence")
"""Fields of a batch header that these formats do not have; -1 in v2 if they are not set."""
_CODEC_MASK = 0x07
_CRC_AT = 12
_MIN_JOINED, _MAX_JOINED_AVERAGE_BYTES = 256, 1000
"""From as many entries on, up to this average size, their CRCs are checked all at once."""

Frames: TypeAlias = Structs
"""Rows of dtype `FRAME`."""


@dataclass(frozen=True, slots=True)
class FieldBounds:
    """Where the keys or the values of messages lie: positions, and which are null."""

    starts: Longs
    ends: Longs
    is_null: Mask


def decode_frames(data: bytes | bytearray, starts: Longs) -> Frames:
    """Return the frames of entries.

    Args:
        data: The buffer of the entries.
        starts: Where each entry starts; all frames lie in the buffer.
    """
    if not len(starts):
        return np.empty(0, FRAME)
    # Taken as plain bytes: numpy would copy a structure field by field.
    view = np.ndarray((len(data) - FRAME_BYTES + 1,), f"V{FRAME_BYTES}", data, 0, (1,))
    frames: Frames = view[starts].view(FRAME)
    return frames


def fill_headers(headers: Structs, frames: Frames) -> None:
    """Fill in the headers of batches v2 that entries correspond to.

    Args:
        headers: Zeroed rows of dtype `record_batch.HEADER`.
        frames: The frames of the entries.
    """
    magics = frames["magic"]
    attributes = frames["attributes"] & np.where(magics == 1, *reversed(KNOWN_ATTRIBUTES))
    timestamps = np.where(magics == 1, frames["timestamp"], NO_TIMESTAMP)
    for name in _V2_ONLY_FIELDS:
        headers[name] = -1
    for name in ("length", "magic", "crc"):
        headers[name] = frames[name]
    headers["base_offset"] = frames["offset"]
    headers["attributes"] = attributes
    headers["base_timestamp"] = headers["max_timestamp"] = timestamps
    headers["count"] = np.where(attributes & _CODEC_MASK, WRAPPER_COUNT, 1)


def has_valid_crc32(entry: bytes) -> bool:
    """Return whether one complete entry has the CRC that it stores.

    Args:
        entry: The bytes of a message or wrapper, with its offset and size.
    """
    stored = int.from_bytes(entry[_CRC_AT:CRC_START], "big")
    return zlib_ng.crc32(memoryview(entry)[CRC_START:]) == stored


def check_message_crcs(data: bytes | bytearray, starts: Longs, ends: Longs, stored: Longs) -> None:
    """Check the CRC-32 of every entry.

    Args:
        data: The buffer of the entries.
        starts: Where each entry starts.
        ends: Where each entry ends.
        stored: The CRCs that they store.

    Raises:
        CorruptRecordError: An entry does not have its CRC; its position is that of the first such
            entry.
    """
    checked_starts = starts + CRC_START
    is_joined = len(data) <= MAX_JOINED_BYTES and _are_many_and_short(checked_starts, ends)
    if is_joined and all_crcs_match(data, checked_starts, ends, stored):
        return
    view = memoryview(data)
    rows = zip(checked_starts.tolist(), ends.tolist(), stored.tolist(), strict=True)
    for number, (start, end, expected) in enumerate(rows):
        computed = zlib_ng.crc32(view[start:end])
        if computed != expected:
            raise CorruptRecordError(
                f"CRC-32 is {computed:#010x}, the message says {expected:#010x}",
                int(starts[number]),
            )


def _are_many_and_short(starts: Longs, ends: Longs) -> bool:
    if len(starts) < _MIN_JOINED:
        return False
    return int((ends - starts).sum()) <= len(starts) * _MAX_JOINED_AVERAGE_BYTES


def find_keys_and_values(
    data: bytes | bytearray, starts: Longs, ends: Longs, magics: SignedBytes
) -> tuple[FieldBounds, FieldBounds]:
    """Return where the keys and the values of messages lie.

    Args:
        data: The buffer of the messages.
        starts: Where each message starts.
        ends: Where each message ends; each has the bytes of `MIN_LENGTHS`.
        magics: The magic of each message.

    Raises:
        CorruptRecordError: A key or value reaches past its message.
    """
    keys = _find_field(data, starts + np.where(magics == 1, KEY_AT[1], KEY_AT[0]), ends, "key")
    return keys, _find_field(data, keys.ends, ends, "value")


def _find_field(
    data: bytes | bytearray, positions: Longs, message_ends: Longs, name: str
) -> FieldBounds:
    """Read the lengths at these positions and return where the bytes after them lie."""
    starts = positions + LENGTH_BYTES
    reason = f"the length of a {name} reaches past its message"
    raise_if_corrupt(starts > message_ends, positions, reason)
    view = np.ndarray((max(len(data) - 3, 0),), ">i4", data, 0, (1,))
    lengths = view[positions].astype(np.int64) if len(positions) else np.empty(0, np.int64)
    is_null = lengths < 0
    ends = starts + np.where(is_null, 0, lengths)
    raise_if_corrupt(ends > message_ends, positions, f"a {name} reaches past its message")
    return FieldBounds(starts, ends, is_null)
