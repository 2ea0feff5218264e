"""Where a damaged tail ends: what a broker's recovery looks at, as functions over bytes.

A broker that was not shut down cleanly cuts its log at the first batch that is not whole and
intact, and with it all that follows (format notes 4.11). klog cuts only what is a torn tail: bytes
behind which no intact batch lies (`kafka-seen.md` 25). These functions say which positions could
begin a batch, and which bytes are padding.
"""

from __future__ import annotations

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.codecs import NAMES
from klog.logformat.varint import Longs


def plausible_starts(data: bytes, first_offset: int, room_bytes: int) -> Longs:
    """List the positions in `data` whose bytes could be the header of a batch.

    Such a header has magic 2, attributes and counts that can be, an offset of at least
    `first_offset`, and a length that fits into `room_bytes` counted from the start of `data`.
    """
    if len(data) < v2.HEADER_BYTES:
        return np.empty(0, np.int64)
    bytes_ = np.frombuffer(data, np.uint8)
    span = len(data) - v2.HEADER_BYTES + 1
    at = np.flatnonzero(bytes_[v2.MAGIC_AT : v2.MAGIC_AT + span] == 2).astype(np.int64)
    view: v2.Headers = np.ndarray((span,), v2.HEADER, data, 0, (1,))
    headers = view[at]
    length = headers["length"].astype(np.int64)
    delta = headers["last_offset_delta"].astype(np.int64)
    count = headers["count"].astype(np.int64)
    attributes = headers["attributes"].astype(np.int64)
    fits = (length >= v2.MIN_LENGTH) & (at + v2.FRAME_BYTES + length <= room_bytes)
    sound = (delta >= 0) & (count >= 0) & (count <= delta + 1) & (attributes >> 7 == 0)
    sound &= (attributes & v2.CODEC_MASK) < len(NAMES)
    found: Longs = at[fits & sound & (headers["base_offset"] >= first_offset)]
    return found


def is_padding(data: bytes) -> bool:
    """Tell whether these bytes are the zeros of a preallocated file."""
    return not data.strip(b"\0")
