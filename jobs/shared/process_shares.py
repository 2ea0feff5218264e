"""How much work each process has that runs the tasks of a job.

The rule: processes take tasks in order and share the work evenly. Spark keeps one Python worker for
each core and gives it one task after the other. If klog cannot know how many workers there are
(Spark Connect), or Spark ends a worker with its task, each task counts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def remaining_workloads(spark: SparkSession | None, workloads: Sequence[int]) -> list[int]:
    """Return for each task how much work its process still has, the task included.

    Args:
        spark: The session that runs the tasks; None for this process.
        workloads: The work of each task, in the order of the tasks.
    """
    processes = _process_count(spark)
    if processes is None:
        return list(workloads)
    totals = list(accumulate(reversed(workloads)))[::-1]
    return [
        max(workload, total // processes) for workload, total in zip(workloads, totals, strict=True)
    ]


def _process_count(spark: SparkSession | None) -> int | None:
    """Return how many processes run tasks one after the other; None if that is not known."""
    if spark is None:
        return 1
    if spark.conf.get("spark.python.worker.reuse", "true") != "true":
        return None
    try:
        return spark.sparkContext.defaultParallelism
    except (AttributeError, NotImplementedError):  # Spark Connect: either, by version.
        return None
