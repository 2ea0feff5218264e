"""Partitions marked by tasks: one each, and more of those that have more keys than a task holds.

The rule: what a first task leaves of the keys is cut into ranges as wide as what it took, for
hashes lie evenly, and a task marks each; a record stays if any of them keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from klog.jobs.compacting.marking import Marked, MarkTask, mark, mark_all
from klog.jobs.tasks import Failed, together, try_tasks
from klog.logformat.cleaning.offset_map import KeyRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_RANGES = 256
"""Of a partition; with more keys than their tasks hold, each goes on alone."""


def marked(spark: SparkSession | None, tasks: Sequence[MarkTask]) -> Iterator[Marked | Failed]:
    """Mark partitions, each given as a task about all of its keys, in their order."""
    firsts = list(try_tasks(spark, mark, tasks, "mark"))
    behind = [_behind(task, first) for task, first in zip(tasks, firsts, strict=True)]
    others = try_tasks(spark, mark_all, [one for some in behind for one in some], "mark")
    for first, some in zip(firsts, behind, strict=True):
        found = together(others, len(some))
        if isinstance(first, Failed):
            yield first
        elif isinstance(found, Failed):
            yield found
        else:
            yield reduce(Marked.joined, found, first)


def _behind(task: MarkTask, first: Marked | Failed) -> list[MarkTask]:
    """Give tasks for the keys that the first one left, in order."""
    if isinstance(first, Failed):
        return []
    begin, end = first.keys.end, task.keys.end
    width = max(begin - first.keys.begin, -(-(end - begin) // MOST_RANGES))
    return [
        replace(task, keys=KeyRange(one, min(one + width, end))) for one in range(begin, end, width)
    ]
