"""How many records a reader would get of ranges of offsets: from commits, else from headers.

The rule: a segment's entry in the commits says how many records a read_committed reader gets of
all of it. It says so of a part, too, if every offset of the segment has a record. Only what is left
is read: segments that a bound cuts after a compaction, those with aborted transactions for
read_uncommitted, and all of a broker's directory. There the headers say it, transactions and
compaction respected (`slice_counting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.committed_snapshot import CommittedPartition
from klog.connector.source.offset_ranges import OffsetRange
from klog.connector.source.read_plan import plan
from klog.connector.source.slice_contract import expand_task
from klog.connector.source.slice_reader import SliceReader
from klog.connector.store.parallel_reads import read_in_order
from klog.connector.store.store_for_url import store_for
from klog.logformat.arrow_values import to_numpy
from klog.logformat.topic_partition import TopicPartition


def count_records(
    ranges: Iterable[OffsetRange], reader: SliceReader
) -> Mapping[TopicPartition, int]:
    """Count the records that a read of ranges returns, without reading them.

    A count that Spark pushes down to a scan is this one, over the ranges of its plan.

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


def count_by_commits_alone(ranges: Iterable[OffsetRange]) -> int | None:
    """Return how many records a read of ranges returns; None if a file has to be read for it.

    Args:
        ranges: The ranges of offsets.
    """
    total = 0
    for offset_range in ranges:
        known, rest = _count_by_commits(offset_range)
        if rest:
            return None
        total += known
    return total


def _count_by_commits(offset_range: OffsetRange) -> tuple[int, list[OffsetRange]]:
    """Return the number of records that commits know, and the ranges whose headers say the rest."""
    log, start, end = offset_range.log, offset_range.start_offset, offset_range.end_offset
    if not isinstance(log, CommittedPartition):
        return 0, [offset_range]
    segments = log.overlapping(start, end)
    base, next_offset, counts = (
        to_numpy(segments[name]) for name in ("base_offset", "next_offset", "record_count")
    )
    first, after = np.maximum(base, start), np.minimum(next_offset, end)
    is_whole = (first == base) & (after == next_offset)
    if not offset_range.committed_only:
        is_whole &= to_numpy(pc.list_value_length(segments["aborted"])) == 0
    is_dense = counts == next_offset - base
    known = np.where(is_dense, after - first, np.where(is_whole, counts, 0))
    rest = np.flatnonzero(~(is_dense | is_whole))
    return int(known.sum()), [
        replace(offset_range, start_offset=start_offset, end_offset=end_offset)
        for start_offset, end_offset in zip(first[rest].tolist(), after[rest].tolist(), strict=True)
    ]
