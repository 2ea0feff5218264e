"""Offset ranges to tasks: lists of slices, balanced by bytes.

The rule: the plan of a range is made by what knows its kind of root; this is the place that
chooses. The reads of indexes are shared by all ranges of a plan.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import groupby

from klog.connector.commit_log.committed_snapshot import CommittedPartition
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.options.read_options import NO_TASK_LIMITS, TaskLimits
from klog.connector.source import raw_slices
from klog.connector.source.committed_slices import CommittedRange, plan_ranges
from klog.connector.source.index_narrowing import IndexReads
from klog.connector.source.offset_ranges import OffsetRange, split_by_count
from klog.connector.source.slice_contract import TaskDict, expand_task, to_dict
from klog.connector.source.task_sizing import split_by_offset, target_bytes


def plan(
    ranges: list[OffsetRange],
    limits: TaskLimits = NO_TASK_LIMITS,
    *,
    use_indexes: bool = True,
    decide_markers: bool = False,
) -> list[TaskDict]:
    """Return the tasks of a read: each a list of slices of one partition, in order.

    Args:
        ranges: The offsets to read.
        limits: How many tasks there are, and how large one is.
        use_indexes: Whether indexes of committed segments are believed.
        decide_markers: Whether to find out what the markers after each segment of a broker's say.

    Raises:
        CorruptFileError: If a segment cannot be planned.
        FileNotFoundError: If a segment has gone.
    """
    if limits.max_offsets is not None:
        ranges = split_by_count(ranges, limits.max_offsets)
    total_bytes = sum(r.log.bytes_between(r.start_offset, r.end_offset) for r in ranges)
    target = target_bytes(total_bytes, len(ranges), limits)
    index_reads = IndexReads()
    tasks = [
        task
        for _, group in groupby(ranges, _planned_together)
        for task in _plan_group(
            list(group),
            target,
            index_reads,
            use_indexes=use_indexes,
            decide_markers=decide_markers,
        )
    ]
    if len(tasks) < limits.min_tasks:
        slices = [slice_ for task in tasks for slice_ in expand_task(task)]
        tasks = [[to_dict(slice_)] for slice_ in split_by_offset(slices, limits.min_tasks)]
    return tasks


def _planned_together(offset_range: OffsetRange) -> Hashable:
    """Return what neighbouring ranges have in common that are planned at once: their topic."""
    log = offset_range.log
    if isinstance(log, CommittedPartition):
        return id(log.table), offset_range.committed_only
    return log.name


def _plan_group(
    ranges: Sequence[OffsetRange],
    target: int,
    index_reads: IndexReads,
    *,
    use_indexes: bool,
    decide_markers: bool,
) -> list[TaskDict]:
    """Plan ranges of a topic of a klog root, or of a partition of a broker's directory."""
    committed = [
        CommittedRange.of(offset_range, offset_range.log)
        for offset_range in ranges
        if isinstance(offset_range.log, CommittedPartition)
    ]
    if committed:
        return plan_ranges(committed, target, index_reads if use_indexes else None)
    return [
        task
        for offset_range in ranges
        if isinstance(offset_range.log, RawPartition)
        for task in raw_slices.plan_range(
            offset_range, offset_range.log, target, index_reads, decide_markers=decide_markers
        )
    ]
