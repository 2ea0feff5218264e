"""Message formats v0 and v1: an entry is one message, or a wrapper of several compressed ones.

    offset  size  field
         0     8  offset        of the message; a wrapper's is that of its last message
         8     4  length        total size - 12
        12     4  crc           CRC-32 (zlib's) of byte 16 to the end
        16     1  magic         0 or 1
        17     1  attributes    bits 0-2 codec, 3 LogAppendTime (v1)
        18     8  timestamp     ms; v1 only, what follows begins at 18 in v0
        26     4  key length    -1 null
        30        key
               4  value length  -1 null
                  value

(docs/format.md, 1 and 4; Kafka's `LegacyRecord`.) Any negative length is null, and bytes behind
the value are not looked at, as Kafka does not. A length is checked against its entry before it is
used. `wrappers` opens the wrappers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from zlib_ng import zlib_ng

from klog.errors import CorruptRecordError
from klog.logformat.compiled.compiling import WORTH_RECORDS, Rented, frozen, message_loops
from klog.logformat.crc32 import MAX_JOINED_BYTES, all_match, all_match_by
from klog.logformat.index import Mask

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
"""Up to v1's timestamp; in v0 what stands there is no timestamp, but a message reaches as far."""
FRAME_BYTES = FRAME.itemsize
MIN_LENGTHS = (14, 22)
"""Of a message without key and value bytes, by magic."""
CHECKED_FROM = 16
KNOWN_ATTRIBUTES = (0x07, 0x0F)
"""The bits that mean something, by magic: no other is a control batch's or a transaction's."""
NO_TIMESTAMP = -1
NO_TIMESTAMP_TYPE = -1
WRAPPER_COUNT = -1
"""Of a header of batches, where only opening the wrapper tells how many messages there are."""

_NONE = ("leader_epoch", "producer_id", "producer_epoch", "base_sequence")
"""Fields of a header of batches that these formats do not have; -1 in v2 where there is none."""
_CODEC_MASK = 0x07
KEY_AT = (18, 26)
"""Where the length of a key stands, by magic."""
LENGTH_BYTES = 4
_CRC_AT = 12
READING = Rented(message_loops, WORTH_RECORDS)
"""The loops of whoever reads messages of these formats in this process."""
_MANY, _SHORT_BYTES = 256, 1000
"""From so many entries on, up to such a size of each, their CRCs are checked all at once."""

Longs = npt.NDArray[np.int64]
Frames = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Fields:
    """Where the keys or the values of messages lie: positions, and which are null."""

    starts: Longs
    ends: Longs
    null: Mask


def frames(data: bytes | bytearray, starts: Longs) -> Frames:
    """Give the frame, dtype `FRAME`, of each entry; all of them must lie in `data`."""
    if not len(starts):
        return np.empty(0, FRAME)
    # Gathered as plain bytes: numpy would copy a structure field by field.
    view = np.ndarray((len(data) - FRAME_BYTES + 1,), f"V{FRAME_BYTES}", data, 0, (1,))
    found: Frames = view[starts].view(FRAME)
    return found


def fill_headers(headers: npt.NDArray[np.void], frames: Frames) -> None:
    """Fill zeroed headers of batches v2, of dtype `batch.HEADER`, with what entries say."""
    magics = frames["magic"]
    attributes = frames["attributes"] & np.where(magics == 1, *reversed(KNOWN_ATTRIBUTES))
    timestamps = np.where(magics == 1, frames["timestamp"], NO_TIMESTAMP)
    for name in _NONE:
        headers[name] = -1
    for name in ("length", "magic", "crc"):
        headers[name] = frames[name]
    headers["base_offset"] = frames["offset"]
    headers["attributes"] = attributes
    headers["base_timestamp"] = headers["max_timestamp"] = timestamps
    headers["count"] = np.where(attributes & _CODEC_MASK, WRAPPER_COUNT, 1)


def is_intact(entry: bytes) -> bool:
    """Tell whether one whole entry, given from its first byte to its last, keeps its CRC."""
    stored = int.from_bytes(entry[_CRC_AT:CHECKED_FROM], "big")
    return zlib_ng.crc32(memoryview(entry)[CHECKED_FROM:]) == stored


def check_crcs(data: bytes | bytearray, starts: Longs, ends: Longs, stored: Longs) -> None:
    """Compare every entry with its stored CRC-32; raise `CorruptRecordError` at the first bad."""
    loops = READING.given(len(starts))
    if loops is not None and all_match_by(loops, data, starts, ends, stored):
        return
    begins = starts + CHECKED_FROM
    size = int((ends - begins).sum())
    many_and_short = len(starts) >= _MANY and size <= len(starts) * _SHORT_BYTES
    if many_and_short and len(data) <= MAX_JOINED_BYTES and all_match(data, begins, ends, stored):
        return
    view = memoryview(data)
    spans = zip(begins.tolist(), ends.tolist(), stored.tolist(), strict=True)
    for number, (begin, end, expected) in enumerate(spans):
        computed = zlib_ng.crc32(view[begin:end])
        if computed != expected:
            raise CorruptRecordError(
                f"CRC-32 is {computed:#010x}, the message says {expected:#010x}",
                int(starts[number]),
            )


def keys_and_values(
    data: bytes | bytearray, starts: Longs, ends: Longs, magics: npt.NDArray[np.int8]
) -> tuple[Fields, Fields]:
    """Find the keys and values of messages, which lie in `data` and have their least length.

    Raises `CorruptRecordError` for a length that leaves its message.
    """
    if (loops := READING.given(0)) is not None:
        found = np.empty((4, len(starts)), np.int64)
        null = np.empty((2, len(starts)), np.bool_)
        buffer = frozen(np.frombuffer(data, np.uint8))
        given = buffer, frozen(starts), frozen(ends)
        if loops.fields(*given, (found[0], found[1]), (found[2], found[3]), (null[0], null[1])):
            return Fields(found[0], found[1], null[0]), Fields(found[2], found[3], null[1])
    keys = _field(data, starts + np.where(magics == 1, KEY_AT[1], KEY_AT[0]), ends, "key")
    return keys, _field(data, keys.ends, ends, "value")


def _field(data: bytes | bytearray, at: Longs, ends: Longs, name: str) -> Fields:
    """Read a length and step over its bytes."""
    starts = at + LENGTH_BYTES
    _check(starts > ends, at, f"no room for the length of a {name}")
    view = np.ndarray((max(len(data) - 3, 0),), ">i4", data, 0, (1,))
    lengths = view[at].astype(np.int64) if len(at) else np.empty(0, np.int64)
    null = lengths < 0
    behind = starts + np.where(null, 0, lengths)
    _check(behind > ends, at, f"a {name} reaches past its message")
    return Fields(starts, behind, null)


def _check(wrong: Mask, at: Longs, reason: str) -> None:
    if wrong.any():
        raise CorruptRecordError(reason, int(at[int(np.argmax(wrong))]))
