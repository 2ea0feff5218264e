"""Transactions as a cleaning meets them: how each ended, and of which nothing is left.

The rule is Kafka's (docs/format.md, 20; `CleanedTransactionMetadata`): a marker is spent if since
its producer's last one no batch of a transaction was met, not even an empty one. It goes only at a
cleaning behind its delete horizon, which the cleaning that finds it spent first gives it; until
then a reader who is somewhere in the transaction still meets its end.
"""

from __future__ import annotations

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.index import Longs
from klog.logformat.transactions import (
    Decisions,
    is_transactional_data,
    markers,
)


class Transactions:
    """All transactions of a partition, whose batches are given in order."""

    def __init__(self) -> None:
        """Begin with none."""
        self._met: set[int] = set()
        self._decided: list[tuple[int, int, int]] = []
        self._spent: list[int] = []

    def add(self, data: bytes, batches: v2.Batches) -> None:
        """Take more batches, which lie in `data`; raises `CorruptRecordError` with a position."""
        found = markers(data, batches)
        ended = {offset for offset, _, _ in found}
        self._decided += found
        relevant = batches.where(
            is_transactional_data(batches) | np.isin(batches.base_offsets, list(ended))
        )
        ids = relevant.headers["producer_id"].tolist()
        for offset, producer in zip(relevant.base_offsets.tolist(), ids, strict=True):
            if offset not in ended:
                self._met.add(producer)
            elif producer in self._met:
                self._met.discard(producer)
            else:
                self._spent.append(offset)

    def decisions(self) -> Decisions:
        """Give how each transaction ended."""
        return Decisions(self._decided)

    def spent_markers(self) -> Longs:
        """Give the offsets of the markers of whose transactions nothing is left, rising."""
        return np.array(self._spent, np.int64)
