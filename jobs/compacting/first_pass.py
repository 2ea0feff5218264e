"""The first pass of a compaction over its partitions: clean each, or mark its records.

The rule: a task cleans its partition in one pass (`clean_partition`, which writes) if compiled
kernels are worth it and its keys fit memory, else it marks the partition (`mark_records`, which
writes nothing). The result says what was rewritten and which segments are still to be. If it marks
fewer keys than there are, the other keys are cut into ranges as wide as its own, for hashes are
distributed evenly, and a task marks each range. The marks of all these tasks together take at most
`MAX_MARKS_BYTES`: if they would take more, ranges are wider, and a task goes through its range in
several passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from klog.jobs.compacting.clean_partition import CleanTask, clean_partition
from klog.jobs.compacting.reverse_spool import SpoolFullError
from klog.jobs.compacting.rewrite_segments import RewrittenGroup
from klog.jobs.shared.job_tasks import take_results, try_tasks
from klog.jobs.shared.marking.cleaning_workload import get_cleaning_kernels
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


@dataclass(frozen=True, slots=True)
class FirstPassResult:
    """What the first pass did to a partition, and what is left to do.

    Attributes:
        marks: Which records stay, for each segment that was not read for cleaning: all segments, or
            those before the dirty part if that was cleaned.
        rewritten: The groups of the dirty part that were rewritten; none if it was only marked.
    """

    marks: PartitionMarks
    rewritten: tuple[RewrittenGroup, ...] = ()


def run_first_pass(
    spark: SparkSession | None, tasks: Sequence[CleanTask]
) -> Iterator[FirstPassResult | FailedTask]:
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


def clean_or_mark(task: CleanTask) -> FirstPassResult:
    """Clean a partition in one pass if that is possible, else mark its records.

    Args:
        task: The partition.

    Raises:
        CorruptFileError: A segment is damaged.
        UnsupportedFormatError: A segment cannot have the offsets of its entry.
    """
    kernels = get_cleaning_kernels(task.marking.segments, task.marking.remaining_records)
    if kernels is not None:
        with suppress(OffsetMapFullError, SpoolFullError):
            cleaned = clean_partition(task, kernels)
            return FirstPassResult(cleaned.clean_marks, cleaned.rewritten)
    return FirstPassResult(mark_records(task.marking, kernels))


def _with_ranges(
    result: FirstPassResult | FailedTask,
    range_results: Iterator[KeyRangeMarks | FailedTask],
    count: int,
) -> FirstPassResult | FailedTask:
    """Return a result with the marks of the next `count` ranges, or the failure of one."""
    ranges = take_results(range_results, count)
    if isinstance(result, FailedTask):
        return result
    if isinstance(ranges, FailedTask):
        return ranges
    return replace(result, marks=result.marks.joined(ranges))


def _is_incomplete(result: FirstPassResult | FailedTask) -> bool:
    return isinstance(result, FirstPassResult) and not result.marks.has_all_keys


def _range_tasks(
    task: MarkTask, result: FirstPassResult | FailedTask, max_bytes: int
) -> list[MarkTask]:
    """Return the tasks for the keys that a result does not have.

    Args:
        task: The task of the partition.
        result: Its result.
        max_bytes: What the marks of the partition's ranges may take.
    """
    if isinstance(result, FailedTask):
        return []
    keys, bitmaps = result.marks.keys, result.marks.bitmaps
    start, end = keys.end, task.keys.end
    range_bytes = sum(len(bitmap.retained) for bitmap in bitmaps)
    max_ranges = max(1, min(MAX_RANGES, max_bytes // max(range_bytes, 1)))
    width = max(start - keys.start, -(-(end - start) // max_ranges))
    return [
        replace(task, keys=KeyRange(first, min(first + width, end)))
        for first in range(start, end, width)
    ]
