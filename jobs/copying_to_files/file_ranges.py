"""How a batch is cut into ranges, each with files of its own.

The rule: a range has about as many bytes of the log as a file may have, and at least one offset. So
files are cut by size when they are planned, and not by what is in them: a repeated run cuts at the
same offsets, even if a compaction has removed records meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from klog.connector.snapshot import Logs, PartitionSnapshot
from klog.connector.source.rate_limits import offset_after_bytes
from klog.jobs.shared.files_manifest import FileRange
from klog.jobs.shared.topic_batches import TopicBatch


def cut_batch(batch: TopicBatch, logs: Logs, max_bytes: int) -> tuple[FileRange, ...]:
    """Return the ranges of a batch, by partition and offset.

    Args:
        batch: The batch.
        logs: The partitions, for their sizes.
        max_bytes: The largest size of a range in the log, about.
    """
    ranges = []
    for name, start, end in batch.ranges():
        log = logs.get(name)
        parts = [(start, end)] if log is None else _cut(log, start, end, max_bytes)
        ranges += [FileRange(name.partition, *part) for part in parts]
    return tuple(ranges)


def _cut(log: PartitionSnapshot, start: int, end: int, max_bytes: int) -> Iterator[tuple[int, int]]:
    while start < end:
        part_end = end
        if log.bytes_between(start, end) > max_bytes:
            part_end = offset_after_bytes(log, start, end, max_bytes)
        yield start, part_end
        start = part_end
