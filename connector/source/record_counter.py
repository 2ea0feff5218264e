"""How many records a reader would get of ranges of offsets: from commits, else from headers.

The rule: what commits say is not read (`segment_counts`). What is left are segments that a bound
cuts after a compaction, those with aborted transactions for read_uncommitted, and all of a broker's
directory. There the headers say it, transactions and compaction respected (`slice_counting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from klog.connector.commit_log.committed_snapshot import CommittedPartition
from klog.connector.source.offset_ranges import OffsetRange
from klog.connector.source.read_plan import plan
from klog.connector.source.segment_counts import SegmentCounts
from klog.connector.source.slice_contract import expand_task
from klog.connector.source.slice_reader import SliceReader
from klog.connector.store.parallel_reads import read_in_order
from klog.connector.store.store_for_url import store_for
from klog.logformat.topic_partition import TopicPartition


def count_records(
    ranges: Iterable[OffsetRange], reader: SliceReader
) -> Mapping[TopicPartition, int]:
    """Count the records that a read of ranges returns, without reading them.

    Args:
        ranges: The ranges of offsets.
        reader: The reader of their slices.

    Returns:
        The number of records of each partition that has a range.

    Raises:
        CorruptFileError: A header that has to be read is damaged.
        DataLossError: Records were deleted while they were counted.
    """
    counts: dict[TopicPartition, int] = {}
    unknown: list[OffsetRange] = []
    for offset_range in ranges:
        name = offset_range.log.name
        known, rest = _count_by_commits(offset_range)
        counts[name] = counts.get(name, 0) + known
        unknown += rest
    slices = [slice_ for task in plan(unknown) for slice_ in expand_task(task)]
    if slices:
        store, _ = store_for(slices[0].root, reader.storage)
        numbers = read_in_order(reader.count, slices, store.max_parallel_reads)
        for slice_, number in zip(slices, numbers, strict=True):
            counts[TopicPartition(slice_.topic, slice_.partition)] += number
    return counts


def _count_by_commits(offset_range: OffsetRange) -> tuple[int, list[OffsetRange]]:
    """Return the number of records that commits know, and the ranges whose headers say the rest."""
    log = offset_range.log
    if not isinstance(log, CommittedPartition):
        return 0, [offset_range]
    counts = SegmentCounts.of(offset_range, log)
    rest = np.flatnonzero(~counts.is_exact)
    return int(counts.record_counts[counts.is_exact].sum()), [
        replace(offset_range, start_offset=start_offset, end_offset=end_offset)
        for start_offset, end_offset in zip(
            counts.start_offsets[rest].tolist(), counts.end_offsets[rest].tolist(), strict=True
        )
    ]
