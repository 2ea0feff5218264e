"""The last batches of active producers, whose offsets a cleaning retains.

The rule is Kafka's (docs/format.md, 20; `UnifiedLog.lastRecordsOfActiveProducers`): a partition
knows a producer's last sequence from its last batch of data. A marker of another epoch ends that:
then the control batches of the new epoch count. A producer has expired when its last batch is as
old as `producer.id.expiration.ms`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from klog.logformat.array_types import Longs
from klog.logformat.batches import record_batch as v2
from klog.logformat.producers.producer_state import EXPIRATION_MS


@dataclass(slots=True)
class _Producer:
    """One producer: the last offset of its last batch of data, or those of its control batches.

    `control_offsets` count only without a `data_offset`, and are of `epoch`.
    """

    epoch: int = v2.UNSET
    timestamp_ms: int = v2.NO_TIMESTAMP
    data_offset: int | None = None
    control_offsets: list[int] = field(default_factory=list)


class ProducerLastBatches:
    """The last batches of all producers of a partition."""

    def __init__(self) -> None:
        """Start without producers."""
        self._producers: dict[int, _Producer] = {}

    def add(self, batches: v2.Batches) -> None:
        """Add batches: one step a producer and one a control batch.

        Args:
            batches: The next batches of the log.
        """
        batches = batches.where(batches.headers["producer_id"] >= 0)
        if not len(batches):
            return
        is_control_batch = batches.is_control
        data = np.flatnonzero(~is_control_batch)
        # A producer's last batch of data is the last one between two control batches.
        intervals = np.cumsum(is_control_batch)[data]
        producer_ids = batches.headers["producer_id"][data].astype(np.int64)
        order = np.lexsort((intervals, producer_ids))
        is_last = np.ones(len(data), np.bool_)
        is_last[:-1] = np.diff(producer_ids[order]) != 0
        is_last[:-1] |= np.diff(intervals[order]) != 0
        numbers = np.append(data[order[is_last]], np.flatnonzero(is_control_batch))
        for number in np.sort(numbers).tolist():
            self._update(batches, number, is_data=not is_control_batch[number])

    def prepend(self, earlier: ProducerLastBatches) -> None:
        """Add the producers of batches before these.

        Args:
            earlier: Of the batches before; it is not changed.
        """
        for producer_id, before in earlier._producers.items():
            last = self._producers.get(producer_id)
            if last is None:
                self._producers[producer_id] = replace(
                    before, control_offsets=[*before.control_offsets]
                )
            elif last.data_offset is None and last.epoch == before.epoch:
                last.control_offsets = (
                    [*before.control_offsets, *last.control_offsets]
                    if before.data_offset is None
                    else []
                )
                last.data_offset = before.data_offset

    def last_offsets(
        self,
        now_ms: int,
        expiration_ms: int = EXPIRATION_MS,
        among: ProducerLastBatches | None = None,
    ) -> Longs:
        """Return the last offsets of the batches to retain, rising.

        Args:
            now_ms: The time of the cleaning.
            expiration_ms: The broker's `producer.id.expiration.ms`.
            among: Only the producers that are here too.
        """
        producer_ids = self._producers if among is None else among._producers
        offsets: list[int] = []
        for producer in (self._producers[producer_id] for producer_id in producer_ids):
            if now_ms - producer.timestamp_ms >= expiration_ms:
                continue
            if producer.data_offset is None:
                offsets += producer.control_offsets
            else:
                offsets.append(producer.data_offset)
        return np.array(sorted(offsets), np.int64)

    def _update(self, batches: v2.Batches, number: int, *, is_data: bool) -> None:
        header = batches.headers[number]
        producer = self._producers.setdefault(int(header["producer_id"]), _Producer())
        epoch, last_offset = int(header["producer_epoch"]), int(batches.next_offsets[number]) - 1
        if is_data:
            producer.data_offset, producer.control_offsets = last_offset, []
        elif epoch != producer.epoch:
            producer.data_offset, producer.control_offsets = None, [last_offset]
        elif producer.data_offset is None:
            producer.control_offsets.append(last_offset)
        producer.epoch, producer.timestamp_ms = epoch, int(header["max_timestamp"])
