"""The producer fields of a batch: id, epoch, sequences, and the outcome that its marker has.

The rule: only batches with a producer id matter to producer state. Sequences number a batch's
offsets, gaps of compaction included. (docs/format.md, 2 and 10.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klog.logformat.array_types import Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.producers.control_records import ABORT, COMMIT
from klog.logformat.producers.transaction_outcomes import control_type, coordinator_epoch


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """How a transaction ended, and the epoch of the coordinator that ended it."""

    is_abort: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class ProducerBatch:
    """One batch of a producer.

    Attributes:
        producer_id: At least 0.
        epoch: The producer's epoch.
        base_sequence: -1 in a batch without sequences.
        base_offset: Of the batch.
        last_offset: Inclusive.
        timestamp_ms: The largest of the batch.
        is_transactional: Whether the batch is part of a transaction.
        is_control: Whether it is a control batch.
        marker: Of a control batch; None if it has no outcome, as one that a compaction emptied.
        position: Where the batch starts in the bytes that it was read from, for errors.
    """

    producer_id: int
    epoch: int
    base_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int
    is_transactional: bool = False
    is_control: bool = False
    marker: EndTransactionMarker | None = None
    position: int = 0

    @property
    def last_sequence(self) -> int:
        """Return the sequence of the last offset, -1 in a batch without sequences."""
        return increment_sequence(self.base_sequence, self.last_offset - self.base_offset)


def producer_batches(data: bytes, batches: v2.Batches) -> list[ProducerBatch]:
    """Return the batches that have a producer id.

    Args:
        data: The bytes that `batches` lie in.
        batches: Any batches.

    Raises:
        CorruptRecordError: For a malformed control record, with the position in `data`.
    """
    batches = batches.where(batches.headers["producer_id"] >= 0)
    headers, is_control = batches.headers, batches.is_control
    columns = zip(
        headers["producer_id"].tolist(),
        headers["producer_epoch"].tolist(),
        headers["base_sequence"].tolist(),
        batches.base_offsets.tolist(),
        (batches.next_offsets - 1).tolist(),
        headers["max_timestamp"].tolist(),
        ((batches.attributes & v2.TRANSACTIONAL) != 0).tolist(),
        is_control.tolist(),
        _markers(data, batches, is_control),
        batches.starts.tolist(),
        strict=True,
    )
    return [ProducerBatch(*fields) for fields in columns]


def _markers(
    data: bytes, batches: v2.Batches, is_control: Mask
) -> list[EndTransactionMarker | None]:
    markers: list[EndTransactionMarker | None] = [None] * len(batches)
    for number in np.flatnonzero(is_control).tolist():
        start, end = int(batches.starts[number]), int(batches.ends[number])
        kind = control_type(data, start, end)
        if kind in (ABORT, COMMIT):
            epoch = coordinator_epoch(data, start, end)
            markers[number] = EndTransactionMarker(kind == ABORT, epoch)
    return markers
