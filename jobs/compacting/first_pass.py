"""The first pass of a compaction over its partitions: clean each, or mark its records.

The rule: a task cleans its partition in one pass if compiled kernels are worth it and its keys fit
memory, else it marks the partition. If it marks fewer keys than there are, the other keys are cut
into ranges as wide as its own, for hashes are distributed evenly, and a task marks each range. The
marks of all these tasks together take at most `MAX_MARKS_BYTES`: if they would take more, ranges
are wider, and a task goes through its range in several passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from klog.jobs.compacting.clean_partition import CleanedPartition, CleanTask, clean_partition
from klog.jobs.compacting.reverse_spool import SpoolFullError
from klog.jobs.shared.job_tasks import take_results, try_tasks
from klog.jobs.shared.marking.cleaning_workload import cleaning_kernels
from klog.jobs.shared.marking.mark_records import (
    KeyRangeMarks,
    MarkTask,
    PartitionMarks,
    mark_key_range,
    mark_records,
)
from klog.jobs.shared.task_retries import FailedTask
from klog.logformat.cleaning.clean_newest_first import OffsetMapFullError
from klog.logformat.cleaning.offset_map import KeyRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_RANGES = 256
"""So many ranges of keys of a partition are marked after the first one."""
MAX_MARKS_BYTES = 256 << 20
"""What the marks of these ranges may take, of all partitions together: a bit for each record."""


def run_first_pass(
    spark: SparkSession | None, tasks: Sequence[CleanTask]
) -> Iterator[CleanedPartition | PartitionMarks | FailedTask]:
    """Clean or mark partitions, and yield the results in the order of the tasks.

    Args:
        spark: The session that runs the tasks; None for this process.
        tasks: A task for each partition, about all of its keys.
    """
    results = list(try_tasks(spark, clean_or_mark, tasks, "mark"))
    incomplete = sum(_is_incomplete(result) for result in results)
    range_tasks = [
        _range_tasks(task.marking, result, MAX_MARKS_BYTES // max(incomplete, 1))
        for task, result in zip(tasks, results, strict=True)
    ]
    range_results = try_tasks(
        spark, mark_key_range, [task for ranges in range_tasks for task in ranges], "mark"
    )
    for ranges in range_tasks:
        # A result gets no name here, so its marks are freed once the driver has used them.
        yield _with_ranges(results.pop(0), range_results, len(ranges))


def clean_or_mark(task: CleanTask) -> CleanedPartition | PartitionMarks:
    """Clean a partition in one pass if that is possible, else mark its records.

    Args:
        task: The partition.

    Raises:
        CorruptFileError: A segment is damaged.
        UnsupportedFormatError: A segment cannot have the offsets of its entry.
    """
    kernels = cleaning_kernels(task.marking.segments, task.marking.remaining_records)
    if kernels is not None:
        with suppress(OffsetMapFullError, SpoolFullError):
            return clean_partition(task, kernels)
    return mark_records(task.marking, kernels)


def _with_ranges(
    result: CleanedPartition | PartitionMarks | FailedTask,
    range_results: Iterator[KeyRangeMarks | FailedTask],
    count: int,
) -> CleanedPartition | PartitionMarks | FailedTask:
    """Return a result with the marks of the next `count` ranges, or the failure of one."""
    if not isinstance(result, PartitionMarks):
        return result
    ranges = take_results(range_results, count)
    return ranges if isinstance(ranges, FailedTask) else result.joined(ranges)


def _is_incomplete(result: CleanedPartition | PartitionMarks | FailedTask) -> bool:
    return isinstance(result, PartitionMarks) and not result.has_all_keys


def _range_tasks(
    task: MarkTask, result: CleanedPartition | PartitionMarks | FailedTask, max_bytes: int
) -> list[MarkTask]:
    """Return the tasks for the keys that a result does not have.

    Args:
        task: The task of the partition.
        result: Its result.
        max_bytes: What the marks of the partition's ranges may take.
    """
    if not isinstance(result, PartitionMarks):
        return []
    start, end = result.keys.end, task.keys.end
    range_bytes = sum(len(bitmap.retained) for bitmap in result.bitmaps)
    max_ranges = max(1, min(MAX_RANGES, max_bytes // max(range_bytes, 1)))
    width = max(start - result.keys.start, -(-(end - start) // max_ranges))
    return [
        replace(task, keys=KeyRange(first, min(first + width, end)))
        for first in range(start, end, width)
    ]
