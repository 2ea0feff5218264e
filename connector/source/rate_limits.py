"""How far a micro-batch reads of what there is: `maxOffsetsPerTrigger` and its relatives.

The rules are those of Spark's Kafka connector. A maximum is shared by the partitions in proportion
to their backlogs: each share is rounded down, but is at least one offset, so a micro-batch may have
fewer offsets than the maximum, or a few more. With a minimum, a micro-batch waits until there are
so many offsets, or until the delay has passed since the last one; the first one after a start does
not wait. A maximum of bytes is shared in the same way, by the bytes of the log, and a share becomes
offsets as if all records of a segment were of one size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from klog.connector.options.read_options import TriggerLimits
from klog.connector.snapshot import PartitionSnapshot
from klog.logformat.topic_partition import TopicPartition

Offsets: TypeAlias = Mapping[TopicPartition, int]


class RateLimiter:
    """Limits the micro-batches of one stream; remembers when the last one was let through."""

    def __init__(self, limits: TriggerLimits, clock: Callable[[], int]) -> None:
        """Start as after a restart of the query.

        Args:
            limits: The options.
            clock: Returns the time in ms.
        """
        self._limits, self._clock = limits, clock
        self._last_trigger_ms = 0

    def should_wait(self, start: Offsets, latest: Offsets) -> bool:
        """Return whether there is too little to read yet; a batch that may run is remembered.

        Args:
            start: The next offset of each partition.
            latest: The latest offsets.
        """
        now = self._clock()
        is_late = now - self._last_trigger_ms >= self._limits.max_delay_ms
        if not is_late and sum(_backlogs(start, latest).values()) < self._limits.min_offsets:
            return True
        self._last_trigger_ms = now
        return False

    def end_offsets(
        self, start: Offsets, latest: Offsets, logs: Mapping[TopicPartition, PartitionSnapshot]
    ) -> dict[TopicPartition, int]:
        """Return where the next micro-batch ends.

        Args:
            start: The next offset of each partition.
            latest: The latest offsets.
            logs: The partitions, for their sizes.
        """
        ends = dict(latest)
        backlogs = _backlogs(start, latest)
        if self._limits.max_offsets is not None:
            shares = _shares(backlogs, self._limits.max_offsets)
            ends |= {name: min(ends[name], start[name] + share) for name, share in shares.items()}
        if self._limits.max_bytes is not None:
            sizes = {
                name: logs[name].bytes_between(start[name], latest[name])
                for name in backlogs
                if name in logs
            }
            shares = _shares(sizes, self._limits.max_bytes)
            for name, share in shares.items():
                if sizes[name] <= share:
                    continue
                end = offset_after_bytes(logs[name], start[name], latest[name], share)
                ends[name] = min(ends[name], end)
        return ends


def offset_after_bytes(log: PartitionSnapshot, start: int, end: int, size_bytes: int) -> int:
    """Return the offset before which a range has about so many bytes; at least one offset.

    The range has more bytes than that.

    Args:
        log: The partition.
        start: The first offset.
        end: The offset after the last one.
        size_bytes: The bytes.
    """
    low, high = start, end
    while high - low > 1:
        middle = (low + high) // 2
        if log.bytes_between(start, middle) <= size_bytes:
            low = middle
        else:
            high = middle
    return max(low, start + 1)


def _backlogs(start: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    """Return how many offsets each partition has to read, without those that have none."""
    counts = {name: end - start[name] for name, end in latest.items()}
    return {name: count for name, count in counts.items() if count > 0}


def _shares(sizes: Mapping[TopicPartition, int], limit: int) -> dict[TopicPartition, int]:
    """Share a limit in proportion to sizes, as Spark's `KafkaMicroBatchStream.rateLimit` does."""
    total = sum(sizes.values())
    shares = {}
    for name, size in sizes.items():
        share = limit * (size / total) if total else 0.0
        shares[name] = math.ceil(share) if share < 1 else math.floor(share)
    return shares
