"""What a batch says of its producer: id, epoch, sequences, and what its marker decides.

Only batches with a producer id matter to producer state. Sequences run over a batch's offsets, gaps
of compaction included, and go from 2147483647 to 0. (docs/format.md, 2 and 10; Kafka's
`DefaultRecordBatch.incrementSequence`.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.control import ABORT, COMMIT
from klog.logformat.index import Mask
from klog.logformat.sequence import advance
from klog.logformat.transactions import control_type, coordinator_epoch


@dataclass(frozen=True, slots=True)
class Marker:
    """How a transaction ended, and the epoch of the coordinator that said so."""

    is_abort: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class ProducerBatch:
    """One batch of a producer. `last_offset` is inclusive, as sequences are; `timestamp_ms` is max.

    A control batch that decides nothing, such as one emptied by compaction, has no `marker`.
    `position` is where the batch begins in the bytes it was read from, for messages.
    """

    producer_id: int
    epoch: int
    base_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int
    is_transactional: bool = False
    is_control: bool = False
    marker: Marker | None = None
    position: int = 0

    @property
    def last_sequence(self) -> int:
        """Give the sequence of the last offset, -1 for a batch without sequences."""
        return advance(self.base_sequence, self.last_offset - self.base_offset)


def producer_batches(data: bytes, batches: v2.Batches) -> list[ProducerBatch]:
    """List the batches that have a producer id; `data` is what `batches` was scanned from.

    Raises `CorruptRecordError` with the position of a control batch whose record is malformed.
    """
    own = batches.where(batches.headers["producer_id"] >= 0)
    headers = own.headers
    flags = own.attributes
    is_control = (flags & v2.CONTROL) != 0
    columns = zip(
        headers["producer_id"].tolist(),
        headers["producer_epoch"].tolist(),
        headers["base_sequence"].tolist(),
        own.base_offsets.tolist(),
        (own.next_offsets - 1).tolist(),
        headers["max_timestamp"].tolist(),
        ((flags & v2.TRANSACTIONAL) != 0).tolist(),
        is_control.tolist(),
        _markers(data, own, is_control),
        own.starts.tolist(),
        strict=True,
    )
    return [ProducerBatch(*facts) for facts in columns]


def _markers(data: bytes, batches: v2.Batches, is_control: Mask) -> list[Marker | None]:
    found: list[Marker | None] = [None] * len(batches)
    for number in np.flatnonzero(is_control).tolist():
        found[number] = end_marker(data, int(batches.starts[number]), int(batches.ends[number]))
    return found


def end_marker(data: bytes, start: int, end: int) -> Marker | None:
    """Decode the marker in the control batch `data[start:end]`; None if it decides nothing.

    Raises `CorruptRecordError` for a record that no marker can be.
    """
    kind = control_type(data, start, end)
    if kind not in (ABORT, COMMIT):
        return None
    return Marker(kind == ABORT, coordinator_epoch(data, start, end))
