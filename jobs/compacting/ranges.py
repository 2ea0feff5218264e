"""Partitions marked by tasks: one each, and more of those that have more keys than a task holds.

The rule: what a first task leaves of the keys is cut into ranges as wide as what it took, for
hashes lie evenly, and a task marks each; a record stays if any of them keeps it. What comes of all
of these is held to so many bytes: where it would be more, ranges are wider, and a task goes through
its range in several passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from klog.jobs.compacting.at_once import CleanTask, clean_or_mark
from klog.jobs.compacting.marking import Marked, MarkTask, mark_all
from klog.jobs.tasks import Failed, try_tasks
from klog.logformat.cleaning.offset_map import KeyRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_RANGES = 256
"""Of a partition, behind the first."""
HELD_BYTES = 256 << 20
"""What may come of the tasks behind the first ones, all partitions together: a bit a record."""


def marked(spark: SparkSession | None, tasks: Sequence[CleanTask]) -> Iterator[Marked | Failed]:
    """Mark partitions, each given as a task about all of its keys, in their order.

    What can be cleaned at once is.
    """
    firsts = list(try_tasks(spark, clean_or_mark, tasks, "mark"))
    full = sum(not isinstance(one, Failed) and _is_full(one) for one in firsts)
    behind = [
        []
        if isinstance(first, Failed)
        else _behind(task.marking, first, HELD_BYTES // max(full, 1))
        for task, first in zip(tasks, firsts, strict=True)
    ]
    others = try_tasks(spark, mark_all, [one for some in behind for one in some], "mark")
    for some in behind:
        yield _joined(firsts.pop(0), others, len(some))


def _is_full(first: Marked) -> bool:
    return first.keys.end < KeyRange().end


def _behind(task: MarkTask, first: Marked, held_bytes: int) -> list[MarkTask]:
    """Give tasks for the keys that the first one left, in order."""
    begin, end = first.keys.end, task.keys.end
    each_bytes = sum(len(one.kept) for one in first.marks)
    most = max(1, min(MOST_RANGES, held_bytes // max(each_bytes, 1)))
    width = max(begin - first.keys.begin, -(-(end - begin) // most))
    return [
        replace(task, keys=KeyRange(one, min(one + width, end))) for one in range(begin, end, width)
    ]


def _joined(
    first: Marked | Failed, others: Iterator[Marked | Failed], count: int
) -> Marked | Failed:
    """Take the next results, which belong to the first; with one that failed all have."""
    found = first
    for _ in range(count):
        one = next(others)
        if not isinstance(found, Failed):
            found = one if isinstance(one, Failed) else found.joined(one)
    return found
