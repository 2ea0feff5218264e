"""Which partition each row goes to, and the rows of each partition in their order.

The rule: the column `partition` decides. If it is null or absent, the partitioner does:

    murmur2      Kafka's hash of the key; a row without a key goes to the task's sticky partition
    sticky       all rows go to the task's sticky partition
    round-robin  each row goes to the next partition, starting with the sticky one

The sticky partition of the next task is the next one, and each commit moves all tasks on by one:
that keeps files few and spreads the rows of many writes. Rows of one partition keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klog.connector.sink.write_rows import Rows
from klog.logformat.array_types import Longs
from klog.logformat.partitioner import key_partitions

_RADIX = 1 << 16
"""Up to this many partitions numpy sorts by digits, in time linear in the rows."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How the rows of one task are spread over the partitions of a topic."""

    partitions: int
    partitioner: str
    sticky_partition: int

    def assign(self, rows: Rows) -> Longs:
        """Return the partition of each row.

        Args:
            rows: The rows of the task, or some of them in order.
        """
        if rows.partition is None:
            return self._by_partitioner(rows)
        if not rows.partition.null_count:
            partitions: Longs = rows.partition.to_numpy()
            return partitions
        is_set = rows.partition.is_valid().to_numpy(False)
        return np.where(is_set, rows.partition.fill_null(0).to_numpy(), self._by_partitioner(rows))

    def _by_partitioner(self, rows: Rows) -> Longs:
        if self.partitioner == "round-robin":
            return (self.sticky_partition + rows.numbers) % self.partitions
        is_sticky = self.partitioner == "sticky" or self.partitions == 1
        if is_sticky or rows.key.null_count == len(rows):
            return np.full(len(rows), self.sticky_partition, np.int64)
        by_key = key_partitions(rows.key, self.partitions)
        partitions: Longs = by_key.fill_null(self.sticky_partition).to_numpy().astype(np.int64)
        return partitions


def split_by_partition(rows: Rows, partitions: Longs) -> Iterator[tuple[int, Rows]]:
    """Yield the rows of each partition, in their order, by rising partition.

    Args:
        rows: The rows.
        partitions: The partition of each row.
    """
    counts = np.bincount(partitions)
    used = np.flatnonzero(counts)
    if len(used) == 1:
        yield int(used[0]), rows
        return
    sort_keys = partitions.astype(np.uint16) if len(counts) <= _RADIX else partitions
    sorted_rows = rows.take(np.argsort(sort_keys, kind="stable"))
    start = 0
    for partition in used.tolist():
        end = start + int(counts[partition])
        yield partition, sorted_rows.slice(start, end)
        start = end
