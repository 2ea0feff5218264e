"""What falls to each of the processes that do the tasks of a job.

The rule: processes take tasks in their order, each as much as the others. Spark keeps a Python
worker for each core that it gives tasks to, and hands it one task after the other. Where Spark does
not say how many these are (Spark Connect), or ends a worker with its task, a task is on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def shares(spark: SparkSession | None, workloads: Sequence[int]) -> list[int]:
    """Return for each task what the process that takes it has still to do, the task included.

    Args:
        spark: The session that runs the tasks; None for this process.
        workloads: What each task has to do, in the order of tasks.
    """
    count = _processes(spark)
    if count is None:
        return list(workloads)
    to_come = list(accumulate(reversed(workloads)))[::-1]
    return [max(own, rest // count) for own, rest in zip(workloads, to_come, strict=True)]


def _processes(spark: SparkSession | None) -> int | None:
    """Return how many processes do tasks, each one after the other; None if that is not known."""
    if spark is None:
        return 1
    if spark.conf.get("spark.python.worker.reuse", "true") != "true":
        return None
    try:
        return spark.sparkContext.defaultParallelism
    except (AttributeError, NotImplementedError):  # Spark Connect: either, by version.
        return None
