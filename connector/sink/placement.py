"""Which partition each row goes to, and the rows of each partition in their order.

The rule: the column `partition` decides; where it is null or not there, the partitioner does:

    murmur2      Kafka's hash of the key; a row without a key goes where the task's others do
    sticky       all rows go where the task's rows without a key do
    round-robin  row after row to the next partition

A task's rows without a key share one partition, the next task's the next, and with every commit all
move on by one: that keeps files few and spreads what many writes bring. No row moves past another
of its partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klog.connector.sink.rows import Rows
from klog.logformat.index import Longs
from klog.logformat.partitioner import key_partitions

_RADIX = 1 << 16
"""Up to here numbers are sorted by their digits, in a few steps whatever their count."""


@dataclass(frozen=True, slots=True)
class Placement:
    """How the rows of one task are placed: `sticky` is where those without a key go."""

    partitions: int
    partitioner: str
    sticky: int

    def of(self, rows: Rows) -> Longs:
        """Give the partition of each row."""
        if rows.partition is None:
            return self._chosen(rows)
        if not rows.partition.null_count:
            placed: Longs = rows.partition.to_numpy()
            return placed
        named = rows.partition.is_valid().to_numpy(False)
        return np.where(named, rows.partition.fill_null(0).to_numpy(), self._chosen(rows))

    def _chosen(self, rows: Rows) -> Longs:
        if self.partitioner == "round-robin":
            return (self.sticky + rows.numbers) % self.partitions
        is_for_one = self.partitioner == "sticky" or self.partitions == 1
        if is_for_one or rows.key.null_count == len(rows):
            return np.full(len(rows), self.sticky, np.int64)
        by_key = key_partitions(rows.key, self.partitions)
        chosen: Longs = by_key.fill_null(self.sticky).to_numpy().astype(np.int64)
        return chosen


def grouped(rows: Rows, placed: Longs) -> Iterator[tuple[int, Rows]]:
    """Give each partition's rows, which keep their order, by rising partition."""
    counts = np.bincount(placed)
    found = np.flatnonzero(counts)
    if len(found) == 1:
        yield int(found[0]), rows
        return
    digits = placed.astype(np.uint16) if len(counts) <= _RADIX else placed
    sorted_rows = rows.take(np.argsort(digits, kind="stable"))
    begin = 0
    for partition in found.tolist():
        end = begin + int(counts[partition])
        yield partition, sorted_rows.part(begin, end)
        begin = end
