"""The batches by which a partition knows its producers: a cleaning keeps them, if need be empty.

The rule is Kafka's (docs/format.md, 20; `UnifiedLog.lastRecordsOfActiveProducers`): of each
producer that has not expired the last batch of data, for its last sequence stands there. A marker
of another epoch ends what is known of sequences: then the control batches of that epoch stay. A
producer has expired when its last batch is as old as `producer.id.expiration.ms`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.index import Longs
from klog.logformat.producer import EXPIRATION_MS
from klog.logformat.transactions import is_control


@dataclass(slots=True)
class _Last:
    """What is known of one producer; without `data` its control batches of this epoch count."""

    epoch: int = v2.NONE_SET
    timestamp_ms: int = v2.NO_TIMESTAMP
    data: int | None = None
    control: list[int] = field(default_factory=list)


class LastBatches:
    """The last batches of all producers of a partition, whose batches are given in order."""

    def __init__(self) -> None:
        """Begin with none."""
        self._producers: dict[int, _Last] = {}

    def add(self, batches: v2.Batches) -> None:
        """Take more batches: a step a producer, and one a control batch."""
        own = batches.where(batches.headers["producer_id"] >= 0)
        if not len(own):
            return
        control = is_control(own)
        data = np.flatnonzero(~control)
        # Of data only a producer's last batch between two control batches can be its last.
        between, ids = np.cumsum(control)[data], own.headers["producer_id"][data].astype(np.int64)
        order = np.lexsort((between, ids))
        is_last = np.ones(len(data), np.bool_)
        is_last[:-1] = (np.diff(ids[order]) != 0) | (np.diff(between[order]) != 0)
        wanted = np.append(data[order[is_last]], np.flatnonzero(control))
        for number in np.sort(wanted).tolist():
            self._take(own, number, is_control=bool(control[number]))

    def put_before(self, earlier: LastBatches) -> None:
        """Add what is known of batches that these follow."""
        for producer, before in earlier._producers.items():
            last = self._producers.get(producer)
            if last is None:
                self._producers[producer] = replace(before, control=[*before.control])
            elif last.data is None and last.epoch == before.epoch:
                last.control = [*before.control, *last.control] if before.data is None else []
                last.data = before.data

    def kept(
        self,
        now_ms: int,
        expiration_ms: int = EXPIRATION_MS,
        among: LastBatches | None = None,
    ) -> Longs:
        """Give the last offsets of the batches that stay, rising; of producers `among` some."""
        some = self._producers if among is None else among._producers
        found: list[int] = []
        for one in (self._producers[producer] for producer in some):
            if now_ms - one.timestamp_ms < expiration_ms:
                found += one.control if one.data is None else [one.data]
        return np.array(sorted(found), np.int64)

    def _take(self, batches: v2.Batches, number: int, *, is_control: bool) -> None:
        header = batches.headers[number]
        last = self._producers.setdefault(int(header["producer_id"]), _Last())
        epoch, offset = int(header["producer_epoch"]), int(batches.next_offsets[number]) - 1
        if not is_control:
            last.data, last.control = offset, []
        elif epoch != last.epoch:
            last.data, last.control = None, [offset]
        elif last.data is None:
            last.control.append(offset)
        last.epoch, last.timestamp_ms = epoch, int(header["max_timestamp"])
