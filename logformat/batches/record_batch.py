"""Batches of a log: the fields of their headers, and many batches as columns.

Record batch v2:

    offset  size  field
         0     8  baseOffset            outside the CRC, set by the leader
         8     4  batchLength           total size - 12
        12     4  partitionLeaderEpoch  outside the CRC
        16     1  magic                 2
        17     4  crc                   CRC-32C of byte 21 to the end
        21     2  attributes            bits 0-2 codec, 3 LogAppendTime, 4 transactional,
                                        5 control, 6 delete horizon
        23     4  lastOffsetDelta
        27     8  baseTimestamp         ms, or the delete horizon
        35     8  maxTimestamp          ms
        43     8  producerId
        51     2  producerEpoch
        53     4  baseSequence
        57     4  recordsCount
        61        records, or their compressed form

(docs/format.md, 1 and 2; Kafka's `DefaultRecordBatch`, `FileLogInputStream`.) The rule: an entry of
message format v0 or v1 (`legacy_messages`) is a batch by itself, and may lie among batches v2. Its
offset is the base offset, its timestamp is base and maximum, and it has no epochs, producer or
sequence. A plain one counts 1. For a wrapper of compressed messages the count is -1 and the offset
is the *last* one, because only reading it shows how many messages it holds, and from which offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from klog.logformat.array_types import Longs, Mask, Shorts, Structs
from klog.logformat.batches import legacy_messages

HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
HEADER_BYTES = HEADER.itemsize
FRAME_BYTES = 12
CRC_START = 21
MAGIC_AT = 16
MIN_LENGTH = HEADER_BYTES - FRAME_BYTES
MIN_FRAME_BYTES = 17
"""Up to the magic, which tells the formats apart."""
MAGIC = 2
MIN_LENGTHS = (*legacy_messages.MIN_LENGTHS, MIN_LENGTH)
"""The length of a batch without content, by magic."""
MIN_BATCH_BYTES = FRAME_BYTES + legacy_messages.MIN_LENGTHS[0]
WRAPPER_COUNT = legacy_messages.WRAPPER_COUNT
MAX_OFFSET_DELTA = (1 << 31) - 1
MAX_OFFSET = (1 << 63) - 2
"""The highest offset of a record: the next offset is a long, too."""
NO_TIMESTAMP = legacy_messages.NO_TIMESTAMP
UNSET = -1
"""The value of a field that is not set: leader epoch, producer id and epoch, sequence."""
MAX_LEADER_EPOCH = (1 << 31) - 1

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

Headers: TypeAlias = Structs
"""Rows of dtype `HEADER`."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Consecutive batches of one buffer, a row each.

    Attributes:
        starts: Where each batch starts in the buffer.
        ends: Where each batch ends.
        headers: The header of each batch.
    """

    starts: Longs
    ends: Longs
    headers: Headers

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self.starts)

    @property
    def base_offsets(self) -> Longs:
        """Return the base offset of each batch; of a wrapper the last one, see `min_offsets`."""
        offsets: Longs = self.headers["base_offset"].astype(np.int64)
        return offsets

    @property
    def min_offsets(self) -> Longs:
        """Return an offset for each batch below which it has no record.

        This is the base offset, and for a wrapper the offset after the batch before it.
        """
        previous_ends = np.zeros(len(self), np.int64)
        previous_ends[1:] = self.next_offsets[:-1]
        is_wrapper = self.headers["count"] == WRAPPER_COUNT
        return np.where(is_wrapper, previous_ends, self.base_offsets)

    @property
    def next_offsets(self) -> Longs:
        """Return the offset after the last one of each batch, whether or not it has a record."""
        offsets: Longs = self.base_offsets + self.headers["last_offset_delta"] + 1
        return offsets

    @property
    def is_legacy(self) -> Mask:
        """Return which batches are entries of message formats v0 and v1."""
        mask: Mask = self.headers["magic"] < MAGIC
        return mask

    @property
    def is_control(self) -> Mask:
        """Return which batches are control batches: transaction markers, or a controller's."""
        mask: Mask = (self.attributes & CONTROL) != 0
        return mask

    @property
    def is_transactional_data(self) -> Mask:
        """Return which batches are data of a transaction."""
        mask: Mask = (self.attributes & (CONTROL | TRANSACTIONAL)) == TRANSACTIONAL
        return mask

    @property
    def attributes(self) -> Shorts:
        """Return the attributes of each batch in the machine's byte order."""
        return self.headers["attributes"].astype(np.int16)

    def where(self, mask: Mask) -> Batches:
        """Return the batches for which a mask is true.

        Args:
            mask: A bool for each batch.
        """
        return Batches(self.starts[mask], self.ends[mask], self.headers[mask])

    def slice(self, start: int, end: int) -> Batches:
        """Return the batches from number `start` to before `end`.

        Args:
            start: The number of the first batch.
            end: The number after that of the last batch.
        """
        return Batches(self.starts[start:end], self.ends[start:end], self.headers[start:end])
