"""What a torn tail is, and how to find the batches in it.

The rule (docs/format.md, 14; seen 25, 26 and 30): a broker that was not shut down cleanly cuts its
log at the first batch that is cut short or fails its CRC, and all bytes after it. klog takes those
bytes for a torn tail, and leaves them out, only if all of these hold:

    no batch in them is intact (`plausible_starts` lists where to look)
    what is damaged in them is covered by a CRC
    the broker had not flushed them: its recovery point is at or below the end of the last batch
        before them

Otherwise the bytes are damage, and reading them is an error. Zeros at the end are padding of a
preallocated file (`is_padding`), not a tail. `connector/kafka_dir/tail_check.py` applies the rule
to the files of a broker's directory.
"""

from __future__ import annotations

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Bytes, Longs, Mask
from klog.logformat.batches import legacy_messages
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.codecs.codec_names import CODEC_NAMES, ZSTD


def scan_to_damage(data: bytes) -> tuple[v2.Batches, CorruptRecordError | None]:
    """Return the batches before the first damage that headers show, and that damage.

    Args:
        data: Bytes that start with a batch. The last batch may be cut short: that is not damage.
    """
    damage: CorruptRecordError | None = None
    while True:
        try:
            return scan_batches(data, 0, len(data) if damage is None else damage.position), damage
        except CorruptRecordError as earlier:
            damage = earlier


def plausible_starts(data: bytes, min_offset: int, room_bytes: int) -> Longs:
    """Return the positions in `data` at which a batch could start.

    At such a position lies a header with a valid magic, attributes and counts. A message of format
    v0 or v1 is as long as its key and value, as far as they lie in `data`.

    Args:
        data: Any bytes.
        min_offset: The base offset that a batch has at least.
        room_bytes: How many bytes there are from the start of `data` on, some of them after it: a
            batch must fit.
    """
    view = np.frombuffer(data, np.uint8)
    starts = np.sort(np.concatenate((_v2_starts(data, view), _legacy_starts(data, view))))
    if not len(starts):
        return starts
    frames = legacy_messages.decode_frames(data, starts)
    fits = starts + v2.FRAME_BYTES + frames["length"].astype(np.int64) <= room_bytes
    plausible: Longs = starts[fits & (frames["offset"] >= min_offset)]
    return plausible


def is_padding(data: bytes) -> bool:
    """Return whether all bytes are zeros, as in a preallocated file.

    Args:
        data: The bytes after the last batch.
    """
    return not data.strip(b"\0")


def _v2_starts(data: bytes, view: Bytes) -> Longs:
    """Return where a header of format v2 could start."""
    count = len(data) - v2.HEADER_BYTES + 1
    if count <= 0:
        return np.empty(0, np.int64)
    starts = np.flatnonzero(view[v2.MAGIC_AT : v2.MAGIC_AT + count] == v2.MAGIC).astype(np.int64)
    all_headers: v2.Headers = np.ndarray((count,), v2.HEADER, data, 0, (1,))
    headers = all_headers[starts]
    last_offset_deltas = headers["last_offset_delta"].astype(np.int64)
    record_counts = headers["count"].astype(np.int64)
    attributes = headers["attributes"].astype(np.int64)
    is_valid = (last_offset_deltas >= 0) & (record_counts >= 0)
    is_valid &= (record_counts <= last_offset_deltas + 1) & (attributes >> 7 == 0)
    is_valid &= (attributes & v2.CODEC_MASK) < len(CODEC_NAMES)
    plausible: Longs = starts[is_valid & (headers["length"] >= v2.MIN_LENGTH)]
    return plausible


def _legacy_starts(data: bytes, view: Bytes) -> Longs:
    """Return where a message of format v0 or v1 could start."""
    count = len(data) - legacy_messages.FRAME_BYTES + 1
    if count <= 0:
        return np.empty(0, np.int64)
    # The zeros of a preallocated file have a magic but no length.
    has_length = view[8 : 8 + count] | view[9 : 9 + count]
    has_length |= view[10 : 10 + count] | view[11 : 11 + count]
    has_magic = view[v2.MAGIC_AT : v2.MAGIC_AT + count] < v2.MAGIC
    starts = np.flatnonzero(has_magic & (has_length > 0)).astype(np.int64)
    frames = legacy_messages.decode_frames(data, starts)
    is_v1 = frames["magic"] == 1
    attributes = frames["attributes"]
    is_valid = frames["length"] >= np.where(is_v1, *reversed(legacy_messages.MIN_LENGTHS))
    is_valid &= (attributes & ~np.where(is_v1, *reversed(legacy_messages.KNOWN_ATTRIBUTES))) == 0
    is_valid &= (attributes & v2.CODEC_MASK) < ZSTD
    starts, frames = starts[is_valid], frames[is_valid]
    return starts[_fields_fill_message(data, starts, frames)]


def _fields_fill_message(data: bytes, starts: Longs, frames: legacy_messages.Frames) -> Mask:
    """Return which messages are as long as their key and value, or reach beyond `data`."""
    ends = starts + v2.FRAME_BYTES + frames["length"].astype(np.int64)
    key_at = starts + np.where(frames["magic"] == 1, *reversed(legacy_messages.KEY_AT))
    value_at = key_at + 4 + _lengths(data, key_at)
    fills: Mask = (value_at + 4 > len(data)) & (value_at + 4 <= ends)
    visible = np.flatnonzero((value_at + 4 <= len(data)) & (value_at + 4 <= ends))
    value_ends = value_at[visible] + 4 + _lengths(data, value_at[visible])
    fills[visible] = value_ends == ends[visible]
    return fills


def _lengths(data: bytes, positions: Longs) -> Longs:
    """Read the length at each position, null as 0; past the end it counts as too long."""
    all_lengths = np.ndarray((max(len(data) - 3, 0),), ">i4", data, 0, (1,))
    lengths = np.full(len(positions), len(data), np.int64)
    inside = positions < len(all_lengths)
    lengths[inside] = all_lengths[positions[inside]]
    lengths[lengths == -1] = 0
    return np.where(lengths < 0, len(data), lengths)
