"""When a transaction marker is removable: no data of its transaction is left.

The rule is Kafka's (docs/format.md, 20; `CleanedTransactionMetadata`): a marker is removable if,
since the last marker of its producer, the log has no transactional batch of the producer, not even
an empty one. It stays until its delete horizon has passed (`tombstone_retention`), so that a reader
in the middle of the transaction still reaches its end.
"""

from __future__ import annotations

import numpy as np

from klog.logformat.array_types import Longs
from klog.logformat.batches import record_batch as v2
from klog.logformat.producers.transaction_outcomes import (
    TransactionMarker,
    TransactionOutcomes,
    transaction_markers,
)


class CleanedTransactionMetadata:
    """The transactions of a partition: how each one ended, and whether data of it is left."""

    def __init__(self) -> None:
        """Start before the first batch."""
        self._with_data: set[int] = set()
        self._markers: list[TransactionMarker] = []
        self._removable: list[int] = []

    def add(self, data: bytes, batches: v2.Batches) -> None:
        """Add the next batches of the partition.

        Args:
            data: The bytes that `batches` lie in.
            batches: All batches, in the order of the log.

        Raises:
            CorruptRecordError: For a malformed control record, with the position in `data`.
        """
        markers = transaction_markers(data, batches)
        marker_offsets = {offset for offset, _, _ in markers}
        self._markers += markers
        relevant = batches.where(
            batches.is_transactional_data | np.isin(batches.base_offsets, list(marker_offsets))
        )
        producer_ids = relevant.headers["producer_id"].tolist()
        for offset, producer_id in zip(relevant.base_offsets.tolist(), producer_ids, strict=True):
            if offset not in marker_offsets:
                self._with_data.add(producer_id)
            elif producer_id in self._with_data:
                self._with_data.discard(producer_id)
            else:
                self._removable.append(offset)

    def outcomes(self) -> TransactionOutcomes:
        """Return how each transaction ended."""
        return TransactionOutcomes(self._markers)

    def removable_markers(self) -> Longs:
        """Return the offsets of the removable markers, rising."""
        return np.array(self._removable, np.int64)
