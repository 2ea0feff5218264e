"""Where the messages of formats v0 and v1 in wrappers start, without a Python loop over them.

The rule: a message says where the next one starts, so the messages of one wrapper are found in
order; those of many wrappers are found side by side, as `record_bounds` finds records.
(docs/format.md, 4.)
"""

from __future__ import annotations

import struct

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs
from klog.logformat.batches import legacy_messages
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_limits import MAX_WRAPPER_MESSAGES
from klog.logformat.batches.corrupt_checks import raise_if_corrupt
from klog.logformat.batches.record_sections import RecordSections

TOO_SHORT = "a message shorter than its fields in a wrapper"

_CUT_SHORT = "a message in a wrapper is cut short"
_MIN_LANES = 16
"""To walk fewer sections side by side costs more calls of numpy than it saves steps."""
_LENGTH_AT = 8
_MIN_MESSAGE_BYTES = v2.FRAME_BYTES + legacy_messages.MIN_LENGTHS[0]

_unpack_length = struct.Struct(">i").unpack_from


def message_starts(sections: RecordSections) -> tuple[Longs, Longs]:
    """Return where each message starts, and how many messages each section has.

    Sections are walked a message of each in a step, while there are enough sections.

    Args:
        sections: The uncompressed messages of wrappers, or runs of plain messages.

    Raises:
        CorruptRecordError: A message is shorter than its fields or cut short, or a section has too
            many; its position is one in `sections.data`.
    """
    steps: list[Longs] = []
    positions, ends = sections.starts, sections.ends
    view = np.ndarray((len(sections.data) - 3,), ">i4", sections.data, 0, (1,))
    while len(positions) >= _MIN_LANES:
        steps.append(positions)
        raise_if_corrupt(ends - positions < _MIN_MESSAGE_BYTES, positions, TOO_SHORT)
        lengths = view[positions + _LENGTH_AT].astype(np.int64)
        raise_if_corrupt(lengths < legacy_messages.MIN_LENGTHS[0], positions, TOO_SHORT)
        positions = positions + v2.FRAME_BYTES + lengths
        is_inside = positions < ends
        if np.count_nonzero(is_inside) < len(is_inside):
            raise_if_corrupt(positions > ends, ends - 1, _CUT_SHORT)
            positions, ends = positions[is_inside], ends[is_inside]
    for position, end in zip(positions.tolist(), ends.tolist(), strict=True):
        steps.append(_walk(sections.data, position, end))
    starts = np.sort(np.concatenate(steps))
    counts = np.diff(np.searchsorted(starts, np.append(sections.starts, sections.ends[-1])))
    reason = f"a wrapper of more than {MAX_WRAPPER_MESSAGES} messages is refused"
    raise_if_corrupt(counts > MAX_WRAPPER_MESSAGES, sections.starts, reason)
    return starts, counts


def _walk(data: bytes | bytearray, position: int, end: int) -> Longs:
    """Return where the messages between two positions start, found one after the other."""
    starts: list[int] = []
    append, min_length = starts.append, legacy_messages.MIN_LENGTHS[0]
    while position < end:
        (length,) = _unpack_length(data, position + _LENGTH_AT)
        if length < min_length or end - position < _MIN_MESSAGE_BYTES:
            raise CorruptRecordError(TOO_SHORT, position)
        append(position)
        position += v2.FRAME_BYTES + length
    if position > end:
        raise CorruptRecordError(_CUT_SHORT, end - 1)
    return np.array(starts, np.int64)
