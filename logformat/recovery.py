"""Where a damaged tail ends: what a broker's recovery looks at, as functions over bytes.

A broker that was not shut down cleanly cuts its log at the first batch that is not whole and
intact, and with it all that follows (docs/format.md, 14). klog cuts only what is a torn tail: bytes
behind which no intact batch lies (docs/format.md, seen 25). These functions say which positions
could begin a batch, and which bytes are padding.
"""

from __future__ import annotations

import numpy as np

from klog.logformat import batch as v2
from klog.logformat import legacy
from klog.logformat.codecs import NAMES, ZSTD
from klog.logformat.index import Mask
from klog.logformat.varint import Bytes, Longs


def plausible_starts(data: bytes, first_offset: int, room_bytes: int) -> Longs:
    """List the positions in `data` whose bytes could be the header of a batch.

    Such a header has a magic, attributes and counts that can be, an offset of at least
    `first_offset`, and a length that fits into `room_bytes` counted from the start of `data`; a
    message of format v0 or v1 is as long as its key and value say, as far as `data` shows them.
    """
    bytes_ = np.frombuffer(data, np.uint8)
    found = np.sort(np.concatenate((_of_v2(data, bytes_), _of_legacy(data, bytes_))))
    if not len(found):
        return found
    frames = legacy.frames(data, found)
    fits = found + v2.FRAME_BYTES + frames["length"].astype(np.int64) <= room_bytes
    kept: Longs = found[fits & (frames["offset"] >= first_offset)]
    return kept


def _of_v2(data: bytes, bytes_: Bytes) -> Longs:
    """List where a header of format v2 could lie."""
    span = len(data) - v2.HEADER_BYTES + 1
    if span <= 0:
        return np.empty(0, np.int64)
    at = np.flatnonzero(bytes_[v2.MAGIC_AT : v2.MAGIC_AT + span] == v2.MAGIC).astype(np.int64)
    view: v2.Headers = np.ndarray((span,), v2.HEADER, data, 0, (1,))
    headers = view[at]
    delta = headers["last_offset_delta"].astype(np.int64)
    count = headers["count"].astype(np.int64)
    attributes = headers["attributes"].astype(np.int64)
    sound = (delta >= 0) & (count >= 0) & (count <= delta + 1) & (attributes >> 7 == 0)
    sound &= (attributes & v2.CODEC_MASK) < len(NAMES)
    found: Longs = at[sound & (headers["length"] >= v2.MIN_LENGTH)]
    return found


def _of_legacy(data: bytes, bytes_: Bytes) -> Longs:
    """List where a message of format v0 or v1 could lie."""
    span = len(data) - legacy.FRAME_BYTES + 1
    if span <= 0:
        return np.empty(0, np.int64)
    # Zeros, of which a preallocated file is full, have a magic but no length.
    has_length = bytes_[8 : 8 + span] | bytes_[9 : 9 + span]
    has_length |= bytes_[10 : 10 + span] | bytes_[11 : 11 + span]
    has_magic = bytes_[v2.MAGIC_AT : v2.MAGIC_AT + span] < v2.MAGIC
    at = np.flatnonzero(has_magic & (has_length > 0)).astype(np.int64)
    frames = legacy.frames(data, at)
    is_v1 = frames["magic"] == 1
    attributes = frames["attributes"]
    sound = frames["length"] >= np.where(is_v1, *reversed(legacy.MIN_LENGTHS))
    sound &= (attributes & ~np.where(is_v1, *reversed(legacy.KNOWN_ATTRIBUTES))) == 0
    sound &= (attributes & v2.CODEC_MASK) < ZSTD
    at, frames = at[sound], frames[sound]
    return at[_is_filled(data, at, frames)]


def _is_filled(data: bytes, at: Longs, frames: legacy.Frames) -> Mask:
    """Tell which messages are as long as their key and value, or reach beyond `data`."""
    ends = at + v2.FRAME_BYTES + frames["length"].astype(np.int64)
    key_at = at + np.where(frames["magic"] == 1, *reversed(legacy.KEY_AT))
    value_at = key_at + 4 + _length(data, key_at)
    filled: Mask = (value_at + 4 > len(data)) & (value_at + 4 <= ends)
    seen = np.flatnonzero((value_at + 4 <= len(data)) & (value_at + 4 <= ends))
    filled[seen] = value_at[seen] + 4 + _length(data, value_at[seen]) == ends[seen]
    return filled


def _length(data: bytes, at: Longs) -> Longs:
    """Read the length at each position, null as 0; what lies past the end counts as too long."""
    view = np.ndarray((max(len(data) - 3, 0),), ">i4", data, 0, (1,))
    lengths = np.full(len(at), len(data), np.int64)
    inside = at < len(view)
    lengths[inside] = view[at[inside]]
    lengths[lengths == -1] = 0
    return np.where(lengths < 0, len(data), lengths)


def is_padding(data: bytes) -> bool:
    """Tell whether these bytes are the zeros of a preallocated file."""
    return not data.strip(b"\0")
