"""The header of a batch v2: what it says of the records behind it, whose CRC-32C it holds.

The rule: whoever made the records of a batch, its header is made here, and checks last what only
shows when they are compressed. (docs/format.md, 2.)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import google_crc32c
import numpy as np

from klog.logformat import batch as v2
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.compress import compress
from klog.logformat.form import Form

_WORTH_A_CALL_BYTES = 8 << 10
"""Pieces that are smaller on average are joined: copying them takes less time than a call each."""

_frame = struct.Struct(">qiibI").pack
_checked = struct.Struct(">hiqqqhii").pack


@dataclass(frozen=True, slots=True)
class Span:
    """What the header of one batch says of its records."""

    base_offset: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    base_sequence: int
    count: int


def sealed(
    payload: Sequence[memoryview], form: Form, attributes: int, span: Span, first_row: int = 0
) -> bytes:
    """Compress the records, and put the header and its CRC-32C before them.

    Compression makes some records larger: that what comes of it is too large shows here alone.
    """
    packed = compress(attributes & v2.CODEC_MASK, payload, form.level)
    packed_bytes = sum(map(len, packed))
    if packed_bytes < _WORTH_A_CALL_BYTES * len(packed):
        packed = [b"".join(packed)]
    size = v2.HEADER_BYTES + packed_bytes
    if size > MAX_BATCH_BYTES:
        raise ValueError(
            f"row {first_row}: the batch of {span.count} records from here has {size} bytes when "
            f"compressed, the limit is {MAX_BATCH_BYTES}; lower batch_bytes or do not compress"
        )
    checked = _checked(
        attributes,
        span.last_offset_delta,
        span.base_timestamp,
        span.max_timestamp,
        form.producer_id,
        form.producer_epoch,
        span.base_sequence,
        span.count,
    )
    crc = google_crc32c.value(checked)
    for piece in packed:
        crc = google_crc32c.extend(crc, np.frombuffer(piece, np.uint8))
    length = v2.MIN_LENGTH + packed_bytes
    front = _frame(span.base_offset, length, form.leader_epoch, v2.MAGIC, crc)
    return b"".join((front, checked, *packed))
